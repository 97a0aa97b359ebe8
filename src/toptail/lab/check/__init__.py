"""One call from a critic to its verdict: candidates, judge, audit, and the critic followed."""
