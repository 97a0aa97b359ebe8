"""What a score means, measured on scored triples; intervals resample whole trajectories."""
