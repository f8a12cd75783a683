"""Meanings of the numbers in the summary of a run of `pmoe`."""

from collections.abc import Mapping

HEADLINES: Mapping[str, str] = {
    "mode": "how routers are trained: as the parameter mode",
    "k": "number of experts",
    "l": "number of patches of an expert",
    "compositions": "number of different compositions of an input",
    "signal_constant": "the exact constant of the signal of o1: Schur complement of the patterns' kernel at o1",
    "gamma_cubed": "the paper's bound of that constant, gamma^3 = (p sqrt delta)^-3",
    "error_initial": "P(y f <= 0) at the start",
    "error_final": "P(y f <= 0) at the end",
    "v1_initial": "mean of v = 1/(1 + e^(y f)) in class +1 at the start",
    "v1_final": "the same at the end",
    "v2_initial": "mean of v = 1/(1 + e^(y f)) in class -1 at the start",
    "v2_final": "the same at the end",
    "v_initial": "mean of v at the start, by class",
    "v_final": "mean of v at the end, by class",
    "assumption_4_4": "joint training: true if Assumption 4.4 is satisfied at the end",
    "o1_above": "smallest difference at the end between the best router's values on o1 and on an irrelevant pattern",
    "o2_above": "smallest difference at the end between the best router's values on o2 and on an irrelevant pattern",
    "o_above": "the same for the pattern of every class",
    "router_displacement": "largest change of a router's value on a pattern",
    "displacement_over_sigma_r": "that change in units of the scale at which routers start",
    "flips_final": "share of (neuron, pattern) whose activation has changed at the end",
}
