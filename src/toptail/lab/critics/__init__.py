"""The critics, one readable file each; `registry` lists them, and needs no JAX."""
