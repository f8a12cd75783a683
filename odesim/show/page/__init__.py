"""A derivation page: what reads a `derivations.statement.Statement` (evaluator, text, LaTeX, Python)."""
