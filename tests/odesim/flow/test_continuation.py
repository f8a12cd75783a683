"""Parameters on top of a run: each takes effect as it does without one, or is refused by its name."""

import dataclasses

import numpy as np
import pytest

import derivations
import odesim
from derivations.contract import UsageError, load
from odesim.evidence.laboratory import Laboratory
from odesim.flow.continuation import taken_over
from odesim.machine import streams
from odesim.request.case import Case
from odesim.request.parse import check_domain

SMALL = {
    "liao": {"m": 3, "m_star": 2, "d": 100},
    "kawata": {"J": 4, "d": 100},
    "chen": {"M": 2, "J": 2, "K": 2, "nodes": 3},
    "pmoe": {"n": 3, "p": 2, "m": 8, "d": 6},
    "pruning": {"d": 8, "n": 4, "k": 8, "l": 2, "m": 2},
}
ELSEWHERE = {"d": "the dimension of SGD", "N_r": "the samples of pmoe's stage router"}
"""Parameters that only move the start of these flows, but have another use: they are no mistake on top of a run."""
COMPILED_APART = {
    "chen": {"activation", "variant"},
    "kawata": {"activation", "link"},
    "liao": {"degree", "temperature"},
}
"""Parameters of which every value is a module of its own to compile: of those the slow test takes one more value."""


def declared():
    """A declared model whose teachers' readouts, overlaps, numbers and biases are parameters."""
    return odesim.declare(
        student={"unit": "erf((w + b)/width)", "units": 2, "output": "trained"},
        teacher={
            "one": {"unit": "erf(w/sqrt(2))", "units": 2, "output": "c1"},
            "two": {"unit": "erf(w/sqrt(2))", "units": 2, "output": "c2*j"},
        },
        training={"limit": "online", "step": 0.5},
        start={"norm": 0.5},
        parameters={"c1": 1.0, "c2": 0.0, "width": 1.5, "b": {"default": 0.1, "per": "unit"}},
    )


def other_values(field, value):
    """Other values of a parameter, the nearest first, whatever its kind."""
    if field.metadata.get("choices"):
        return [choice for choice in field.metadata["choices"] if choice != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value + 1, value - 1]
    if isinstance(value, float):
        return [1.25 * value + 0.125, 0.5 * value]
    if isinstance(value, tuple) and value and isinstance(value[0], float):
        return [tuple(1.5 * entry + 0.1 for entry in value)]
    return [(0.5,)] if isinstance(value, tuple) else [0.5, 3]


class Checker:
    """A short run of a system, and the right-hand side of its stage at the end of the run."""

    def __init__(self, system, small):
        self.system = system
        self.run = odesim.integrate(system, until=1.0, save_points=3, **small)
        self.stage = system.stage(self.run.origin.stage)
        self.laboratory = Laboratory(system)
        self.own = {name: value for name, value in self.run.origin.parameters.items() if name != "tier"}

    def initial(self, parameters, arrays, drawn):
        case = Case.build(self.system, parameters, stage=self.stage.name, continued=not drawn)
        return load(self.stage.enter)(case.parameters, arrays, streams.generator(0, "initial")), case.tier

    def derivative(self, started, state):
        initial, tier = started
        return self.laboratory.functions(dataclasses.replace(initial, state=state), tier, self.stage.name).flow(state)

    def fits(self, name, value):
        """Return True if a fresh run takes the value and has a right-hand side with it."""
        field = next(field for field in dataclasses.fields(self.system.parameters) if field.name == name)
        try:
            check_domain(value, field)
            started = self.initial({**self.own, name: value}, None, True)
            self.derivative(started, started[0].state)
        except (UsageError, ValueError):
            return False
        return True

    def check(self, name, value):
        """Assert that a parameter on top of the run is refused by name, or acts as it does without a run."""
        arrays = self.run.arrays(-1)
        refused = None
        try:
            end, parameters = taken_over(self.run, self.system, {name: value})
            after = self.initial(parameters, end, False)
        except UsageError as error:
            refused = str(error)
        if refused is not None:
            assert name in refused
            return "refused"
        state = after[0].state
        fresh = [self.initial(given, None, True) for given in (self.own, {**self.own, name: value})]
        # What a start draws stays that of the run: the parameter itself is what is compared.
        kept = [(self._with_draws_of(after[0], initial), tier) for initial, tier in fresh]
        without = [self.derivative(started, state) for started in kept]
        on_top = [self.derivative(self.initial(self.own, arrays, False), state), self.derivative(after, state)]
        if _differ(*without):
            assert not _differ(on_top[1], without[1]), f"{name} = {value} acts differently on top of a run"
            return "applies"
        assert not _differ(*on_top), f"{name} = {value} acts on top of a run alone"
        starts = [started[0].state for started in fresh]
        assert name in ELSEWHERE or not _differ(*starts), f"{name} = {value} says where a run starts, and is taken"
        return "neutral"

    def _with_draws_of(self, run, fresh):
        """A fresh initial condition with those constants of the run that a start draws."""
        again = self.initial({**self.own}, None, True)[0]
        other = load(self.stage.enter)(again.parameters, None, streams.generator(1, "initial"))
        drawn = {n for n in again.constants if _differ({n: again.constants[n]}, {n: other.constants[n]})}
        return dataclasses.replace(fresh, constants={**fresh.constants, **{n: run.constants[n] for n in drawn}})


def _differ(first, second):
    return any(
        np.shape(first[name]) != np.shape(second[name])
        or not np.allclose(first[name], second[name], rtol=1e-10, atol=1e-14, equal_nan=True)
        for name in first
    )


def outcomes(system, small, skipped=frozenset()):
    checker, found = Checker(system, small), {}
    for field in dataclasses.fields(system.parameters):
        if field.name == "tier" or field.name in skipped:
            continue
        own = checker.own[field.name]
        own = tuple(own) if isinstance(own, list) else own
        value = next((v for v in other_values(field, own) if checker.fits(field.name, v)), None)
        if value is not None:
            found[field.name] = checker.check(field.name, value)
    return found


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_parameter_of_a_system_applies_on_top_of_a_run_or_is_refused(name):
    found = outcomes(derivations.system(name), SMALL[name], COMPILED_APART.get(name, frozenset()))
    assert {"refused", "applies"} <= set(found.values()) and len(found) > 4


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMPILED_APART))
def test_parameters_that_are_compiled_apart_do_so_too(name):
    every = {field.name for field in dataclasses.fields(derivations.system(name).parameters)}
    assert outcomes(derivations.system(name), SMALL[name], every - COMPILED_APART[name])


def test_every_parameter_of_a_declared_model_applies_on_top_of_a_run_or_is_refused():
    found = outcomes(declared(), {})
    assert {name for name, outcome in found.items() if outcome == "applies"} >= {
        "c1",
        "c2",
        "width",
        "gram",
        "step",
        "noise",
    }
    assert {"norm", "overlap", "a", "b", "units", "one_teachers", "two_teachers"} <= {
        name for name, outcome in found.items() if outcome == "refused"
    }
