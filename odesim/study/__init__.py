"""Analyses of stored runs: comparison, linearisation, prediction."""
