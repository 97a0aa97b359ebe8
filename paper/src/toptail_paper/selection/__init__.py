"""Fixed-query action selection: frozen queries, cached pools, independent judges, the audit."""
