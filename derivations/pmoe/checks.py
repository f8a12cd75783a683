"""Checks of the parameters of `pmoe`."""

import numpy as np

from derivations.contract import UsageError
from derivations.pmoe.parameters import Parameters, require_outputs, settle
from derivations.pmoe.world import gram_of


def check(parameters: Parameters, drawn: bool = True) -> None:
    """Raise `UsageError` for parameters that do not fit together."""
    p = settle(parameters)
    if p.l > p.n:
        raise UsageError(f"l must be at most n: an expert cannot receive l = {p.l} of n = {p.n} patches")
    if p.mode == "cnn" and (p.k != 1 or p.l != p.n):
        raise UsageError(f"mode cnn has k = 1 and l = n = {p.n}, but k = {p.k} and l = {p.l} were given")
    _check_classes(p)
    if p.m % p.k:
        raise UsageError(
            f"m = {p.m} neurons cannot be divided equally among k = {p.k} experts: choose a multiple of {p.k}"
        )
    if drawn and p.init == "paired" and (p.m // p.k) % 2:
        raise UsageError(f"init=paired needs an even number of neurons per expert, but m/k = {p.m // p.k}")
    if parameters.lam < 0 and parameters.lam != -1.0:
        raise UsageError(f"lam must not be negative, but {parameters.lam:g} was given (-1 is the paper's 1/m)")
    if not drawn:
        return
    if p.delta_d >= 1:
        raise UsageError("delta_d must be below 1: at 1 the patterns o1 and o2 coincide")
    if p.delta_d < -1 / (p.classes - 1) - 1e-12:
        raise UsageError(
            f"delta_d must be at least -1/(classes - 1) = {-1 / (p.classes - 1):g}: no {p.classes} unit vectors have "
            f"the products {p.delta_d:g} two by two"
        )
    if p.p == 0 and p.n > 1:
        raise UsageError(f"n = {p.n} patches need irrelevant patterns: give p >= 1, or n = 1")
    _check_composition(p)
    need = int(np.linalg.matrix_rank(gram_of(p)))
    if p.d < need:
        raise UsageError(f"the patterns span {need} dimensions, but d = {p.d}: give -p d={need} or more")


def _check_classes(p: Parameters) -> None:
    """Check requirements of several classes, and raise an error for options that are defined only for two."""
    if p.loss == "logistic" and p.classes > 2:
        raise UsageError(f"the logistic loss is for two classes, but classes = {p.classes}: omit loss=logistic")
    if p.routers == "single" and p.k < p.classes:
        raise UsageError(f"routers=single needs an expert for each class: give k >= {p.classes}")
    if p.classes > 2 and p.composition == "bounded_close":
        raise UsageError(
            "composition=bounded_close counts patches close to o1 or o2 (Definition D.3), which is for two classes, "
            f"but classes = {p.classes}: take multinomial or deterministic"
        )
    require_outputs(p, p.tier)


def _check_composition(p: Parameters) -> None:
    for name, values in (("pi", p.pi), ("counts", p.counts)):
        if values and len(values) != p.p:
            raise UsageError(f"{name} needs one number for each of p = {p.p} patterns, but has {len(values)}")
    if p.pi and abs(sum(p.pi) - 1) > 1e-9:
        raise UsageError(f"the probabilities pi must sum to 1, but sum to {sum(p.pi):g}")
    if p.composition == "deterministic" and p.p and (not p.counts or sum(p.counts) != p.n - 1):
        needed = f"{p.p} counts that sum to n - 1 = {p.n - 1}"
        raise UsageError(f"composition=deterministic needs {needed}, but they sum to {sum(p.counts)}")
    if p.composition == "bounded_close" and p.close > p.n - 1:
        raise UsageError(f"close = {p.close} patches are more than the n - 1 = {p.n - 1} irrelevant ones")
