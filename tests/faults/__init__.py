"""Attacks on what the program promises; every script says what it breaks, and prints a table of what it found."""
