"""Data from a finite alphabet: types of models on vectors of a frame (`frame`) and on patches (`patterns`)."""
