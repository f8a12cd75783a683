"""Derivation pages: printers of a `derivations.statement.Statement` (evaluator, text, LaTeX, Python)."""
