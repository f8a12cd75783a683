"""Grids of parameters and seeds: the sweep, and the data set that is kept of it."""
