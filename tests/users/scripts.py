# pyright: strict
"""Scripts as users write them, which `make check` reads with pyright in strict mode; a test runs them."""

from pathlib import Path

import numpy as np

import odesim


def a_flow(d: int) -> float:
    """The last overlap of the first expert with the first teacher."""
    run: odesim.Trajectory = odesim.integrate("liao", m=3, m_star=1, d=d, until="0.1*sqrt(d)", seed=1)
    overlaps = run["gamma2"]
    if run.outcome.kind != "completed":
        raise RuntimeError(run.outcome.reason)
    return float(overlaps[-1, 0, 0])


def going_on(until: float) -> np.ndarray:
    """Times of a run that was continued."""
    run: odesim.Trajectory = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
    later: odesim.Trajectory = run.continue_(until=until)
    return np.concatenate([run.time, later.time])


def flow_against_sgd(replicas: int) -> int:
    """Number of replicas in a comparison."""
    sgd = odesim.simulate(
        "liao", method="compressed", step_size=0.01, batch=16, seeds=replicas, m=2, m_star=1, d=50, until=0.5
    )
    flow: odesim.Trajectory = odesim.integrate("liao", m=2, m_star=1, d=50, until=0.5)
    return int(odesim.compare(flow, sgd).overall.size)


def kept(folder: Path) -> str:
    """The outcome of a stored run."""
    run: odesim.Trajectory = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0)
    run.save(folder, pictures=False)
    stored: odesim.Run = odesim.load(folder)
    return stored.outcome.kind


def answers(system: str, claim: str) -> list[str]:
    """The answers on a claim in all its forms."""
    return [verdict.answer for verdict in odesim.verify(system, claim)]


def parameters(name: str) -> list[str]:
    """The stages of a system."""
    system: odesim.System = odesim.system(name)
    return [stage.name for stage in system.stages]


def grid() -> tuple[int, ...]:
    """The shape of a sweep."""
    data = odesim.sweep("liao", {"d": [100, 200], "seed": [0, 1, 2]}, m=2, m_star=1, tier="riccati", until=2.0)
    return data["outcome"].shape


def mistake() -> str:
    """The sentence of a mistake."""
    try:
        odesim.integrate("liao", untill=3)
    except odesim.UsageError as error:
        return str(error)
    return ""
