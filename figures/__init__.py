"""Published figures and ours, drawn from stored runs; nothing here computes."""
