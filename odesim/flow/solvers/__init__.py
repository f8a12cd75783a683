"""The integrators of smooth flows."""
