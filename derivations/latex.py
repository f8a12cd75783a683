"""What every printed derivation begins with, that of a system and that of a declared model."""

HEAD = r"""\documentclass[10pt,a4paper]{article}
\usepackage{amsmath,amssymb}
\usepackage[margin=2.2cm]{geometry}
\setlength{\parindent}{0pt}\setlength{\parskip}{3pt}
\emergencystretch=2em
\allowdisplaybreaks
\begin{document}
"""
