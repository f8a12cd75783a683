"""Flows at random parameters against SciPy at 1e-13: `python -m tests.faults.numbers --cases 40 [--system NAME/TIER]`.

Parameters are drawn from their declared domains, near their defaults; horizons and seeds too.  The reference is
SciPy's DOP853 on the compiled right-hand side.  A case is wrong where a completed run holds what is no number, or is
farther from the reference than ten times its tolerance, or than ten times what the flow itself makes of a saved state
that is one tolerance off, where that is more: an error made early in an escape grows with the escape, and what a large
entry may be off by moves the small ones.  Solvers hold the root mean square over the entries of a state to the
tolerance: where that is within ten of them and one entry is not, it is counted apart.
"""

import argparse
import collections
import dataclasses
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.integrate

import derivations
from derivations.contract import Dynamics, Recursion, Stepped, System
from odesim.errors import NumericalError, UsageError
from odesim.flow import solve
from odesim.flow.problem import prepare
from odesim.request.case import Case

BAR = 10.0
EVALUATIONS = 200_000
"""A reference that takes more of them, or longer than --seconds, is given up, and counted as such."""


class TooLong(Exception):
    """A reference that would take too long."""


def main() -> int:
    """Draw, integrate twice, compare, print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.numbers", description=__doc__)
    parser.add_argument(
        "--system", action="append", help="a name, with /TIER for one tier, or a file of a declared model"
    )
    parser.add_argument("--cases", type=int, default=40, help="of every stage and tier")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="of every stage and tier")
    parser.add_argument("--seconds", type=float, default=20.0, help="of a reference")
    parser.add_argument("--horizon", type=float, default=1.0, help="what the drawn horizons are multiplied by")
    parser.add_argument("--largest", type=int, default=0, help="no size is larger (0: near its default)")
    options = parser.parse_args()
    wrong = 0
    for word in options.system or derivations.names():
        name, _, only = (word, "", "") if word.endswith(".toml") else word.partition("/")
        system = derivations.system(name)
        for stage in system.stages:
            for tier in stage.tiers if isinstance(stage, Dynamics) else ():
                if only in ("", tier):
                    wrong += show(system, stage.name, tier, options)
    return 1 if wrong else 0


def show(system: System, stage: str, tier: str, options: argparse.Namespace) -> int:
    """Run the cases of a tier and print a line, and one more for every wrong case."""
    rng = np.random.default_rng([options.seed, *map(ord, f"{system.name}/{stage}/{tier}")])
    tally: collections.Counter[str] = collections.Counter()
    worst, began = 0.0, time.perf_counter()
    for case in drawn(system, stage, tier, rng, options):
        if time.perf_counter() - began > 60.0 * options.minutes:
            break
        try:
            kind, ratio = compare(case, options.seconds)
        except UsageError:
            kind, ratio = "refused", 0.0
        except Exception as error:
            kind, ratio = f"RAISED {type(error).__name__}", np.inf
        tally[kind] += 1
        worst = max(worst, ratio if kind in ("good", "amplified", "single entries", "WRONG") else 0.0)
        if kind.isupper() or kind.startswith("RAISED"):
            given = {f: getattr(case.parameters, f) for f in sorted(case.explicit)}
            print(f"    {kind} {ratio:.3g}: {given}, until {case.until:.6g}, seed {case.seed}, rtol {case.rtol:g}")
    counts = ", ".join(f"{n} {kind}" for kind, n in tally.most_common())
    print(f"{system.name} {stage} {tier}: {counts}; worst error {worst:.2g} tolerances", flush=True)
    return sum(n for kind, n in tally.items() if kind[0].isupper())


def drawn(
    system: System, stage: str, tier: str, rng: np.random.Generator, wanted: argparse.Namespace
) -> Iterator[Case]:
    """Cases at random parameters, horizons, tolerances and seeds; what the program refuses is drawn anew."""
    made = tries = 0
    while made < wanted.cases and tries < 50 * wanted.cases:
        tries += 1
        given = {
            f.name: value
            for f in dataclasses.fields(system.parameters)
            if (value := draw(f, rng, wanted.largest)) is not None
        }
        given.pop("tier", None)
        options: dict[str, Any] = {"stage": stage, "seed": int(rng.integers(1000)), "save_points": 5}
        options["rtol"] = float(rng.choice([1e-6, 1e-8, 1e-10]))
        try:
            case = Case.build(system, {**given, "tier": tier}, **options)
            until = case.until * wanted.horizon * float(10.0 ** rng.uniform(-2.0, -0.3))
            case = Case.build(system, {**given, "tier": tier}, **options, until=until)
            prepare(case)
        except UsageError:
            continue
        made += 1
        yield case


def draw(field: Any, rng: np.random.Generator, largest: int = 0) -> Any:
    """A value of a parameter within its domain, or `None` for its default; whole numbers up to `largest` if given."""
    domain, default = field.metadata, field.default
    if largest and isinstance(default, int) and not isinstance(default, bool) and default > largest:
        return int(max(np.exp(rng.uniform(0.0, np.log(largest + 1.0))), domain.get("minimum") or 1))
    if rng.random() < 0.6 or default is None or isinstance(default, tuple):
        return None
    if domain.get("choices"):
        return str(rng.choice(domain["choices"]))
    if isinstance(default, bool):
        return bool(rng.random() < 0.5)
    low = max(
        v for v in (domain.get("minimum"), domain.get("above"), 0.0 if default >= 0 else -np.inf) if v is not None
    )
    high = domain.get("maximum") if domain.get("maximum") is not None else np.inf
    if isinstance(default, int):
        return int(np.clip(np.exp(rng.uniform(0.0, np.log(2.0 * max(default, 6)))), low, high))
    scale = default if default else 0.3
    return float(np.clip(scale * np.exp(rng.uniform(-1.2, 1.2)), low + 1e-9 * (domain.get("above") is not None), high))


def compare(case: Case, seconds: float) -> tuple[str, float]:
    """The outcome of a case, and its error in units of its tolerance; a reference takes `seconds` at most."""
    problem = prepare(case)
    if isinstance(problem.equations.advance, Recursion | Stepped):
        return "steps of their own", 0.0
    run = solve.solve(case)
    states = [{name: v.values[k] for name, v in run.state.items()} for k in range(len(run.time))]
    found = np.array([problem.equations.layout.pack(state) for state in states])
    if run.outcome.kind == "completed" and not np.isfinite(found).all():
        return "NOT FINITE", np.inf
    if run.outcome.kind != "completed":
        return run.outcome.kind, 0.0
    rtol, atol, times = problem.rtol, problem.atol, np.asarray(run.time)
    try:
        exact = reference(problem, problem.start, times, seconds)
        ratio = float((np.abs(found - exact) / (atol + rtol * np.abs(exact))).max())
        if ratio > BAR:
            allowed = atol + rtol * np.abs(exact)
            signs = np.random.default_rng(case.seed).choice([-1.0, 1.0], problem.start.size)
            moved = (
                reference(problem, exact[k] + signs * allowed[k], times[k:], seconds) for k in range(len(times) - 1)
            )
            growth = max(float((np.abs(of - exact[k:]) / allowed[k:]).max()) for k, of in enumerate(moved))
            if ratio <= BAR * growth:
                return "amplified", ratio
            mean = float(np.sqrt((((found - exact) / allowed) ** 2).mean(axis=1)).max())
            return ("single entries" if mean <= BAR else "WRONG"), ratio
    except TooLong:
        return "no reference", 0.0
    return "good", ratio


def reference(problem: Any, start: np.ndarray, times: np.ndarray, seconds: float) -> np.ndarray:
    """The states at `times` from a start at the first of them, at a relative tolerance of 1e-13."""
    slope, calls, began = problem.slope(), [0], time.perf_counter()

    def counted(t: float, y: np.ndarray) -> np.ndarray:
        calls[0] += 1
        if calls[0] > EVALUATIONS or time.perf_counter() - began > seconds:
            raise TooLong
        return np.array(slope(t, np.ascontiguousarray(y)))

    scale = max(float(problem.initial.scale), 1e-300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = scipy.integrate.solve_ivp(
            counted, (float(times[0]), float(times[-1])), start, "DOP853", times, rtol=1e-13, atol=1e-15 * scale
        )
    if not done.success:
        raise NumericalError(done.message)
    return done.y.T


if __name__ == "__main__":
    sys.exit(main())
