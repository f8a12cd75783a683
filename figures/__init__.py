"""Published figures and ours, drawn from stored runs; drawing computes nothing.

One module for each figure, in a folder for each system; `odesim.show.figures` says what it holds.  The few numbers that
are no run (a closed form, a Monte Carlo estimate) come from the function `measure` of a module and are stored too.
"""
