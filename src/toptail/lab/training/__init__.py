"""Training: data on the device, a scan over steps, a map over seeds.

Files, in reading order: `loop` (one run as a pure function), `offline` (data and goals), `config`,
`programs` (compiled programs), `session` and `run_batch` (runs with folders, resumable), `batches`
(runs without folders). `config` and `run_files` load without JAX.
"""
