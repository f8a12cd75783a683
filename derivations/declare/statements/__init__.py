"""The page of a declared model: order parameters, conventions, kernels and equations, as text, LaTeX and Python."""

from derivations.declare.statements.page import statement

__all__ = ["statement"]
