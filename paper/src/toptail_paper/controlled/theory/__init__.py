"""The paper's theory, checked by running it.

Each claim is one function. Its docstring states the claim, its arguments are what the claim
speaks about (a critic's embeddings, a proposal, a pool of values), and it returns a
`TheoryCheck`: what was measured, what the claim says it must be, and whether it held. A check
whose premise is broken comes back with `holds=False`.

Everything here is NumPy. A trained critic enters as two functions, phi(states, actions) and
psi(goals), so the same checks serve the study and any critic a person brings.
"""
