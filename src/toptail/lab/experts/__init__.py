"""Low-level walkers: bodies stepped in batches, and trained actors that run with NumPy."""
