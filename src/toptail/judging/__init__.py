"""Which candidates to judge, and the values that an audit judges by."""
