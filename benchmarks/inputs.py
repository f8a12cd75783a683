"""Inputs with eigenvalues: right-hand sides by blocks, spectra of a million coordinates, steps of compressed SGD."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Row, child, compare

BLOCKS = 128
FEW = 32
"""Blocks of compressed SGD, whose step takes each of them in turn."""
MILLION = 10**6


def rows(quick: bool) -> list[Row]:
    """Each beside the same with one block, or in a small dimension."""
    rounds = 20 if quick else 200
    return [*_right_hand_sides(rounds), *_from_file(), _step(5 if quick else 25), _memory()]


def _declared(unit: str, units: int, blocks: int, limit: str = "online") -> Any:
    """A committee on inputs with so many blocks of one size and eigenvalues from 1 to 2."""
    import odesim

    eigenvalues = np.linspace(2.0, 1.0, blocks)
    return odesim.declare(
        student={"unit": unit, "units": units}, teacher={"units": units, "noise": 0.1},
        training={"limit": limit, "step": 0.3}, start={"norm": 0.7},
        inputs={"blocks": [[float(x), f"1/{blocks}"] for x in eigenvalues]},
    )  # fmt: skip


def _right_hand_sides(rounds: int) -> list[Row]:
    from benchmarks.declared import _problem

    found = []
    for word, unit in (("linear", "w"), ("erf", "erf(w/sqrt(2))")):
        problems = {count: _problem(_declared(unit, 2, count), {"d": 12_800}) for count in (1, BLOCKS)}
        slopes = {count: (problem.slope(), problem.start) for count, problem in problems.items()}
        times = compare({str(k): lambda s=s, y=y: s(0.0, y) for k, (s, y) in slopes.items()}, rounds)
        one, many = times["1"], times[str(BLOCKS)]
        bar = 1.5 * one.median + 3e-6
        found.append(Row(
            f"right-hand side of a {word} committee, K = M = 2, online, {BLOCKS} blocks", many.median, many.spread,
            "one block", one.median,
            note=f"bar 1.5 times one block plus 3 us, {1e6 * bar:.2g} us: {'met' if many.median <= bar else 'missed'}",
        ))  # fmt: skip
    return found


def _from_file() -> list[Row]:
    """From a file to a trajectory, in a process that has run such a model before."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.save(place / "spectrum.npy", np.arange(1, MILLION + 1.0) ** -1.5)
        for word, spectrum in (("an expression", "j^(-1.5)"), ("10^6 eigenvalues in a file", "spectrum.npy")):
            (place / "power.toml").write_text(
                f'[student]\nunit = "w"\n[teacher]\nspread = "j^(-0.75)"\n[inputs]\nspectrum = "{spectrum}"\n'
                "[start]\nnorm = 1e-9\noverlap = 0.0\n"
            )
            seconds = child(f"benchmarks.inputs:trajectory_seconds({str(place / 'power.toml')!r})")
            found.append(Row(
                f"power law of 10^6 coordinates by {word}, from the file to time 1e4", seconds,
                note=f"bar 3 s after a warm start; {BLOCKS} blocks, their error among it",
            ))  # fmt: skip
    return found


def trajectory_seconds(file: str) -> float:
    """Seconds of reading a declaration and integrating it, after a run of a small model of the same form."""
    import odesim

    small = odesim.declare(
        student={"unit": "w"}, teacher={"spread": "j^(-0.75)"}, inputs={"spectrum": "j^(-1.4)"},
        start={"norm": 1e-9, "overlap": 0.0},
    )  # fmt: skip
    odesim.integrate(small, d=1000, until=1e4)
    began = time.perf_counter()
    odesim.integrate(odesim.system(file), d=MILLION, until=1e4)
    return time.perf_counter() - began


def _step(rounds: int) -> Row:
    """A step of compressed SGD, n = 4, in the middle of a long call."""
    from odesim.machine.device import double

    with double():
        return _step_in_double(rounds)


def _step_in_double(rounds: int) -> Row:
    from odesim.request.case import Case
    from odesim.sgd.simulation import Simulation, condition_of, make_engine

    calls, steps = {}, 400
    for count in (1, FEW):
        system = _declared("erf(w/sqrt(2))", 2, count)
        simulation = Simulation.build(Case.build(system, {"d": 12_800}, until=1.0), method="compressed")
        model = system.dynamics(system.stages[0].name).truth(simulation.case.parameters)
        engine, _ = make_engine(simulation, model, [condition_of(simulation)], None)
        calls[str(count)] = lambda engine=engine: engine.advance(steps)
    times = compare(calls, rounds)
    one, many = times["1"], times[str(FEW)]
    return Row(
        f"compressed SGD, erf committee, n = 4, {FEW} blocks, batch 1, per step", many.median / steps,
        many.spread / steps, "one block", one.median / steps,
        note=f"bar 40 times one block: {many.median / one.median:.1f}; JAX, one replica",
    )  # fmt: skip


def _memory() -> Row:
    """Peak memory of a process that integrates a power law at two dimensions."""
    small, large = (child(f"benchmarks.inputs:flow_memory({d})") for d in (10**3, 10**12))
    note = (
        f"peak memory of the process {large['bytes'] / 1e6:.0f} MB, at d = 1e3 {small['bytes'] / 1e6:.0f} MB: "
        f"bar the same, {'met' if large['bytes'] < 1.05 * small['bytes'] else 'missed'}"
    )
    return Row("flow of a power law at d = 1e12", large["seconds"], None, "d = 1e3", small["seconds"], note=note)


def flow_memory(d: int) -> dict[str, float]:
    """Seconds of a flow and the peak memory of this process."""
    import resource

    import odesim

    system = odesim.declare(
        student={"unit": "w"}, teacher={}, inputs={"spectrum": "j^(-1.5)"}, start={"norm": 1e-9, "overlap": 0.0}
    )
    began = time.perf_counter()
    odesim.integrate(system, d=d, until=100)
    return {
        "seconds": time.perf_counter() - began,
        "bytes": 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
