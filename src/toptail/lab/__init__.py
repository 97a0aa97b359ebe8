"""Upstairs: where critics are made and questioned. Needs the extras `train` and `sim`."""
