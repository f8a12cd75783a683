"""The parameters of system `pmoe`, with their domains; `check` contains conditions on several parameters."""

import dataclasses
import math

from derivations.contract import UsageError, parameter

TIERS = ("L0", "L1", "L2", "L3")
MODES = ("auto", "separate", "joint", "cnn")
GATES = ("auto", "one", "softmax", "uniform", "sharp", "frozen")
TIES = ("hard", "fractional", "jitter")
LOSSES = ("auto", "logistic", "softmax")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Sizes, patterns, composition of a sample, routers, gates, and how expectations are taken."""

    mode: str = parameter(
        "auto",
        "separate training, joint training, or the CNN; auto: cnn for k = 1 and l = n, separate for k = classes, else "
        "joint",
        choices=MODES,
    )
    classes: int = parameter(2, "classes, each with a discriminative pattern o_i", minimum=2, maximum=256)
    loss: str = parameter(
        "auto",
        "one output and the logistic loss, or an output per class and the softmax loss (cross-entropy); auto: logistic "
        "for two classes, else softmax",
        choices=LOSSES,
    )
    n: int = parameter(12, "number of patches in a sample", minimum=1, maximum=100_000)
    p: int = parameter(6, "number of class-irrelevant patterns", minimum=0, maximum=2048)
    d: int = parameter(40, "dimension of a patch", minimum=1, maximum=10**7)
    k: int = parameter(0, "experts; 0: one (cnn), one per class (separate) or four (joint)", minimum=0, maximum=4096)
    l: int = parameter(0, "patches sent to each expert; 0: n (cnn) or min(3, n)", minimum=0)  # noqa: E741
    m: int = parameter(200, "hidden neurons in all; an expert has m/k", minimum=1, maximum=10**8)
    tier: str = parameter("L0", "level of approximation of the population dynamics", choices=TIERS)
    delta_d: float = parameter(0.0, "<o_i, o_j> of every two classes, below 1", minimum=-1.0, maximum=1.0)
    b1: tuple[float, ...] = parameter((), "<o1, q> of every irrelevant pattern, or one value for all; empty: 0")
    b2: tuple[float, ...] = parameter((), "<o2, q> of every irrelevant pattern, or one value for all; empty: 0")
    irrelevant: str = parameter(
        "orthogonal",
        "components beyond b1 and b2: along separate axes, or in random directions (from data_seed)",
        choices=("orthogonal", "random"),
    )
    composition: str = parameter(
        "multinomial",
        "the n - 1 irrelevant patches: independent; with `close` of them close to o1 or o2; always the same",
        choices=("multinomial", "bounded_close", "deterministic"),
    )
    pi: tuple[float, ...] = parameter((), "probabilities of the irrelevant patterns; empty: equal", minimum=0.0)
    close: int = parameter(0, "bounded_close: patches with |<o1 - o2, q>| > (1 - delta_d)/2", minimum=0)
    counts: tuple[int, ...] = parameter((), "deterministic: copies of every irrelevant pattern", minimum=0)
    gate: str = parameter(
        "auto",
        "G on the routed patches: 1, softmax of the route values, 1/l, all on the largest, or softmax of frozen "
        "routers; auto: softmax in joint training, else 1",
        choices=GATES,
    )
    lam: float = parameter(
        -1.0, "joint: router speed per unit of flow, eta_router/(eta m); -1: the paper's 1/m", minimum=-1.0
    )
    tie_rule: str = parameter(
        "hard",
        "rule for equal route values: the map itself, a soft top-l, or a mean over jittered values",
        choices=TIES,
    )
    softness: float = parameter(1e-3, "width of a soft or jittered tie", above=0.0)
    jitters: int = parameter(16, "jittered copies of the route values, shared by all samples", minimum=1, maximum=4096)
    step: float = parameter(0.5, "flow per step of a recursion, eta m", above=0.0)
    init: str = parameter(
        "random",
        "neurons: N(0, I/m) with outputs N(0, 1), or the same in pairs of opposite outputs, so that f = 0",
        choices=("random", "paired"),
        start=True,
    )
    routers: str = parameter(
        "auto",
        "experts' routers at the start: random, trained by the exact law, perfect (experts in turn rank one class's "
        "pattern first, the others' last), or one perfect per class; auto: trained in separate training, else random",
        choices=("auto", "random", "trained", "perfect", "single"),
        start=True,
    )
    sigma_r: float = parameter(
        0.0, "standard deviation of a router's entries; 0: 1/(n^2 log n sqrt d)", minimum=0.0, start=True
    )
    reach: float = parameter(1.0, "eta_r T_r of trained routers", minimum=0.0, start=True)
    N_r: int = parameter(0, "samples that train the routers; 0: the population", minimum=0, maximum=10**9)
    balanced: bool = parameter(
        False, "the same number of samples in each class (training of routers, fixed training sets)"
    )
    exact: int = parameter(
        5000, "largest number of compositions that are enumerated; above it, a pool of samples is drawn", minimum=1
    )
    pool: int = parameter(
        2000, "number of samples in the pool that represents the population", minimum=1, maximum=10**7
    )
    data: str = parameter("online", "SGD: fresh samples every step, or one training set", choices=("online", "fixed"))
    N: int = parameter(0, "SGD: size of the fixed training set; 0: as many as --batch", minimum=0, maximum=10**8)
    rho: float = parameter(0.0, "half the diameter of the irrelevant pattern sets; explicit SGD only", minimum=0.0)
    data_seed: int = parameter(0, "seed of pools, training sets and random patterns, independent of --seed", minimum=0)

    @property
    def width(self) -> int:
        """The number of patterns: those of the classes, then the irrelevant ones."""
        return self.classes + self.p

    @property
    def softmax(self) -> bool:
        """Return True for an output per class with the softmax loss, False for one output with the logistic loss."""
        return self.loss == "softmax" or (self.loss == "auto" and self.classes > 2)


def settle(parameters: Parameters, stage: str = "") -> Parameters:
    """The parameters with values for all open ones (mode, loss, k, l, gate, lam, sigma_r, routers).

    `stage` joint or router settles an open mode. Raises `UsageError` if mode and stage contradict each other.
    """
    p = parameters
    mode = p.mode
    if mode == "auto":
        alone = p.k == 1 and p.l in (0, p.n)
        mode = {"joint": "joint", "router": "separate"}.get(stage) or (
            "cnn" if alone else "separate" if p.k in (0, p.classes) else "joint"
        )
    wrong = {"router": mode != "separate", "experts": mode == "joint", "joint": mode != "joint"}
    if wrong.get(stage, False):
        belongs = "experts (after router)" if mode == "separate" else {"cnn": "experts"}.get(mode, "joint")
        raise UsageError(f"mode {mode} has no stage {stage}; its stage is {belongs}")
    k = p.k or {"cnn": 1, "separate": p.classes, "joint": 4}[mode]
    if mode == "separate" and k != p.classes:
        raise UsageError(f"separate training has k = {p.classes} experts, one per class, but k = {k} was given")
    gate = {"auto": "softmax" if mode == "joint" else "one"}.get(p.gate, p.gate)
    still = mode != "joint" or gate != "softmax"
    routers = {"auto": "trained" if mode == "separate" else "random"}.get(p.routers, p.routers)
    if stage or p.mode == "separate":  # a stage may yet settle an open mode
        require_pairs(
            p.classes, stage == "router" or (stage != "joint" and mode == "separate" and routers == "trained")
        )
    return dataclasses.replace(
        p,
        mode=mode,
        loss="softmax" if p.softmax else "logistic",
        k=k,
        l=p.l or (p.n if mode == "cnn" else min(3, p.n)),
        gate=gate,
        lam=0.0 if still else 1 / p.m if p.lam == -1.0 else p.lam,
        sigma_r=p.sigma_r or 1 / (p.n**2 * math.log(max(p.n, 2)) * math.sqrt(p.d)),
        routers=routers,
    )


def require_pairs(classes: int, trained: bool) -> None:
    """Raise `UsageError` if routers are `trained`, which the paper defines for pairs of classes, and c is odd.

    Source: Chowdhury et al. 2023, Appendix M.1, step 2.
    """
    if trained and classes % 2:
        raise UsageError(
            f"routers are trained on pairs of classes, (1, 2), (3, 4), ..., but classes = {classes} is odd: give an "
            "even number, -p mode=joint, or another start of the experts' routers (-p routers=perfect)"
        )


def require_outputs(parameters: Parameters, tier: str) -> None:
    """Raise `UsageError` for a tier that has no form with an output per class."""
    if parameters.softmax and tier == "L3":
        raise UsageError(
            "tier L3 follows the margins of two samples, one of each class, under the logistic loss; with "
            f"{parameters.classes} classes and the softmax loss there are none: take tier L0, L1 or L2"
        )


def course(parameters: Parameters) -> tuple[str, ...]:
    """The stages of a complete run: routers, then experts; or both at once."""
    return {"joint": ("joint",), "cnn": ("experts",)}.get(settle(parameters).mode, ("router", "experts"))


def begin(parameters: Parameters) -> str:
    """The stage of a run that names none."""
    return course(parameters)[-1]
