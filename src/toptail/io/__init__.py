"""Files and folders written whole or not at all, hashes, guards against bad input."""
