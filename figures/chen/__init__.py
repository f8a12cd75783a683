"""The tables and figures of Chen et al. 2022, one module each."""
