"""Grids of parameters and seeds: the sweep, and its data set."""
