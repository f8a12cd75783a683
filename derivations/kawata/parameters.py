"""The parameters of system `kawata`, with their domains; `check` contains conditions on several parameters."""

import dataclasses
import math

from derivations.contract import UsageError, parameter

ACTIVATIONS = ("relu", "polynomial", "erf", "exp", "cos", "probit")
TIERS = ("exact", "paper", "R1", "R2", "R3", "R4", "gated", "effective")
MOST_DEGREE = 12
MOST_NEURONS = 10**6


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Data (clusters, tasks, noise), student (experts, neurons, activation, bias) and level of description."""

    C: int = parameter(2, "number of clusters", minimum=1, maximum=64)
    M: int = parameter(1, "number of experts (1: the vanilla network)", minimum=1, maximum=1000)
    J: int = parameter(1, "neurons per expert: the network has the factor 1/J", minimum=1, maximum=10**9)
    k_star: int | None = parameter(
        None, "information exponent of the links; without links h_k_star (4 if not given)", minimum=2, maximum=12
    )
    rho: float = parameter(1.0, "distance of the cluster means from the origin: x = rho v_c + z", minimum=0.0)
    d: int = parameter(1000, "input dimension", minimum=2, maximum=10**15)
    s: tuple[float, ...] = parameter((), "weights s_c of the global task in the clusters; empty: 1, -1, 0, 0, ...")
    zeta: float = parameter(0.0, "standard deviation of the label noise", minimum=0.0)
    activation: str = parameter("relu", "activation of the neurons", choices=ACTIVATIONS)
    sigma: tuple[float, ...] = parameter(
        (), "activation=polynomial: its orthonormal Hermite coefficients by degree; empty: h_k for k from k* to p*"
    )
    signs: bool = parameter(False, "activation=polynomial: each neuron has a random sign for each degree")
    bias: tuple[float, ...] = parameter(
        (-1.5, 1.5), "biases of the neurons: one number for all, or the two ends of a uniform distribution"
    )
    link: tuple[tuple[float, ...], ...] = parameter(
        (), "C + 1 lists of orthonormal Hermite coefficients by degree: f_1, .., f_C, g; empty: all h_k_star"
    )
    tier: str = parameter("exact", "level of approximation", choices=TIERS)
    eta: float = parameter(0.0, "tier effective: step size of SGD", minimum=0.0)
    neurons: int = parameter(
        0, "number of neurons that are computed (0: all M J); every subset is exact in law", minimum=0
    )
    orthogonal: bool = parameter(
        True, "True: teacher vectors and means are orthonormal; False: they are independent random directions"
    )
    threshold: float = parameter(0.5, "overlap from which a task counts as recovered", above=0.0, maximum=1.0)
    routing: str = parameter(
        "gate",
        "stage phase3: an expert gets the clusters that the gate sends to it, or one cluster each (perfect)",
        choices=("gate", "perfect"),
    )
    eta_gate: float = parameter(1.0, "stage phase2: step size of the gate", above=0.0)
    gate_samples: int = parameter(
        0, "stage phase2: number of samples in the batch (0: the population gradient)", minimum=0
    )
    gate_time: float = parameter(
        0.0,
        "stage phase2: 0: one step; otherwise many small steps up to this time, with scores replaced by their means",
        minimum=0.0,
    )
    gate_noise: float = parameter(1.0, "stage phase2 with gate_time: scale of the noise added to the scores", above=0.0)
    width3: int = parameter(0, "neurons per expert from stage phase3 on (0: J)", minimum=0)
    redraw_bias: bool = parameter(False, "stage phase3: draw new biases as well")
    ridge: float = parameter(1e-6, "stage phase4: ridge parameter lambda", minimum=0.0)
    ridge_samples: int = parameter(
        20_000, "stage phase4: training samples (0: infinitely many, for perfect routing or one expert)", minimum=0
    )
    ridge_bias: tuple[float, ...] = parameter(
        (), "stage phase4: distribution of the new biases, in the form of bias; empty: that of bias"
    )
    test_samples: int = parameter(20_000, "stage phase4: samples on which the error is measured", minimum=100)


def links(p: Parameters) -> tuple[tuple[float, ...], ...]:
    """The C + 1 links as orthonormal coefficients by degree, all of one length."""
    given = p.link or ((0.0,) * (p.k_star or 4) + (1.0,),) * (p.C + 1)
    length = max(len(row) for row in given)
    return tuple(tuple(row) + (0.0,) * (length - len(row)) for row in given)


def weights_of_global(p: Parameters) -> tuple[float, ...]:
    """The weights s_c: those of the user, or (1, -1, 0, ...); 0 for a single cluster, because their sum must vanish."""
    if p.s:
        return p.s
    return (0.0,) if p.C == 1 else (1.0, -1.0) + (0.0,) * (p.C - 2)


def information_exponent(coefficients: tuple[float, ...]) -> int | None:
    """The degree of the first coefficient that is not zero; `None` for the zero function."""
    return next((i for i, value in enumerate(coefficients) if value != 0), None)


def exponent(p: Parameters) -> int:
    """The information exponent: that of the user, or the smallest of the nonzero links."""
    if p.k_star is not None:
        return p.k_star
    found = [k for k in map(information_exponent, links(p)) if k is not None]
    return max(min(found), 1) if found else 4


def degree(p: Parameters) -> int:
    """The largest degree p* of the links."""
    return len(links(p)[0]) - 1


def table_degree(p: Parameters) -> int:
    """The degree of the flow's tables: one compiled module serves all links up to degree 6."""
    return 6 if degree(p) <= 6 else MOST_DEGREE


