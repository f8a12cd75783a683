"""Requests and results: a case with its parameters and options, and the trajectory that is its result."""
