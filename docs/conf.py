"""Sphinx configuration: MyST pages, built with `sphinx-build -W docs docs/_build`."""

project = "odesim"
author = "the odesim authors"
copyright = "2026, the odesim authors"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "alabaster"
html_theme_options = {"description": "Do papers on mixtures of experts agree with their own dynamics?"}
