"""The figures of system `pruning`."""
