"""A tiny system with a known answer, for tests of everything around a run: y' = -rate y, one component."""

import dataclasses
import sys
import types

import numpy as np
import pytest


@pytest.fixture(scope="session")
def tiny():
    """The system `tiny`; its parts live in a module made for the purpose, as those of a real system do."""
    from derivations.contract import Dynamics, Map, Source, System, UsageError, parameter

    @dataclasses.dataclass(frozen=True)
    class Parameters:
        size: int = parameter(3, "number of entries", minimum=1, maximum=1000)
        rate: float = parameter(1.0, "decay rate", above=0.0)
        tier: str = parameter("exact", "level", choices=("exact", "coarse"))
        signs: tuple[int, ...] = parameter((1, -1), "signs")
        table: tuple[tuple[float, ...], ...] = parameter(((1.0,),), "lists of numbers")
        noisy: bool = parameter(False, "a switch")
        note: str | None = parameter(None, "a word")

    def check(parameters):
        if parameters.size == 13:
            raise UsageError("size must not be 13; try 12 or 14.")

    def read(arrays, parameters, explicit):
        if set(arrays) != {"y"}:
            raise UsageError(f"the file must hold the array y, but holds {', '.join(arrays) or 'nothing'}.")
        size = arrays["y"].shape[0]
        if "size" in explicit and parameters.size != size:
            raise UsageError(f"the file has size {size}, but -p size={parameters.size} was given; leave one out.")
        return dataclasses.replace(parameters, size=size)

    parts = types.ModuleType("tiny_system_parts")
    parts.read = read
    sys.modules[parts.__name__] = parts
    stage = {"tiers": ("exact", "coarse"), "equations": "", "enter": "", "clock": "time"}
    return System(
        name="tiny",
        title="exponential decay",
        source=Source("Nobody", "On Decay", "Nowhere", 2026),
        parameters=Parameters,
        presets={"slow": {"rate": 0.1, "size": 5}},
        stages=(
            Dynamics(name="decay", horizon=lambda parameters: 4.0 / parameters.rate, **stage),
            Map(name="prune", apply="", **stage),
        ),
        check=check,
        read_initial="tiny_system_parts:read",
    )


@pytest.fixture
def tiny_run():
    """The exact trajectory of a case of `tiny`, as an integrator would hand it back."""

    def solve(case, progress=None, checkpoint=None, kind="completed"):
        from odesim.request.trajectory import Origin, Outcome, Trajectory, Variable

        time = np.linspace(0.0, case.until, case.save_points)
        start = np.arange(1.0, case.parameters.size + 1)
        values = np.exp(-case.parameters.rate * time)[:, None] * start
        request = case.request()
        return Trajectory(
            time=time,
            state={"y": Variable(("time", "entry"), values, "what decays")},
            extras={"start": Variable(("entry",), start, "where it started")},
            clock="time",
            origin=Origin(
                "tiny", case.stage, case.tier, "flow", request["parameters"], {}, "float64", "cpu", case.seed
            ),
            outcome=Outcome(kind, case.until, "" if kind == "completed" else "a reason."),
            statistics={"steps": 7, "rejected": np.int64(0)},
            summary={"final": float(values[-1, 0]), "never": float("nan")},
            invariants={"sign": 0.0},
        )

    return solve
