"""Data from a finite alphabet: what a model on patches or tokens states (`frame`, `patterns`), and what many share."""
