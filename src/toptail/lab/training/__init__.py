"""The fused loop: data on the device, a scan over steps, a map over seeds.

Import from the files: those that only read what runs left (`records`, `run_files`, `metrics`) load
without JAX.
"""
