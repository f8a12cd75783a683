"""Published figures and ours, drawn from stored runs; drawing computes nothing.

One module for each figure, in a folder for each system; `odesim.show.figures` describes its content. The few numbers
that are not from a run (a closed form, a Monte Carlo estimate) come from the function `measure` of a module and are
stored too.
"""