def activation_series(p: Parameters) -> tuple[float, ...]:
    """The orthonormal coefficients of a polynomial activation: those of the user, or ones from k* to p*."""
    if p.sigma:
        return p.sigma
    low, high = exponent(p), degree(p)
    return (0.0,) * low + (1.0,) * (max(high, low) - low + 1)


def count(p: Parameters) -> int:
    """Number of neurons that are computed."""
    return p.neurons or p.M * p.J


def check(p: Parameters, drawn: bool = True) -> None:
    """Raise `UsageError` for parameters that do not fit together.

    A random initial condition (`drawn`) needs dimensions for the 2C + 1 fixed vectors and one neuron: d >= 2C + 2.
    """
    if len(weights_of_global(p)) != p.C:
        raise UsageError(f"s must have one weight for each of the C = {p.C} clusters, but has {len(p.s)}")
    if not all(map(math.isfinite, p.s)):
        raise UsageError("the weights s must be finite numbers")
    for name, law in (("bias", p.bias), ("ridge_bias", p.ridge_bias or p.bias)):
        if len(law) not in (1, 2) or not all(map(math.isfinite, law)) or law[0] > law[-1]:
            raise UsageError(
                f"{name} must be one number, or the two ends of an interval in increasing order, but is {list(law)}"
            )
    if p.sigma and p.activation != "polynomial":
        raise UsageError(
            f"sigma contains the coefficients of activation=polynomial, but the activation is {p.activation}"
        )
    if p.signs and p.activation != "polynomial":
        raise UsageError(f"signs belong to activation=polynomial, but the activation is {p.activation}")
    if len(p.sigma) > MOST_DEGREE + 4:
        raise UsageError(f"sigma may reach degree {MOST_DEGREE + 3}, but has degree {len(p.sigma) - 1}")
    if p.gate_time and p.gate_samples:
        raise UsageError("gate_time follows the population equation of many steps: omit gate_samples")
    _check_links(p)
    _check_tier(p)
    if count(p) > MOST_NEURONS:
        asked = f"neurons = {p.neurons}" if p.neurons else f"M J = {p.M * p.J} neurons"
        raise UsageError(
            f"expected at most {MOST_NEURONS} neurons because of the memory, got {asked}: compute fewer with "
            "-p neurons=N"
        )
    if drawn and p.d < 2 * p.C + 2:
        raise UsageError(
            f"d must be at least 2 C + 2 = {2 * p.C + 2} (C + 1 teacher vectors, C means, a neuron), but d = {p.d}"
        )


def _check_links(p: Parameters) -> None:
    if p.link and len(p.link) != p.C + 1:
        raise UsageError(
            f"link must contain C + 1 = {p.C + 1} lists (f_1, .., f_C, g), but contains {len(p.link)}: write "
            "them as 0,0,0,1;0,0,0,1;0,0,0,1"
        )
    rows = links(p)
    if len(rows[0]) - 1 > MOST_DEGREE:
        raise UsageError(f"links may have degree {MOST_DEGREE} at most, but one has degree {len(rows[0]) - 1}")
    for number, row in enumerate(rows):
        name = f"f_{number + 1}" if number < p.C else "g"
        if not all(map(math.isfinite, row)):
            raise UsageError(f"the coefficients of link {name} must be finite numbers")
        found = information_exponent(row)
        if found is not None and found < 1:
            raise UsageError(f"link {name} has a constant term: a link must have mean zero, its first coefficient 0")
        if p.k_star is not None and found is not None and found != p.k_star:
            raise UsageError(
                f"link {name} has information exponent {found}, but k_star = {p.k_star}: its coefficients must "
                f"vanish below degree {p.k_star} and not at it"
            )


def _check_tier(p: Parameters) -> None:
    if p.tier == "R3" and (p.C != 2 or weights_of_global(p)[0] != -weights_of_global(p)[1]):
        raise UsageError("tier R3 describes a pair of clusters with s = (s, -s): give C = 2 and such weights")
    if p.tier in ("R1", "R2", "R3", "R4") and not p.orthogonal:
        raise UsageError(f"tier {p.tier} is for an orthonormal frame: omit orthogonal=no")
    if p.tier == "effective" and p.eta == 0:
        raise UsageError("tier effective is the flow of steps of a given size: give it with -p eta=")
