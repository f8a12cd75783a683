"""Ensembles on JAX: lanes equal single runs and closed forms, whatever their horizons, and fail by themselves."""

import dataclasses
import sys
import types
from typing import Any

import numpy as np
import pytest

from derivations.contract import (
    Component,
    Crossing,
    Dense,
    Dynamics,
    Equations,
    Initial,
    Layout,
    Smooth,
    Source,
    System,
    UsageError,
    parameter,
)  # fmt: skip
from odesim.flow import ensemble, solve
from odesim.request.case import Case
from odesim.sweeps import sweep

RTOL = 1e-7


@dataclasses.dataclass(frozen=True)
class Rate:
    rate: float = parameter(1.0, "speed", above=0.0)
    size: int = parameter(2, "number of entries", minimum=1)
    tier: str = parameter("exact", "level", choices=("exact",))


def _equations(parameters, tier):
    """y' = rate y^2 from 1, 2, ..: y = y0 / (1 - rate y0 t), infinite at t = 1 / (rate size)."""

    def arrays(xp, kernels):
        return {"flow": lambda t, y, n, rate: rate * y**2, "loss": lambda y, n, rate: (y**2).sum()}

    return Equations(
        tier="exact", advance=Smooth(), structure="bursting", state=(Component("y", ("entry",)),), kernels=dict,
        loops=(), roles={}, arrays=arrays, arguments=lambda initial: (parameters.size, np.array(parameters.rate)),
        layout=Layout((Dense("y", (parameters.size,)),)),
        observe=lambda initial, components: {}, constants=lambda initial: {}, invariants=lambda initial, state: {},
        crossings=(Crossing("T_four", "y", 4.0), Crossing("T_end", "y", 5e3, terminal=True, reason="far enough")),
        summary=lambda initial, trajectory: {}, validity="", neglects="",
    )  # fmt: skip


def _enter(parameters, arrays, rng):
    return Initial(parameters, {"y": np.arange(1.0, parameters.size + 1)}, {}, 1.0)


@pytest.fixture(scope="module")
def bursting():
    """A system whose runs end well, early or badly, according to their rate and horizon."""
    parts: Any = types.ModuleType("bursting_parts")
    parts.equations, parts.enter, parts.check = _equations, _enter, lambda values: None
    sys.modules[parts.__name__] = parts
    stage = Dynamics(
        name="burst", tiers=("exact",), clock="time", horizon=lambda values: 1.0,
        equations="bursting_parts:equations", enter="bursting_parts:enter",
    )  # fmt: skip
    return System(
        name="bursting", title="finite-time blow-up", source=Source("Nobody", "On Bursting", "Nowhere", 2026),
        parameters=Rate, presets={}, stages=(stage,), check=parts.check, read_initial="",
    )  # fmt: skip


def far(equations):
    """The same equations without the crossing that ends a run."""
    return dataclasses.replace(equations, crossings=equations.crossings[:1])


@pytest.mark.parametrize("solver", ["Dopri8", "Kvaerno5"])
def test_lanes_of_very_different_horizons_follow_the_closed_form(bursting, solver):
    ends = {1e-3: 400.0, 1e-1: 1.0, 1e-2: 4.0, 1e-4: 4500.0, 1.0: 0.3}
    cases = [
        Case.build(bursting, {"rate": rate}, until=end, rtol=RTOL, save_points=7, backend="jax", solver=solver)
        for rate, end in ends.items()
    ]
    for run, (rate, end) in zip(ensemble.solve(cases, lanes=2), ends.items(), strict=True):
        start = np.array([1.0, 2.0])
        expected = start / (1.0 - rate * start * np.linspace(0.0, end, 7)[:, None])
        np.testing.assert_allclose(run["y"], expected, rtol=20 * RTOL)
        time = (1.0 - start / 4.0) / (rate * start)
        np.testing.assert_allclose(run["T_four"], np.where(time <= end, time, np.inf), rtol=RTOL)
        assert run.outcome.kind == "completed" and run.outcome.time == end


def test_a_terminal_crossing_ends_its_lane_only(bursting):
    cases = [Case.build(bursting, {"rate": rate}, until=1.0, rtol=RTOL, backend="jax") for rate in (0.1, 1.0)]
    calm, stopped = ensemble.solve(cases)
    assert calm.outcome.kind == "completed"
    assert stopped.outcome.kind == "stopped" and stopped.outcome.reason == "far enough"
    assert stopped.outcome.time == pytest.approx((1.0 - 2.0 / 5e3) / 2.0, rel=RTOL)
    assert stopped["y"][-1, 1] == pytest.approx(5e3)


