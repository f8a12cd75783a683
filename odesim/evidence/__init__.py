"""Claims measured and judged: the laboratory, verdicts, a crew of processes."""
