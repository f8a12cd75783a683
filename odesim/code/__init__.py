"""From symbols to machine code: generated modules, the sources behind them, their cache."""
