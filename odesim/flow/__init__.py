"""Integration of flows: problems, methods, recorded data, and trajectories."""
