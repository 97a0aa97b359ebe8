"""Training: data on the device, a scan over steps, a map over seeds.

Files, in reading order: `loop` (one run as a pure function, compiled batches of runs), `data` (rows
and goals), `config`, `runs` (folders), `checkpoints`, `session` (resumable runs), `reports`.
`config` and `runs` load without JAX.
"""
