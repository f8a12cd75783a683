"""Measurement and judgement of claims: the laboratory, verdicts, several processes."""
