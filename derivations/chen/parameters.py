"""The parameters of system `chen`, with their domains; `check` contains conditions on several parameters."""

import dataclasses

from derivations.contract import UsageError, parameter

TIERS = ("p3", "full", "explore", "spec", "specnoise", "group2")
ACTIVATIONS = ("cubic", "linear", "relu", "celu", "gelu", "silu", "tanh", "power")
Law = tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Sizes, distributions of the signal strengths, activation, rates, and training data."""

    M: int = parameter(8, "number of experts", minimum=1, maximum=512)
    J: int = parameter(16, "filters of an expert", minimum=1, maximum=4096)
    K: int = parameter(4, "number of clusters", minimum=2, maximum=256)
    P: int = parameter(3, "patches of an example: three signals and P - 3 of noise", minimum=3, maximum=64)
    d: int = parameter(50, "dimension of a patch, at least 2 K", minimum=4, maximum=10**9)
    alpha: tuple[float, ...] = parameter(
        (0.5, 2.0), "distribution of the strength of the feature signal: low,high (or one value)", minimum=0.0
    )
    beta: tuple[float, ...] = parameter((1.0, 2.0), "distribution of the strength of the cluster centre", minimum=0.0)
    gamma: tuple[float, ...] = parameter((0.5, 2.0), "distribution of the strength of the feature noise", minimum=0.0)
    laws: str = parameter(
        "uniform", "distributions uniform on [low, high], or equally likely points", choices=("uniform", "points")
    )
    sigma_p: float = parameter(1.0, "size of a noise patch, N(0, sigma_p^2/d I)", minimum=0.0)
    activation: str = parameter("cubic", "sigma of a filter", choices=ACTIVATIONS)
    power: float = parameter(3.0, "q of activation power, sign(z) |z|^q", minimum=1.0, maximum=9.0)
    rho: float = parameter(64.0, "router step divided by expert step, eta_r/eta (theory: of order M^2)", minimum=0.0)
    sigma_0: float = parameter(0.01, "standard deviation of the initial weights", minimum=0.0, start=True)
    init: str = parameter(
        "random",
        "initial filters: random, or specialised (one filter of expert m along feature m mod K, the rest 0)",
        choices=("random", "specialised"),
        start=True,
    )
    strength: float = parameter(0.02, "alignment of the filters of init=specialised", minimum=0.0, start=True)
    contrast: float = parameter(0.0, "router contrast D of init=specialised, groups m mod K", start=True)
    tier: str = parameter("p3", "level of approximation of the flow", choices=TIERS)
    nodes: int = parameter(8, "quadrature nodes for each continuous law", minimum=2, maximum=64)
    points: int = parameter(
        4096, "tier full: quasi-random points of strengths and noise patches, a power of two", minimum=16, maximum=2**20
    )
    layer: float = parameter(
        1e-3,
        "flow: below this coherence |E g|/E|g| of the gradient of an expert, its speed decreases linearly",
        above=0.0,
    )
    variant: str = parameter(
        "paper", "training: Algorithm 1 literally, or the released code's protocol", choices=("paper", "released")
    )
    noise: bool = parameter(True, "SGD: uniform noise in the routing")
    normalise: bool = parameter(True, "SGD: normalised gradients for the experts (false: plain descent)")
    normaliser: str = parameter(
        "expert",
        "SGD: normalise the whole gradient of an expert (released: by the sum of the norms of weights and "
        "biases), or weights and biases each by their own norm",
        choices=("expert", "tensor"),
    )
    balance: float = parameter(0.0, "SGD: coefficient of the load-balancing term", minimum=0.0)
    early_stop: bool = parameter(False, "SGD: stop as the released code does")
    data: str = parameter("fixed", "SGD: one training set, or fresh examples every step", choices=("fixed", "online"))
    data_seed: int = parameter(0, "seed of the training and test examples, independent of --seed", minimum=0)
    n: int = parameter(0, "size of the fixed training set (0: equal to --batch, which gives full batches)", minimum=0)
    sets: str = parameter(
        "shared", "SGD, data=fixed: one training set for all replicas, or one drawn for each", choices=("shared", "own")
    )
    n_test: int = parameter(2000, "test examples for accuracy and entropy", minimum=1, maximum=10**7)


def check(parameters: Parameters, drawn: bool = True) -> None:
    """Raise `UsageError` when the parameters do not fit together.

    Signals and centres are 2 K orthonormal vectors, so d >= 2 K; a law needs one value, or low <= high.
    """
    if parameters.d < 2 * parameters.K:
        raise UsageError(
            f"d must be at least 2 K = {2 * parameters.K}, but d = {parameters.d}: the K features and K centres "
            "are orthonormal vectors"
        )
    for name in ("alpha", "beta", "gamma"):
        _check_law(name, getattr(parameters, name), parameters.laws)
    if parameters.points & (parameters.points - 1):
        raise UsageError(
            f"points must be a power of two (Sobol points are balanced there), but points = {parameters.points}; "
            f"try {1 << parameters.points.bit_length()}"
        )
    if parameters.tier == "group2" and parameters.M % parameters.K:
        raise UsageError(
            f"tier group2 needs K groups of equal size, but M = {parameters.M} is not a multiple of K = {parameters.K}"
        )
    if parameters.variant == "released" and parameters.J % 2:
        raise UsageError(
            f"variant released has two logits of J/2 filters each, but J = {parameters.J} is odd: choose an even J"
        )
    if parameters.normaliser == "tensor" and not parameters.normalise:
        raise UsageError("normaliser=tensor normalises gradients, but normalise=false: omit one of the two")
    if parameters.normaliser == "tensor" and parameters.variant != "released":
        raise UsageError(
            "normaliser=tensor treats weights and biases separately, and only the released protocol has "
            "biases: give -p variant=released too"
        )
    if parameters.sets == "own" and parameters.data == "online":
        raise UsageError(
            "sets=own draws a training set for every replica, but data=online has no training set: omit one of the two"
        )
    if parameters.early_stop and parameters.variant != "released":
        raise UsageError("early_stop is a rule of the released code: give -p variant=released too")


def _check_law(name: str, law: Law, kind: str) -> None:
    if not law:
        raise UsageError(f"the distribution of {name} is empty: give low,high such as 0.5,2, or one value")
    if kind == "points":
        return
    if len(law) > 2:
        raise UsageError(
            f"the uniform law of {name} takes low,high or one value, but {len(law)} numbers were given "
            "(-p laws=points makes a list of equally likely values)"
        )
    if len(law) == 2 and law[0] > law[1]:
        raise UsageError(f"the law of {name} has low = {law[0]:g} above high = {law[1]:g}: give low,high")
