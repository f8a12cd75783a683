"""Data from a finite alphabet: types of models on patches or tokens (`frame`, `patterns`), and their common parts."""
