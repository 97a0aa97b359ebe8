"""Training of the walkers that collect the mazes' data."""
