"""Answers compared with simulations: bands and runs of SGD, derivatives and flows; stationary points of a committee."""

import time
from typing import Any

from benchmarks.measure import Row, child, compare

ERF = {"unit": "erf(w/sqrt(2))", "units": 3}
RUNS = 400
"""Runs of compressed SGD that determine a variance to 7 %."""
D, UNTIL = 1000, 20.0
AFTER, PARAMETERS = 150.0, ("noise", "step", "overlap", "norm")


def rows(quick: bool) -> list[Row]:
    """Each in separate processes, as for a user."""
    return [*_bands(quick), _sensitivity(quick), _atlas(quick)]


def committee() -> Any:
    """An erf committee, K = M = 3, in the online limit, away from its plateau."""
    import odesim

    return odesim.declare(
        student=ERF, teacher={**ERF, "noise": 0.1}, training={"limit": "online", "step": 0.5},
        start={"norm": 0.5, "overlap": 0.3},
    )  # fmt: skip


def _bands(quick: bool) -> list[Row]:
    runs = 20 if quick else RUNS
    seconds = child(f"benchmarks.answers:bands_seconds({runs})")
    peer = f"{runs} runs of compressed SGD"
    name = f"bands of an erf committee, K = M = 3, d = {D}, to time {UNTIL:g}"
    return [
        Row(f"{name}, the first time", seconds["first"], peer=peer, peer_seconds=seconds["runs"],
            note="bar 10 s; derivation and compilation among it"),
        Row(f"{name}, afterwards", seconds["again"], peer=peer, peer_seconds=seconds["runs"],
            note="bar 3 s; another step size and start"),
    ]  # fmt: skip


def bands_seconds(runs: int) -> dict[str, float]:
    """Seconds of bands in a new process, of a second call, and of equivalent runs of compiled SGD."""
    import odesim

    system = committee()
    began = time.perf_counter()
    odesim.bands(system, d=D, until=UNTIL)
    first = time.perf_counter() - began
    began = time.perf_counter()
    odesim.bands(system, d=D, until=UNTIL, step=0.45, seed=1)
    again = time.perf_counter() - began
    odesim.simulate(system, method="compressed", d=D, until=1.0, seeds=2)
    began = time.perf_counter()
    odesim.simulate(system, method="compressed", d=D, until=UNTIL, seeds=runs)
    return {"first": first, "again": again, "runs": time.perf_counter() - began}


def _sensitivity(quick: bool) -> Row:
    seconds = child(f"benchmarks.answers:sensitivity_seconds({3 if quick else 9})")
    bar = 6 * seconds["flow"]
    return Row(
        f"derivatives of the final error by {len(PARAMETERS)} parameters, erf committee, K = M = 3", seconds["ours"],
        seconds["spread"], "the flow, compiled by JAX, at the same tolerance", seconds["flow"],
        note=f"bar 6 flows, {bar:.2g} s: {'met' if seconds['ours'] <= bar else 'missed'}; once compiled",
    )  # fmt: skip


def sensitivity_seconds(rounds: int) -> dict[str, float]:
    """Seconds of derivatives by parameters, and of the flow alone as the same program integrates it."""
    import numpy as np

    from odesim.machine.device import double
    from odesim.request.case import Case
    from odesim.study import parameter_dependence, sensitivity
    from odesim.study.quantities import read
    from odesim.study.traced_quantities import traced_quantity

    case = Case.build(committee(), {}, until=AFTER, backend=None)
    with double():
        base = parameter_dependence.inputs_of(case)
        quantity = (traced_quantity(base.problem, read("final error")),)
        tangents = np.array([parameter_dependence.tangent(case, base, name) for name in PARAMETERS])
        flow = sensitivity.TracedFlow(base, quantity, forward=True)

        def ours() -> Any:
            return flow.at(case.until, tangents, 0)

        def alone() -> Any:
            return flow.at(case.until, np.zeros((0, tangents.shape[1])), 0)

        times = compare({"ours": ours, "flow": alone}, rounds)
    return {"ours": times["ours"].median, "spread": times["ours"].spread, "flow": times["flow"].median}


def _atlas(quick: bool) -> Row:
    units = 2 if quick else 3
    seconds = child(f"benchmarks.answers:atlas_seconds({units})", timeout=1200.0)
    return Row(
        f"stationary points of an erf committee, K = M = {units}", seconds,
        note="bar 60 s at K = M = 3; loss, stability and symmetry of each, in a new process",
    )  # fmt: skip


def atlas_seconds(units: int) -> float:
    """Seconds of the atlas of a committee of `units` units."""
    import odesim

    unit = {**ERF, "units": units}
    system = odesim.declare(student=unit, teacher=unit, training={"limit": "flow"})
    began = time.perf_counter()
    odesim.atlas(system)
    return time.perf_counter() - began
