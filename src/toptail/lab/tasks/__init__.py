"""The worlds: where data, queries and true values come from."""
