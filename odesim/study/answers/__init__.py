"""Answers beyond one trajectory, a module for each verb; `RESULT` is the class of its answers."""
