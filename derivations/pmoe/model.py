"""The microscopic truth of system `pmoe`: the network, its routing and loss, the data, written from the paper's set-up.

    f(x) = sum_s sum_r (a_{r,s}/l) sum_{j in J_s} ReLU(<w_{r,s}, x^(j)>) G_{j,s},   J_s: the l patches of largest <w_s,
    x^(j)>

with G = 1 (separate training), the softmax of the route values on J_s (joint training), or l = n (the CNN); the loss is
log(1 + e^(-y f)), a_{r,s} is not trained, the derivative of the ReLU at 0 is 1, and J_s is constant in the gradient.
Source: Chowdhury et al. 2023, equations (1)-(6) and Algorithm 1; the softmax of equation (4) with its exponentials.

The functions above `numbers` use `np` with elementwise operations and sums only: NumPy and JAX run one source.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from derivations.alphabet.experts import relu as activate
from derivations.alphabet.experts import respond, softmax_on, top_l
from derivations.alphabet.frame import FrameModel, FrameWeights, Loops, Samples
from derivations.alphabet.sizes import Sizes
from derivations.contract import Initial, Labelled, UsageError
from derivations.pmoe import world
from derivations.pmoe.parameters import Parameters, settle
from derivations.vectors import root


def gates(route, routed, l, gate):  # noqa: E741
    """n_s G_s of every patch (k, S, B): gates 0 one, 1 softmax over the routed patches, 2 uniform, 3 on the largest."""
    if gate == 0:
        return routed
    if gate == 2:
        return routed / l
    if gate == 1:
        return softmax_on(routed, route)
    top = np.where(routed > 0, route, -np.inf).max(axis=1, keepdims=True)
    first = np.where((routed > 0) & (route == top), routed, 0.0)
    return first / first.sum(axis=1, keepdims=True)


def weigh_joint(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient of log(1 + e^(-y f)) for experts and routers, and the margin y f."""
    share = gates(route, top_l(route, counts, l), l, gate)
    mean = (share * response).sum(1, keepdims=True)
    margin = labels * mean.sum(0).sum(0) / l
    small = np.exp(-np.abs(margin))
    v = np.where(margin > 0, small, 1.0) / (1.0 + small)
    experts = labels * v / l * share
    moves = 1.0 if gate == 1 else 0.0
    return experts, moves * experts * (response - mean), margin


