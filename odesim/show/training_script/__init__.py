"""Training scripts of declared models for PyTorch, NumPy and JAX (`odesim export`).

A declaration becomes one `Script` (`describe`), which has no text of a back end: names, sizes, SymPy expressions and
arrays. `render` writes it with the template of a back end and prints the expressions with the printer of this back end.
"""
