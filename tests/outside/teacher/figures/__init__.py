"""The figures of the system."""
