"""Figures of system `kawata`: those of the paper (1a, 1b, 2), and ours."""
