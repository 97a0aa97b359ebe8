"""Trained walkers, run with NumPy alone, and the experts that collect data with them."""
