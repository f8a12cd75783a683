"""The parameters of system `pruning`, with their domains; `check` contains conditions on several parameters."""

import dataclasses
import math
from typing import Literal

from derivations.contract import UsageError, parameter

TIERS = ("recursion", "flow", "frozen", "homogeneous")
DATA = ("single", "multi_copy", "iid", "distinct", "empirical")
CRITERIA = (
    "router_norm_change",
    "random",
    "importance",
    "token_fraction",
    "router_norm",
    "neuron_norm_mean",
    "neuron_norm_change_mean",
    "router_change_norm",
    "proficiency",
)
THEORY = -1.0
"""The value of a rate that selects the theoretical rate."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Sizes, distribution of the tokens, rates and horizons of the two fine-tunings, initial experts, and pruning."""

    d: int = parameter(100, "number of token patterns: two task patterns and d - 2 irrelevant ones", minimum=3)
    n: int = parameter(100, "number of tokens in a sample, one of them the task token", minimum=2, maximum=10**6)
    k: int = parameter(14, "number of experts, half of them with head sign +1", minimum=1, maximum=10**4)
    l: int = parameter(5, "number of tokens that an expert receives (its top l)", minimum=1, maximum=10**4)
    m: int = parameter(20, "neurons of an expert", minimum=1, maximum=10**5)
    data: str = parameter("single", "distribution of the irrelevant tokens", choices=DATA)
    copies: int = parameter(1, "data=multi_copy: number of patterns drawn, each repeated", minimum=1, maximum=1000)
    zipf: float = parameter(0.0, "chance of the r-th irrelevant pattern ~ r^-zipf (0: uniform)", minimum=0.0)
    eta_e: float = parameter(0.01, "rate of the neurons, per SGD step", minimum=0.0)
    eta_r: float = parameter(THEORY, "rate of the routers; -1: the theory's c eta_e Cp/(m l^2 C2^2)", minimum=THEORY)
    c: float = parameter(1.0, "constant c of the theoretical eta_r", above=0.0)
    K: float = parameter(6.0, "constant of the theory's T = K (l^2 C2/eta_e) sqrt(log(l)/Cp)", above=0.0)
    C2: float = parameter(1.0, "size of a neuron: entries N(0, C2^2/d) for init=pretrained", above=0.0)
    Cp: float = parameter(0.0, "least separation of task and irrelevant logits (0: 1/d)", minimum=0.0)
    T: float = parameter(0.0, "steps of fine-tuning (0: the theory's)", minimum=0.0)
    T_post: float = parameter(
        0.0, "steps of post-pruning fine-tuning (0: K_post k C2 l^2 sqrt(log l)/eta_e)", minimum=0.0
    )
    K_post: float = parameter(1.0, "constant of the theory's T_post", above=0.0)
    loss: str = parameter("linear", "gradient of 1 - y f, or of the hinge max(1 - y f, 0)", choices=("linear", "hinge"))
    routing: str = parameter(
        "expert_choice",
        "experts choose tokens, or tokens choose experts (SGD only)",
        choices=("expert_choice", "token_choice"),
    )
    init: str = parameter(
        "pretrained",
        "experts with a given proficiency, or Gaussian weights",
        choices=("pretrained", "random"),
        start=True,
    )
    important: int = parameter(
        2, "init=pretrained: experts of each sign that select their task token", minimum=0, start=True
    )
    missigned: int = parameter(
        1, "init=pretrained: experts of each sign that select the other task token", minimum=0, start=True
    )
    weak: int = parameter(
        1, "init=pretrained: experts of each sign of proficiency c0/d; the rest is neutral", minimum=0, start=True
    )
    p_important: float = parameter(
        0.9, "proficiency of important and mis-signed experts", minimum=0.0, maximum=1.0, start=True
    )
    c0: float = parameter(3.0, "d times the proficiency of a weak expert", minimum=0.0, start=True)
    router_norm: float = parameter(0.25, "init=pretrained: norm of a router over log l", above=0.0, start=True)
    router_std: float = parameter(1e-4, "init=random: standard deviation of router entries", minimum=0.0, start=True)
    neuron_std: float = parameter(1e-2, "init=random: standard deviation of neuron entries", minimum=0.0, start=True)
    criterion: str = parameter("router_norm_change", "score by which experts are kept", choices=CRITERIA)
    rho: float = parameter(0.5, "fraction of experts pruned in each sign group", minimum=0.0)
    tier: str = parameter("recursion", "level of approximation", choices=TIERS)
    stride: float = parameter(1.0, "tier recursion: SGD steps taken at once (1: exact)", above=0.0)
    nodes: int = parameter(160, "data=iid: quadrature nodes", minimum=16, maximum=4096)
    n_test: int | Literal["all"] = parameter(
        4000, "inputs drawn for p1, p2, f_error and the hinge where they are no short list; all: every input", minimum=1
    )
    data_seed: int = parameter(0, "seed of these test inputs, independent of --seed", minimum=0)
    keep_u: bool = parameter(True, "save the alignments u of all neurons")

    @property
    def N(self) -> int:
        """Number of irrelevant patterns."""
        return self.d - 2

    @property
    def separation(self) -> float:
        """C_p: that of the user, or 1/d."""
        return self.Cp if self.Cp > 0 else 1.0 / self.d

    @property
    def router_rate(self) -> float:
        """eta_r: that of the user, or c eta_e C_p/(m l^2 C_2^2), the rate of the proofs without their extra 1/d (Lemma
        E.4).
        """
        if self.eta_r >= 0:
            return self.eta_r
        return self.c * self.eta_e * self.separation / (self.m * self.l**2 * self.C2**2)

    @property
    def horizon(self) -> float:
        """T: that of the user, or K (l^2 C_2/eta_e) sqrt(log(l)/C_p), in whole steps (equation (9), with equality)."""
        if self.T > 0:
            return float(self.T)
        if self.eta_e <= 0:
            return 1000.0
        return float(
            max(1, int(self.K * self.l**2 * self.C2 / self.eta_e * math.sqrt(math.log(self.l) / self.separation)))
        )

    @property
    def post_horizon(self) -> float:
        """T': that of the user, or K_post k C_2 l^2 sqrt(log l)/eta_e, in whole steps (equation (11), corrected)."""
        if self.T_post > 0:
            return float(self.T_post)
        if self.eta_e <= 0:
            return 1000.0
        return float(max(1, int(self.K_post * self.k * self.C2 * self.l**2 * math.sqrt(math.log(self.l)) / self.eta_e)))


