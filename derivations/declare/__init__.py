"""Declared models: a teacher-student model stated in ten lines, and the population dynamics that follow from it."""
