"""What candidates are worth: exact values, ideal critics, a reference ensemble, rollouts."""
