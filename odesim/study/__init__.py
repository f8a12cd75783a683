"""What is asked of runs that are there: comparison, linearisation, prediction."""
