"""Lowering: from a statement to a program, in passes that can be inspected one by one."""

from derivations.equations.lower.pipeline import lower

__all__ = ["lower"]
