"""Reasons that the dynamics of a declared model closes: method and error of each term."""

from typing import Any

import numpy as np

from derivations.declare import episodes, exact, population, quadrature, sampled, series
from derivations.declare.declaration import Declaration
from derivations.declare.gates import Open, shape
from derivations.declare.initial import enter
from derivations.declare.kernels import Kernels, values
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.tiers import on_grid
from derivations.statement import Statement

ROUNDING = "exact to rounding (about 1e-15 of the largest term)"


def explained(parameters: Any, tier: str, kernels: Kernels) -> list[str]:
    """Sentences: assumptions of the dynamics, one line for every kind of mean, and the bound of the worst."""
    declared: Declaration = parameters.declaration
    if tier == "leading":
        from derivations.declare import leading

        k, _ = leading.growth(parameters)
        return [
            f"tier leading: the lowest order in small overlaps, of degree {k} (the information exponent)",
            "it closes because before students meet each other every overlap grows by itself",
            f"neglected: {leading.NEGLECTED}; {leading.law(k)}",
        ]
    lines = ["the inputs are Gaussian: every mean depends only on the overlaps of the vectors"]
    lines += _rules(declared)
    if tier == "exact" and on_grid(parameters):
        nodes = quadrature.nodes(parameters)
        count = 0 if nodes is None else len(nodes[1])
        subject = "looks" if declared.look is not None else "rules"
        lines.append(f"{subject}, units and noise are polynomials: means over {count} Gauss-Hermite nodes, {ROUNDING}")
        return lines
    if missing := kernels.closed or population.open_here(parameters):
        lines.append(f"no closed form: {missing}")
    elif tier == "sampled":
        lines.append("means of pairs of units have closed forms, which tier sampled does not use")
    else:
        lines += _pairs(parameters, kernels)
    if tier == "sampled":
        lines.append("all means are taken over randomised quasi-random points (tier sampled)")
        lines.append(_measured(parameters, None))
    if declared.noisy and not missing and tier != "sampled":
        lines += _second(parameters, tier, kernels)
    return lines


def _rules(declared: Declaration) -> list[str]:
    """Return the reasons that rules and looks close as a gradient does, if there are any."""
    lines = []
    if declared.look is not None:
        lines.append(
            "a virtual step moves fields by r = |x|^2/d, which is 1: E[c z] and E[c c] are functions of overlaps"
        )
    if declared.rules:
        named = ", ".join(rule.name for rule in declared.rules)
        lines.append(
            f"{named} move by rules: E[c z] and E[c c] are functions of the overlaps, even if c is not a derivative"
        )
    if declared.episode is not None:
        lines.append(
            "samples of an episode are independent: given the success of one, the number of successes among the others "
            "is binomial"
        )
    return lines


def _pairs(parameters: Any, kernels: Kernels) -> list[str]:
    """The means of pairs of units: their method by kind of unit, and its error."""
    declared = parameters.declaration
    lines = [f"{declared.loss} loss: a sum over pairs of units, of K = E[phi_i phi_k] and its derivatives (Price)"]
    for number, group in enumerate(declared.groups):
        side = "student" if number < len(declared.students) else "teacher"
        lines.append(f"  {side} {group.text}: {_kind(declared, number, parameters)}")
    if any(kernels.pairs):
        worst, terms = series.bound(declared, kernels, numbers(parameters))
        lines.append("means of two gates: their series in the correlation at unit variance")
        lines.append(f"  {terms} terms; worst bound of the truncation {worst:.1e} of the largest value")
    else:
        lines.append(f"means of pairs of units: closed forms, {ROUNDING}")
    return lines


def _kind(declared: Declaration, number: int, parameters: Any) -> str:
    """The class of a unit in the derivation."""
    group = declared.groups[number]
    student = number < len(declared.students)
    try:
        unit_shape = shape(group, values(declared, numbers(parameters)), declared.weights == "normalised" and student)
    except Open as reason:
        return str(reason)
    if not unit_shape.gates:
        return "a polynomial: Isserlis, a finite sum"
    degree = max(sum(term.powers) for term in unit_shape.value)
    gates = ", ".join(dict.fromkeys(gate.kind for gate in unit_shape.gates))
    return f"{gates} times a polynomial of degree {degree}: Stein's lemma, then means of gates alone" if degree else (
        f"{gates}: means of one or two gates"
    )  # fmt: skip


def _second(parameters: Any, tier: str, kernels: Kernels) -> list[str]:
    if not kernels.second and tier == "exact":
        method = (
            "normal orthants of a tilted distribution"
            if parameters.declaration.moved
            else "arcsines of a tilted covariance"
        )
        method = method if kernels.tilts else "Isserlis and closed forms"
        if episodes.reads(parameters.declaration):
            return [
                f"second-order term E[c c]: means over one student and one teacher, as those of the drift, {ROUNDING}"
            ]
        return [f"second-order term E[c c], means of four units: {method}, {ROUNDING}"]
    lines = [f"second-order term: {kernels.second}"] if kernels.second else []
    if tier == "mixed":
        lines += ["  it is sampled (tier mixed)", _measured(parameters, exact.statement(parameters, second=False))]
    return lines


def _measured(parameters: Any, statement: Statement | None) -> str:
    """The error of the sampled derivative at the start of seed 0, from independent randomisations."""
    initial = enter(parameters, None, np.random.default_rng(0))
    error = sampled.relative_error(statement, initial, initial.state)
    error_text = f"{error:.1e} of the derivative" if error is not None else "all of the derivative"
    return (
        f"  error of {parameters.points} points at a start of {rows(parameters).total} vectors, by the scatter of "
        f"independent randomisations: {error_text}"
    )
