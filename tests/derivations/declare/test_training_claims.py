"""Sixteen ways of training: the generated claims confirm every one, and refute it where one part of it is broken.

A broken model is one whose equations are those of another declaration, or of another number, than the samples that
judge it.
"""

import dataclasses

import pytest

import odesim
from odesim.evidence.laboratory import Laboratory
from tests.derivations.declare.judged import answer

ERF = {"unit": "erf(w/sqrt(2))", "units": 2}
TWO = {"student": {**ERF, "output": "trained"}, "teacher": {"units": 2, "noise": 0.2}}
ONE = {**TWO, "student": ERF}
ONLINE = {"limit": "online", "step": 0.4}
HEADS = {
    "student": {**ERF, "output": {"one": "trained", "two": "trained"}},
    "teacher": {"gram": 0.3, "one": {}, "two": {}},
}
EPISODE = {
    "student": {"unit": "sign(w)"},
    "teacher": {},
    "training": {
        "limit": "online",
        "episode": {"samples": 4, "success": "step(f*y)", "reward": "step(n - T + 0.5)"},
        "rule": "-((1 + penalty)*R - penalty)*sign(w)",
    },
    "parameters": {"penalty": 0.2},
    "start": {"norm": 1.0, "overlap": 0.3},
}
FORGETS = {"start": 1.0, "rate": "(a[1] - slow)/3"}


def trained(tables=TWO, **training):
    return {**tables, "training": {**ONLINE, **training}}


def remembered(rate, limit="online", **training):
    speed = {"step": "0.4/sqrt(b2)"} if limit == "online" else {"rates": "1/sqrt(b2)", "step": 1e-3}
    teacher = TWO if limit == "online" else {**TWO, "teacher": {"units": 2}}
    memory = {"b2": {"start": 0.3, "rate": rate}, "slow": FORGETS}
    return {**trained(teacher, **{"limit": limit, **speed, **training}), "memory": memory}


def staged(step):
    return {**trained(), "stage": [{"name": "first", "until": 2}, {"name": "second", "until": 4, "step": step}]}


def sloped(beta):
    tables = {"student": {"unit": "erf(beta*w)", "units": 2}, "teacher": {"unit": "erf(w)", "units": 2, "noise": 0.1}}
    return {**trained(tables), "parameters": {"beta": beta}}


def noisy(law):
    return trained({"student": {"unit": "w"}, "teacher": {"noise": law}})


def looked(tables):
    return {**tables, "training": {**ONLINE, "look": {"size": 0.3, "use": "last"}}}


def predicted(text):
    return trained({"student": {**ERF, "prediction": text}, "teacher": {"units": 2, "noise": 0.1}})


GIANT = {**ONE, "training": {"limit": "batch", "step": 0.5, "batch": "3*d"}}
# Name: the declaration, the claim, numbers of the broken equations, and the declaration of the broken equations.
DECLARATIONS = {
    "rates": (trained(rates={"a": 0.5}), "drift", {"rate_a": 0.55}, None),
    "a schedule": (trained(step="0.4/(1 + t)"), "drift", {}, trained(step="0.44/(1 + t)")),
    "a batch that grows": (trained(batch=[[0, 1], [5, 8]]), "second-order", {}, trained(batch=[[0, 2], [5, 8]])),
    "a number that changes": (sloped("0.5 + 0.5*exp(-t)"), "drift", {}, sloped("0.55 + 0.5*exp(-t)")),
    "a memory": (remembered("g2"), "memories", {}, remembered("1.1*g2")),
    "a memory of a flow": (
        remembered("g2_w + 0.1*M_ww[1,1]", "flow"), "memories", {}, remembered("1.1*g2_w + 0.1*M_ww[1,1]", "flow")
    ),
    "a rule": (trained(rule="clip(dl, 0.5)*dphi"), "own-points", {}, trained(rule="clip(dl, 0.6)*dphi")),
    "a law of noise": (noisy("sign(xi)*abs(xi)"), "second-order", {}, noisy("1.1*sign(xi)*abs(xi)")),
    "heads": (
        trained(HEADS, head="one", trained=["w", "a"]), "drift", {}, trained(HEADS, head="two", trained=["w", "a"])
    ),
    "stages": (staged(0.2), "drift-second", {"step": 0.22}, None),
    "momentum with a time": (trained(momentum={"time": 2.0}), "drift", {"momentum_time": 2.2}, None),
    "two looks": (looked(ONE), "own-points", {"look_size": 0.33}, None),
    "giant steps": (GIANT, "drift", {"step": 0.55}, None),
    "a prediction": (predicted("f^2"), "own-points", {}, predicted("1.1*f^2")),
    "an episode": (EPISODE, "drift", {"penalty": 0.25}, None),
    "a decay that falls": (trained(decay="0.3*exp(-t)"), "drift", {}, trained(decay="0.2*exp(-t)")),
}  # fmt: skip


@pytest.mark.parametrize("name", DECLARATIONS)
def test_training_is_confirmed_and_refuted_where_it_is_broken(name, monkeypatch):
    tables, claim, given, other = DECLARATIONS[name]
    system = odesim.declare(name="trained", **tables)
    assert answer(system, claim) == "confirmed"
    real, kind = Laboratory.functions, None if other is None else odesim.declare(name="trained", **other).parameters

    def broken(self, initial, tier=None, stage=None):
        parameters = initial.parameters
        if kind is not None:
            values = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}
            parameters = kind(**values)
        parameters = dataclasses.replace(parameters, **given)
        return real(self, dataclasses.replace(initial, parameters=parameters), tier, stage)

    monkeypatch.setattr(Laboratory, "functions", broken)
    assert answer(system, claim) == "refuted"