def test_a_lane_that_fails_keeps_its_last_good_state_and_the_others_go_on(bursting, monkeypatch):
    monkeypatch.setattr(sys.modules["bursting_parts"], "equations", lambda *given: far(_equations(*given)))
    cases = [Case.build(bursting, {"rate": r}, until=1.0, rtol=RTOL, backend="jax") for r in (0.1, 1.0, 1e200)]
    calm, failed, never = ensemble.solve(cases)
    assert calm.outcome.kind == "completed"
    assert calm["y"][-1] == pytest.approx([1 / 0.9, 2 / 0.8])
    assert failed.outcome.kind == "failed"
    assert failed.outcome.time == pytest.approx(0.5, abs=1e-8)  # a pole, to the tolerance
    assert np.isfinite(failed["y"]).all()
    assert failed["T_four"] == pytest.approx([np.inf, 0.25])
    assert never.outcome.kind == "failed" and never.outcome.time < 1e-199


def liao(**changes):
    """Eight short runs, two of them long."""
    ends = {(100, 0): 60.0, (1000, 3): 40.0}
    options = {"backend": "jax", "rtol": RTOL, "save_points": 5, **changes}
    places = [(d, seed) for d in (100, 1000) for seed in range(4)]
    return [
        Case.build("liao", {"m": 3, "m_star": 1, "d": d}, seed=seed, until=ends.get((d, seed), 12.0), **options)
        for d, seed in places
    ]


def agree(run, alone, names, times):
    """Equal outcomes, states and hitting times, to the tolerance."""
    assert run.outcome == alone.outcome
    np.testing.assert_array_equal(run.time, alone.time)
    for name in names:
        np.testing.assert_allclose(run[name], alone[name], atol=3 * RTOL, rtol=0)
    for name in times:
        np.testing.assert_allclose(run[name], alone[name], rtol=RTOL)


@pytest.mark.slow
def test_lanes_of_liao_equal_single_runs():
    cases = liao()
    runs = ensemble.solve(cases, lanes=4)
    assert np.isfinite([run["T_gamma2"] for run in runs]).any()
    assert [run.origin.seed for run in runs] == [case.seed for case in cases]
    for k in (0, 2, 5, 7):  # both long ones, and lanes of the first four and of those that took their places
        alone = solve.solve(cases[k])
        agree(runs[k], alone, ("gamma1", "gamma2", "I1", "I2"), ("T_gamma1", "T_gamma2", "T_I2"))


def test_lanes_of_kawata_equal_single_runs():
    sizes = {"C": 2, "neurons": 4, "k_star": 3}
    options = {"until": 400.0, "rtol": RTOL, "save_points": 5, "backend": "jax"}
    places = [(d, seed) for d in (100, 1000) for seed in (0, 1)]
    cases = [Case.build("kawata", {**sizes, "d": d}, seed=seed, **options) for d, seed in places]
    runs = ensemble.solve(cases)
    assert np.isfinite([run["T_kappa"] for run in runs]).any()
    for run, case in zip(runs, cases, strict=True):
        agree(run, solve.solve(case), ("kappa",), ("T_kappa",))


def test_what_cannot_be_a_lane_is_said():
    with pytest.raises(UsageError, match="backend jax"):
        ensemble.solve([Case.build("liao", {"m": 3, "m_star": 1}, until=1.0)])


@pytest.mark.slow
def test_a_sweep_on_jax_uses_lanes_where_cells_share_a_shape(tmp_path, monkeypatch):
    wanted = sweep.Sweep.build(
        "liao", {"m": (2, 3), "seed": (0, 1, 2, 3)}, {"m_star": 1, "d": 100}, until=12.0, save_points=2, rtol=RTOL,
        backend="jax",
    )  # fmt: skip
    (tmp_path / "cells").mkdir()
    alone = []
    real = sweep.compute
    monkeypatch.setattr(sweep, "compute", lambda *words: alone.append(words) or real(*words))
    for cell in wanted.cells[1:4]:  # of m = 2 one cell is left, which shares its shape with none
        sweep._keep(tmp_path / "cells" / f"{cell.case.digest}.npz", real(*cell.words))
    done = []
    data = sweep.run(wanted, tmp_path, report=lambda k, n: done.append(k))
    assert done == [4, 5, 6, 7, 8] and len(alone) == 1 and alone[0][1]["m"] == 2
    assert (data["outcome"] == "completed").all()
    expected = solve.solve(wanted.cells[6].case)
    final = np.load(tmp_path / "cells" / f"{wanted.cells[6].case.digest}.npz")
    np.testing.assert_allclose(final["final_gamma2"], expected["gamma2"][-1], atol=3 * RTOL)
    np.testing.assert_allclose(final["T_gamma2"], expected["T_gamma2"], rtol=RTOL)
