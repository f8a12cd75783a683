"""The parameters of system `liao`, with their domains; `check` contains conditions on several parameters."""

import dataclasses

from derivations.contract import UsageError, parameter

TIERS = ("exact", "cascade", "riccati", "riccati_paper", "linear")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Sizes, initialisation, level of description, expert degree and gate."""

    m: int = parameter(25, "number of student experts", minimum=1, maximum=2000)
    m_star: int = parameter(5, "number of teacher experts (0: none)", minimum=0, maximum=2000)
    d: int = parameter(1000, "input dimension", minimum=2, maximum=10**15)
    init: str = parameter(
        "random",
        "initial students: random (Assumption 2) or orthogonal (all student overlaps zero, unit norms)",
        choices=("random", "orthogonal"),
        start=True,
    )
    tier: str = parameter("exact", "level of approximation", choices=TIERS)
    degree: int = parameter(3, "degree p of the expert nonlinearity He_p", minimum=2, maximum=6)
    gate: str = parameter("logistic", "gate function of the router", choices=("logistic", "probit"))
    temperature: float = parameter(
        1.0, "beta of the gate pi(beta x); its series reaches up to about 3", above=0.0, maximum=20.0
    )
    prune_samples: int = parameter(0, "stage prune: samples that estimate the loss (0: its closed form)", minimum=0)
    renormalise: bool = parameter(False, "SGD: restore the norm of every row after each step (the flow conserves it)")


def check(parameters: Parameters, drawn: bool = True) -> None:
    """Raise `UsageError` when the parameters do not fit together.

    A random initial condition (`drawn`) has 2 m students in general position and 2 m_star orthonormal teacher vectors,
    so d >= 2 m + 2 m_star is needed (weights from a file may be linearly dependent); the linear tier describes a
    recovered student, m = m_star.
    """
    if parameters.m_star > parameters.m:
        raise UsageError(
            f"m_star must be at most m, but m_star = {parameters.m_star} and m = {parameters.m}: "
            "a student cannot have fewer experts than its teacher"
        )
    needed = 2 * parameters.m + 2 * parameters.m_star
    if drawn and parameters.d < needed:
        raise UsageError(
            f"d must be at least 2 m + 2 m_star = {needed}, but d = {parameters.d}: choose a larger d or fewer experts"
        )
    if parameters.tier == "linear" and parameters.m != parameters.m_star:
        raise UsageError(
            f"tier linear needs m = m_star, but m = {parameters.m} and m_star = {parameters.m_star}: it is the "
            "linearisation at the optimum, at which every student equals its teacher"
        )
