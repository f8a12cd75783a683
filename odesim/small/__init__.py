"""Hitting times of many small flows at once: `odesim.Flow`."""