def check(parameters: Parameters, drawn: bool = True) -> None:
    """Raise `UsageError` for parameters that do not fit together.

    Gates need l >= 2 (for l = 1 every gate is 1 and routers get no gradient), a sample at least l tokens.
    """
    p = parameters
    if p.l < 2:
        raise UsageError(
            f"l must be at least 2, but l = {p.l}: with one token kept every gate is 1 and no router learns"
        )
    if p.l > p.n:
        raise UsageError(f"an expert cannot keep l = {p.l} of n = {p.n} tokens: give l <= n")
    if p.l == p.n and p.data in ("iid", "distinct", "multi_copy"):
        raise UsageError(f"data={p.data} needs n > l, but n = l = {p.n}: every token would be kept; raise n")
    if not 0 <= p.rho < 1:
        raise UsageError(f"the pruning ratio rho must lie in [0, 1), but rho = {p.rho:g}")
    if p.data == "distinct" and p.n - 1 > p.N:
        raise UsageError(f"data=distinct draws n - 1 = {p.n - 1} different patterns, but there are d - 2 = {p.N}")
    if p.eta_r < 0 and p.eta_r != THEORY:
        raise UsageError(f"eta_r must not be negative, but {p.eta_r:g} was given (-1 asks for the theory's value)")
    if p.data != "multi_copy" and p.copies != 1:
        raise UsageError(f"copies is the number of patterns of data=multi_copy, but data={p.data}")
    if drawn:
        _check_drawn(p)


def _check_drawn(p: Parameters) -> None:
    """Check the conditions that only a random initial condition has."""
    if p.data == "empirical":
        raise UsageError("data=empirical takes its inputs from the arrays tokens and y of --initial FILE.npz")
    if p.k % 2:
        raise UsageError(f"k must be even, half of the experts for each head sign, but k = {p.k}")
    if p.init == "pretrained" and p.important + p.missigned + p.weak > p.k // 2:
        raise UsageError(
            f"important + missigned + weak = {p.important + p.missigned + p.weak} experts of each sign were asked for, "
            f"but there are k/2 = {p.k // 2}: raise k or ask for fewer"
        )


def stepped(parameters: Parameters, step_size: float, explicit: frozenset[str]) -> Parameters:
    """The parameters of SGD: eta_e is the step size. Raises `UsageError` if another eta_e was given."""
    if "eta_e" in explicit and parameters.eta_e != step_size:
        raise UsageError(
            f"the step size is the neurons' rate eta_e, but --step-size {step_size:g} and eta_e = "
            f"{parameters.eta_e:g} were given: omit eta_e"
        )
    return dataclasses.replace(parameters, eta_e=step_size)