def weigh_experts(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient with constant routers, and the margin."""
    experts, routers, margin = weigh_joint(route, response, counts, labels, l, gate)
    return experts, 0.0 * routers, margin


def weigh_router(route, response, counts, labels, l, gate):  # noqa: E741
    """Minus the gradient of -y <w_1 - w_2, sum_j x^(j)>: + y per patch for router 1, - y for router 2."""
    pull = labels * counts
    routers = np.stack((pull, -pull))
    margin = (routers * route).sum(0).sum(0)
    return 0.0 * routers, routers, margin


def draw(uniform, cumulative):
    """A sample from n uniform numbers: o1 or o2 by the first, then one irrelevant pattern from each of the others.

    `cumulative` (n - 1, p): the distribution function of each of these patches over q_1..q_p.
    """
    labels = np.where(uniform[0] < 0.5, 1.0, -1.0)
    first = np.where(labels > 0, 0, 1)
    others = 2 + (uniform[1:, None, :] >= cumulative[:, :, None]).sum(1)
    tokens = np.concatenate((first[None, :], others), axis=0)
    return tokens, np.ones(tokens.shape), labels


GATES = {"one": 0, "softmax": 1, "frozen": 1, "uniform": 2, "sharp": 3}


def numbers(parameters: Parameters) -> tuple[Any, ...]:
    """Run-time arguments of `weigh`. Raises `UsageError` for tie rules that training does not have."""
    p = parameters
    if p.mode == "joint" and p.tie_rule != "hard":
        raise UsageError(f"training takes the l largest route values; tie_rule={p.tie_rule} is for odesim integrate")
    return int(p.l), GATES.get(p.gate, 0)


def law(parameters: Parameters) -> tuple[Any, ...]:
    """The distribution functions (n - 1, p) of the irrelevant patches, the last entry above 1."""
    p = parameters
    if p.composition == "deterministic":
        slots = np.repeat(np.arange(p.p), p.counts) if p.p else np.zeros(0, int)
        rows = (np.arange(p.p) >= slots[:, None]).astype(float)
    else:
        rows = np.vstack([np.zeros((0, p.p)), *(np.tile(np.cumsum(pi), (total, 1)) for total, pi in world.groups(p))])
    rows = rows + 0.0
    if p.p:
        rows[:, -1] = 2.0
        rows[rows >= 1 - 1e-15] = 2.0
    return (rows.reshape(p.n - 1, p.p),)


def rates(parameters: Parameters, step_size: float) -> tuple[float, float]:
    """(step of the experts, step of the routers): eta, and lam eta m in joint training; eta_r for the routers'
    stage.
    """
    p = parameters
    return step_size, step_size * p.lam * p.m if p.mode == "joint" else 0.0


def router_rates(parameters: Parameters, step_size: float) -> tuple[float, float]:
    """0 for both experts, and eta_r for both routers."""
    return 0.0, step_size


def place(
    initial: Initial, arrays: Mapping[str, np.ndarray] | None, rng: np.random.Generator, compressed: bool
) -> FrameWeights:
    """The products of `initial`, or weights in d dimensions: those of a file, or any with these products.

    The parts orthogonal to the patterns have the distribution of the weights.
    """
    p, c, s = initial.parameters, initial.constants, initial.state
    if compressed:
        pre, route, out, gram = (np.array(a, float) for a in (s["pre"], s["route"], c["out"], c["gram"]))
        return FrameWeights(pre, route, out, gram=gram)
    if arrays is not None and "patterns" in arrays:
        frame, hidden = (np.array(arrays[name], float) for name in ("patterns", "hidden"))
        routers = np.array(arrays["router"], float) if "router" in arrays else np.zeros((p.k, p.d))
        return FrameWeights(hidden, routers, np.array(arrays["out"], float), frame)
    base = root(c["gram"])
    used = np.abs(base).max(axis=0) > 1e-10
    base = base[:, used]
    rank = base.shape[1]
    if p.d < rank:
        raise UsageError(f"the patterns span {rank} dimensions, but d = {p.d}: give -p d={rank} or more")
    inverse = np.linalg.pinv(base).T
    shape = (p.k, p.m // p.k, p.d - rank)
    beyond = rng.standard_normal(shape) / np.sqrt(p.m)
    if p.init == "paired":
        half = shape[1] // 2
        beyond[:, half:] = beyond[:, :half]
    hidden = np.concatenate([s["pre"] @ inverse, beyond], axis=-1)
    rest = p.sigma_r * rng.standard_normal((p.k, p.d - rank))
    routers = np.concatenate([s["route"] @ inverse, rest], axis=-1)
    return FrameWeights(hidden, routers, c["out"], np.pad(base, ((0, 0), (0, p.d - rank))))


def data(initial: Initial, batch: int) -> Samples | None:
    """The training set: that of the file, or one drawn from the data seed; None for fresh samples in every step."""
    p, c = initial.parameters, initial.constants
    if bool(c["given"]):
        repeats = np.round(c["weight"] * int(c["given"])).astype(int)
        return Samples(None, np.repeat(c["counts"], repeats, axis=0).T, np.repeat(c["label"], repeats))
    if p.data == "online":
        return None
    counts, labels = world.sample(p, world.generator(p.data_seed, "data"), p.N or batch, p.balanced)
    return Samples(None, counts.T.astype(float), labels)


def conflict(parameters: Parameters, explicit: Collection[str], arrays: Mapping[str, Any], batch: int) -> str:
    """Raise an error for a contradictory request: two sources of samples, or a batch larger than the training set."""
    if "data" in explicit and parameters.data == "online" and "index" in arrays:
        return "-p data=online draws fresh samples, but the initial file contains a training set index, y"
    if parameters.data == "fixed" and parameters.N and batch > parameters.N:
        return f"--batch {batch} is more than the N = {parameters.N} samples of the training set"
    return ""


def sizes(initial: Initial) -> Sizes:
    """The network and a sample of n patches; one block of samples."""
    p, c = initial.parameters, initial.constants
    outputs = np.asarray(c["out"])[0, 0].size
    return Sizes(p.k, p.m // p.k, outputs, len(c["gram"]), p.d, p.n)


SCALARS = {
    "loss": "population loss of the current weights (pattern centres)",
    "error": "P(y f <= 0) of the population",
    "v1": "mean of v = 1/(1 + e^(y f)) in class +1",
    "v2": "mean of v in class -1",
}


def measure(initial: Initial, pre: np.ndarray, route: np.ndarray) -> np.ndarray:
    """Return the saved variables: pre, response, route, and means over the compositions of the population or file."""
    p, c = initial.parameters, initial.constants
    phi = respond(c["out"], activate(pre)[0])
    _, _, margin = weigh_joint(
        route[..., None], phi[..., None], c["counts"].T, c["label"], p.l, GATES.get(p.gate, 0)
    )  # fmt: skip
    loss = np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)
    v = 1 / (1 + np.exp(np.minimum(margin, 700.0)))
    weight = c["weight"]
    of = [weight * (c["label"] == sign) for sign in (1.0, -1.0)]
    scalars = [weight @ loss, weight @ (margin <= 0), *(one @ v / max(one.sum(), 1e-300) for one in of)]
    return np.concatenate([pre.reshape(-1), phi.reshape(-1), route.reshape(-1), scalars])


def compressible(parameters: Parameters) -> str:
    """Empty for points; otherwise the reason why counts are not sufficient."""
    if parameters.rho == 0:
        return ""
    return (
        f"it is for patterns that are points, and rho = {parameters.rho:g} makes every irrelevant patch a "
        "different vector, so that training leaves the span of the patterns; use --method explicit, or -p rho=0"
    )


def observe(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """Pre-activations, responses, route values and scalars from the saved vectors (..., size)."""
    p = settle(parameters) if parameters.k == 0 else parameters
    width, at, found = p.width, 0, {}
    pair = ("expert", "pattern")
    for name, shape, dims, meaning in (
        ("pre", (p.k, p.m // p.k, width), ("expert", "neuron", "pattern"), "pre-activation of a neuron on a pattern"),
        ("response", (p.k, width), pair, "response of an expert to a pattern"),
        ("route", (p.k, width), pair, "route value of a pattern"),
        *((name, (), (), meaning) for name, meaning in SCALARS.items()),
    ):
        count = int(np.prod(shape))
        found[name] = (dims, saved[..., at : at + count].reshape(*saved.shape[:-1], *shape), meaning)
        at += count
    return found


ROUTER_LOSS = "the routers' linear loss -E[y <w_1 - w_2, sum_j x_j>], without bound below"


def router_loss(route: np.ndarray) -> np.ndarray:
    """-E[y <w_1 - w_2, sum_j x_j>] (...,) of route values (..., 2, P): irrelevant patches have the same distribution in
    both classes.

    Source: Chowdhury et al. 2023, equation (6) and Lemma E.1.
    """
    apart = route[..., 0, :] - route[..., 1, :]
    return -(apart[..., 0] - apart[..., 1]) / 2


def observe_routers(parameters: Parameters, saved: np.ndarray) -> Labelled:
    """Only the route values, with their loss, because the experts do not exist yet."""
    found = observe(parameters, saved)["route"]
    return {"route": found, "router_loss": ((), router_loss(found[1]), ROUTER_LOSS)}


def of_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the parameters as one of the initial condition."""
    return lambda initial, *rest: function(initial.parameters, *rest)


FUNCTIONS = ("FAR", "count_patterns", "take_copies", "apart", "shares", "sums_joint", "sums_experts")


def loops(sums: str) -> Loops:
    """The loops of training on counts of patterns, with one of its sums."""
    own = tuple(f"derivations.pmoe.counted_loops:{name}" for name in FUNCTIONS)
    return Loops(("derivations.ranking:rank", *own), "count_patterns", sums)


def _model(weigh: str, **different: Any) -> FrameModel:
    common: dict[str, Any] = {
        "module": "derivations.pmoe.model",
        "helpers": ("softmax_on", "top_l", "gates", "weigh_joint"),
        "weigh": weigh,
        "counted": True,
        "uniforms": of_parameters(lambda p: p.n),
        "numbers": of_parameters(numbers),
        "law": of_parameters(law),
        "rates": of_parameters(rates),
        "ball": of_parameters(lambda p: (p.rho, p.classes)),
        "place": place,
        "data": data,
        "measure": measure,
        "compressible": compressible,
        "conflict": conflict,
        "sizes": sizes,
        "observe": observe,
    }
    return FrameModel(**{**common, **different})


EXPERTS = _model("weigh_experts", loops=loops("sums_experts"))
JOINT = _model("weigh_joint", loops=loops("sums_joint"))
ROUTER = _model("weigh_router", rates=of_parameters(router_rates), observe=observe_routers)
