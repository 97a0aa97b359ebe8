"""The paper's experiments, from data to stored tables."""
