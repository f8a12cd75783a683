"""LaTeX preamble of every printed derivation, of systems and of declared models."""

HEAD = r"""\documentclass[10pt,a4paper]{article}
\usepackage{amsmath,amssymb}
\usepackage[margin=2.2cm]{geometry}
\setlength{\parindent}{0pt}\setlength{\parskip}{3pt}
\emergencystretch=2em
\allowdisplaybreaks
\begin{document}
"""
