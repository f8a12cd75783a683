"""Sphinx configuration: MyST pages, notebooks and docstrings, built by `make docs`, read without a network."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Cells run `odesim` as a reader does, from this environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

project = "odesim"
author = "the odesim authors"
copyright = "2026, the odesim authors"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx-mathjax-offline", "generated"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext"]
default_role = "code"
smartquotes = False  # they would make one dash of the two of an option
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "odesim"
html_static_path = ["_static"]
html_css_files = ["odesim.css"]

odesim_quick = bool(os.environ.get("ODESIM_DOCS_QUICK"))
odesim_workers = int(os.environ.get("WORKERS", "2"))
nb_execution_mode = "off" if odesim_quick else "cache"
nb_execution_cache_path = str(HERE / "_build" / "kept" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
