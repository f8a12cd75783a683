"""Common parts of several figures of pruning."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999", "#F0E442")
"""The Okabe-Ito colours and grey."""
CRITERIA = ("router_norm_change", "router_change_norm", "router_norm", "neuron_norm_mean", "neuron_norm_change_mean",
            "importance", "random")  # fmt: skip
"""Criteria that differ under expert choice."""
