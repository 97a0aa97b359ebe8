"""Attacks on the command line and its readers: broken files, and kills at every file operation."""
