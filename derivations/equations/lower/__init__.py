"""Lowering: from a statement to a program, in passes that can be looked at one by one."""

from derivations.equations.lower.pipeline import lower

__all__ = ["lower"]
