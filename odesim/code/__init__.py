"""From symbols to machine code: generated modules, their sources, and their cache."""
