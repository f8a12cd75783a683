"""Requests and answers: a case with its parameters and options, and the trajectory that answers it."""
