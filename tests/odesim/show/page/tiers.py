"""Every tier of every stage that has a clock, found by scanning, at small parameters."""

import functools

import derivations
from derivations.contract import load
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.show.page import python

SMALL = {
    "liao": [{"m": 2, "m_star": 1, "d": 20}, {"m": 5, "m_star": 2, "d": 40}, {"m": 7, "m_star": 4, "d": 100}],
    "kawata": [
        {"C": 1, "d": 20, "neurons": 3},
        {
            "C": 2,
            "M": 3,
            "J": 4,
            "d": 50,
            "rho": 0.8,
            "link": ((0, 0, 0, 0.5, 0.7), (0, 0, 0.2, 0.3), (0, 0.4, 0, 1.0)),
        },
        {"C": 4, "M": 2, "J": 9, "d": 60, "rho": 1.5, "s": (0.5, -0.2, 0.1, -0.4)},
    ],
    "pmoe": [
        {"n": 4, "p": 2, "m": 8},
        {"n": 5, "p": 3, "m": 12, "l": 2, "delta_d": 0.3},
        {"n": 6, "p": 4, "m": 24, "b1": (0.2,)},
    ],
    "pruning": [
        {"d": 5, "n": 6, "l": 2, "k": 4, "m": 3, "important": 1, "missigned": 0, "weak": 0},
        {"d": 9, "n": 12, "l": 4, "k": 6, "m": 6, "important": 1, "eta_e": 0.3, "eta_r": 0.2},
        {"d": 14, "n": 20, "l": 5, "k": 10, "m": 5, "important": 1, "zipf": 0.7},
    ],
    "chen": [
        {"M": 2, "J": 2, "K": 2, "nodes": 2, "d": 10},
        {"M": 4, "J": 3, "K": 2, "nodes": 3, "d": 20, "rho": 20.0, "beta": (1.5,)},
        {"M": 6, "J": 2, "K": 3, "nodes": 2, "d": 20, "laws": "points", "alpha": (0.5, 1.0, 2.0)},
    ],
}
"""Three sizes of every system; a system that is not here is asked at its defaults."""
MORE = {
    ("pmoe", "L3"): [
        {"composition": "deterministic", "counts": counts, "lam": 0.0, "n": sum(counts) + 1, "l": min(3, sum(counts))}
        for counts in ((2, 1), (2, 1, 1), (1, 2, 1, 1))
    ],
    ("pmoe", "router"): [{"mode": "separate"}] * 3,
    ("kawata", "R3"): [
        {"C": 2, "s": (1.0, -1.0), "link": ((0.0,), (0.0,), (0, 0, 0, 1.0)), "neurons": n} for n in (2, 5, 9)
    ],
    ("kawata", "phase3"): [{"routing": "perfect"}] * 3,
    ("kawata", "effective"): [{"eta": eta, "zeta": 0.3} for eta in (0.5, 0.2, 1.0)],
    ("liao", "linear"): [{"m": m, "m_star": m, "d": 60} for m in (1, 3, 5)],
    ("chen", "full"): [{"P": 4, "points": 16}, {"P": 4, "points": 64, "J": 2}, {"P": 5, "points": 128}],
    ("chen", "specnoise"): [{"P": 5}] * 3,
    ("chen", "spec"): [{"init": "specialised"}] * 3,
    ("chen", "group2"): [{"init": "specialised"}] * 3,
}
"""What a tier or a stage needs beside."""


def scan():
    """(system, stage, tier) of everything that has a clock."""
    for name in derivations.names():
        for stage in derivations.system(name).stages:
            if stage.kind == "dynamics":
                yield from ((name, stage.name, tier) for tier in stage.tiers)


def parameters(system, stage, tier):
    """The three parameter sets of a tier."""
    sets = SMALL.get(system, [{}])
    for key in ((system, stage), (system, tier)):
        sets = [{**one, **more} for one, more in zip(sets, MORE.get(key, [{}] * len(sets)), strict=True)]
    return sets


@functools.cache
def stated(system, stage, tier, parameters):
    """The statement of a tier, derived once."""
    return load(derivations.system(system).stage(stage).statement)(parameters, tier)


@functools.cache
def printed(system, stage, tier, parameters):
    """The names of the printed Python file of a tier."""
    space = {"__name__": "page"}
    exec(compile(python.page(stated(system, stage, tier, parameters)), f"{system}_{stage}_{tier}.py", "exec"), space)
    return space


class Compiled:
    """A tier compiled at one set of parameters: its statement, its numbers, its right-hand side."""

    def __init__(self, system, stage, tier, given, backend="numba", initial=None):
        found = derivations.system(system)
        chosen = found.stage(stage)
        self.initial = initial or Laboratory(found).initial(stage=stage, tier=tier, **given)
        self.equations = load(chosen.equations)(self.initial.parameters, tier)
        self.functions = compile_functions(self.equations, backend)
        self.arguments = self.equations.arguments(self.initial)
        self.tier = (system, stage, tier, self.initial.parameters)
        self.statement = stated(*self.tier)
        self.constants = self.statement.numbers(self.initial)

    def printed(self, state):
        """The right-hand side as the printed file has it."""
        space = printed(*self.tier)
        return space["rates"](state, space["parameters"](**self.constants))

    def state(self, rng):
        """A random state with overlaps of order one, flat and by components."""
        y = rng.uniform(-0.6, 0.6, self.equations.start(self.initial).size)
        return y, self.equations.unpack(y)

    def flow(self, y):
        """The compiled right-hand side, by components."""
        return self.equations.unpack(self.functions["flow"](0.0, y, *self.arguments))

    def loss(self, y):
        """The compiled loss, or None."""
        return self.functions["loss"](y, *self.arguments) if "loss" in self.functions else None
