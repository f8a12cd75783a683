"""Sphinx configuration: MyST pages and docstrings, built by `make docs`, read without a network."""

project = "odesim"
author = "the odesim authors"
copyright = "2026, the odesim authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx-mathjax-offline"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "odesim"
