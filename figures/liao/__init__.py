"""The figures of Liao & Kyrillidis 2026, and ours about its Theorem 1."""
