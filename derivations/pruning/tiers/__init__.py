"""The tiers of system `pruning` that are generated from their statements, one file each."""
