"""The pieces of long commands, and who does them: a process, any launcher, or Ray."""
