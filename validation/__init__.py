"""Programs that measure the library: error rates of its verdicts and intervals, and its speed."""
