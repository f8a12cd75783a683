"""Declared models: a teacher-student model in ten lines, and the population dynamics that follow from it."""
