"""Options of numba for the loops of rules, generated kernels, and the engine that calls them."""

OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "arcp", "nsz"}, "nogil": True}
"""`nnan` and `ninf` are omitted, because runs must detect a state that is not finite.

numba's cache depends only on the file of each function. After a change here, delete its folder (`NUMBA_CACHE_DIR`, else
`numba` in the cache folder), because it contains machine code with the former options.
"""
POINTED = {**OPTIONS, "no_cpython_wrapper": True}
"""Options of functions that are called through pointers: an entry for Python would take as long to compile as ten
lines.
"""
INNER = {**POINTED, "no_cfunc_wrapper": True}
"""Options of functions that only compiled ones call."""
