"""Finite-sample SGD: explicit in d dimensions, or compressed to the span of its vectors, exactly in law."""
