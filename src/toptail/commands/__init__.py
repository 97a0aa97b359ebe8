"""One file per command: its flags and the call into the rooms."""
