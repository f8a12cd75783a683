"""Answers beyond one trajectory.  Nothing is written."""
