"""A model that takes no time, as text: streaming least squares with label noise, from a start without overlap."""

MODEL = """
title = "Least squares"
source = "A. Author 2024"
[student]
unit = "w"
[teacher]
noise = 0.5
[training]
limit = "online"
step = 0.5
until = 10
[start]
norm = 1.0
overlap = 0.0
"""
