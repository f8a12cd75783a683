"""Requests, shared by Python and the command line, and the functions that run them."""
