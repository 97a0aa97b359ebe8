"""Jobs: the independent parts of a long command, and the executors that run them."""
