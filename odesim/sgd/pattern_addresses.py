"""The passes over pattern data, compiled once for all models, whose functions they call by addresses.

What the passes hand on as a model's numbers is here (addresses of `dispatched`, `weighed` and `lost`, address of the
numbers): see `odesim.code.addressed`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

PASSES = (
    "flipped", "products", "router_fields", "filter_fields", "collect_dense", "collect", "add", "route", "descend",
    "descend_counted",
)  # fmt: skip
DISPATCHED = "f8[:,::1], f8[:,::1], i8[::1], i8"
WEIGHED = (
    "i8, f8[:,:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[::1], i8"
)  # fmt: skip
LOST = "f8[::1], f8[::1], i8"
WEIGHTS = "Tuple((f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,::1]))"
GRADIENTS = "Tuple((f8[:,:,::1], f8[:,::1], f8[:,::1], f8))"
EXAMPLES = "Tuple((i8[:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[::1], f8[:,::1]))"
ROUTE = f"f8[:,::1], f8[:,::1], {EXAMPLES}, UniTuple(i8, 2), f8[:,::1], i8[::1], UniTuple(i8, 4)"
FILTERS = "Tuple((f8[:,:,::1], f8[:,::1], f8[:,:,::1]))"
ROUTING = "Tuple((f8[:,::1], i8[::1], i8[::1], f8[::1], f8[::1]))"
SUMS = "Tuple((f8[:,:,::1], f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8))"
DESCEND = f"{FILTERS}, {EXAMPLES}, {ROUTING}, UniTuple(i8, 2), i8, UniTuple(i8, 4) -> {SUMS}"
COUNTED = (
    f"{WEIGHTS}, Tuple((i8[:,::1], f8[:,::1], f8[::1])), f8[:,::1], i8[:,::1], UniTuple(i8, 4) -> {GRADIENTS}"
)  # fmt: skip
"""The types that `dispatched`, `weighed`, `lost`, `route`, `descend` and `descend_counted` take; the last two return
some."""
ADAPTERS = ("DISPATCHED", "WEIGHED", "LOST", "dispatch", "coefficients", "losses")
COMMON = (
    *(f"{__name__}:{name}" for name in ADAPTERS),
    *(f"odesim.sgd.pattern_loops:{name}" for name in PASSES),
)
by_address: Callable[..., Any]
lent: Callable[..., int]
borrowed: Callable[..., Any]


def dispatch(logits, noise, on_dispatch, on_coefficients, on_losses, at):
    """Which expert sees an example (B,)."""
    expert = np.empty(logits.shape[1], np.int64)
    by_address(DISPATCHED, on_dispatch, (logits, noise, expert, at))
    return expert


def coefficients(expert, fields, logits, noise, labels, share, on_dispatch, on_coefficients, on_losses, at):
    """Minus the gradients along the patches, for filters (J, P, B) and routers (M, B), and the margins (B,)."""
    filters, routers, margin = np.empty(fields.shape), np.empty(logits.shape), np.empty(labels.size)
    given = (expert, fields, logits, noise, labels, share, filters, routers, margin, at)
    by_address(WEIGHED, on_coefficients, given)
    return filters, routers, margin


def losses(margin, on_dispatch, on_coefficients, on_losses, at):
    """The loss of every margin (B,)."""
    found = np.empty(margin.size)
    by_address(LOST, on_losses, (margin, found, at))
    return found


def dispatched(logits, noise, expert, at):
    """`dispatch` of a model, its numbers at an address."""
    found = dispatch(logits, noise, *borrowed(at))
    for i in range(expert.size):
        expert[i] = found[i]


def weighed(expert, fields, logits, noise, labels, share, filters, routers, margin, at):
    """`coefficients` of a model, its numbers at an address."""
    one, two, three = coefficients(expert, fields, logits, noise, labels, share, *borrowed(at))
    for i in range(margin.size):
        margin[i] = three[i]
    for m in range(routers.shape[0]):
        for i in range(margin.size):
            routers[m, i] = two[m, i]
    for j in range(filters.shape[0]):
        for p in range(filters.shape[1]):
            for i in range(margin.size):
                filters[j, p, i] = one[j, p, i]


def lost(margin, out, at):
    """`losses` of a model, its numbers at an address."""
    found = losses(margin, *borrowed(at))
    for i in range(out.size):
        out[i] = found[i]


def routed(routers, table, examples, part, logits, expert, numbers, at):
    """`route` at at[0] for a model whose functions lie at at[1:]."""
    given = (routers, table, examples, part, logits, expert, (at[1], at[2], at[3], lent(numbers)))
    by_address(ROUTE, at[0], given)


def passed(weights, examples, routing, part, block, numbers, at):
    """`descend` at at[0] for a model whose functions lie at at[1:]."""
    given = (weights, examples, routing, part, block, (at[1], at[2], at[3], lent(numbers)))
    return by_address(DESCEND, at[0], given)


def passed_counted(weights, configurations, logits, counts, numbers, at):
    """`descend_counted` at at[0] for a model whose functions lie at at[1:]."""
    given = (weights, configurations, logits, counts, (at[1], at[2], at[3], lent(numbers)))
    return by_address(COUNTED, at[0], given)
