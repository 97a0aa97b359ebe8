"""What a score means on recorded triples (state, action, goal); intervals resample trajectories."""
