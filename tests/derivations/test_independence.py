"""Runs of one sampled claim share nothing: every seed has its own start and, where training needs one, its own data."""

import dataclasses

import numpy as np
import pytest

import derivations
from derivations.claim import Lab
from derivations.laws import All, Equals, Mean, Power, Probability, Tends
from odesim.evidence import verification
from odesim.request.case import find_system

SAMPLED = (Equals, Mean, Power, Probability, Tends)
METHODS = {"initial", *(name for name in vars(Lab) if not name.startswith("_"))}


class _Asked(Exception):
    """The first request of a measurement, which is all that is needed of it."""


class _Recorder:
    """A laboratory that runs nothing: the first run that is asked for ends the measurement."""

    backend, effort, seed = "numba", "quick", 0

    def __init__(self, system):
        self.system = system

    def __getattr__(self, name):
        if name not in METHODS:
            raise AttributeError(name)

        def ask(*args, **request):
            raise _Asked(name, args, request)

        return ask


def sampled(law):
    """Return True if a law, or a part of it, makes an interval of runs."""
    if isinstance(law, All):
        return any(sampled(part) for part in law.parts.values())
    return isinstance(law, SAMPLED) and getattr(law, "error", None) is None


def forms():
    for name in derivations.names():
        system = find_system(name)
        for claim in verification.claims_of(system):
            for variant in claim.variants:
                grid = verification.grid_of(claim, variant, "quick")
                if grid is not None and grid.seeds > 1 and sampled(variant.law or claim.law):
                    yield pytest.param(
                        system, claim, {**grid.points[0], **variant.settings}, id=f"{name} {claim.id} {variant.name}"
                    )


def first_request(system, claim, point, seed):
    """Return (method, request) of the first run that a measurement asks for, or None if it asks for none."""
    try:
        claim.measure(_Recorder(system), point, seed)
    except _Asked as asked:
        method, _, request = asked.args
        return method, request
    return None


RUNS = ("integrate", "simulate", "initial")
DATA = ("chen", "pmoe")
"""Systems that train on a data set: elsewhere every step has new samples, drawn with the seed of the run."""


def given_start(request):
    """Return the overlaps or weights that a run starts from, as bytes, or None where the seed draws them."""
    start = request.get("start", request.get("initial"))
    arrays = getattr(start, "state", start)
    return None if arrays is None else [np.asarray(arrays[name]).tobytes() for name in sorted(arrays)]


@pytest.mark.parametrize(("system", "claim", "point"), list(forms()))
def test_every_seed_has_its_own_start_or_noise_and_its_own_data(system, claim, point):
    one, other = (first_request(system, claim, point, seed) for seed in (1, 2))
    if one is None or other is None or one[0] not in RUNS:
        return  # numbers drawn with the seed, or a function of a state that was
    (method, first), (_, second) = one, other
    if method == "initial" and "seed" not in first:
        return  # its parameters alone are asked for
    differ = first.get("seed") != second.get("seed") or given_start(first) != given_start(second)
    assert differ, "the seeds share start and noise"
    if method == "simulate" and system.name in DATA:
        assert first.get("data_seed") != second.get("data_seed"), "the seeds share a training set"


def test_a_shared_training_set_would_be_noticed():
    system = find_system("chen")
    claim = next(claim for claim in verification.claims_of(system) if claim.id == "thm-4.2-T")
    shared = dataclasses.replace(
        claim,
        measure=lambda lab, point, seed: lab.simulate(method="compressed", seed=seed, data_seed=0),
    )
    with pytest.raises(AssertionError, match="share a training set"):
        test_every_seed_has_its_own_start_or_noise_and_its_own_data(system, shared, {})
