"""The bookkeeping of exponents behind the theorems: from descent lemmas to samples, steps and network size, by SymPy.

A chain has a signal S (loss decrease per unit of eta m), a step E = eta m, a horizon t = reach tau/eta with tau = sigma
A, a batch B, and the level v of its use. Then

    T = 1/(E S),   m from sqrt(m) = 1/(S reach A),   N = T B,   gamma = 1/(p sqrt delta)

Source: Chowdhury et al. 2023, Lemmas G.4, H.4, I.4 and Appendices F.3, F.5, F.6 (without logarithms).
"""

import dataclasses
from typing import Any

import sympy

n, l, p, k, delta, eps, v = sympy.symbols("n l p k delta epsilon v", positive=True)  # noqa: E741
gamma: Any = 1 / (p * sympy.sqrt(delta))


@dataclasses.dataclass(frozen=True)
class Chain:
    """One interpretation of a proof."""

    signal: Any
    step: Any
    tau: Any
    batch: Any
    level: Any
    reach: Any = 1

    def at(self, expression: Any) -> Any:
        """An expression at the level v that the theorem uses."""
        return sympy.powsimp(sympy.expand_power_base(sympy.simplify(expression.subs(v, self.level))), force=True)

    @property
    def steps(self) -> Any:
        """T."""
        return self.at(1 / (self.step * self.signal))

    @property
    def samples(self) -> Any:
        """N = T B."""
        return self.at(self.batch / (self.step * self.signal))

    @property
    def neurons(self) -> Any:
        """m."""
        return self.at((self.signal * self.reach * self.tau) ** -2)


g: Any = gamma
SEPARATE = Chain(g**3 * v**2 / l**2, g**3 * v**2 / l**2, g**3 * v**2 / l**3, l**4 / (g**6 * v**4), eps**2)
CHAINS = {
    "separate": SEPARATE,
    "cnn": Chain(g**3 * v**2 / n**2, g**3 * v**2 / n**2, g**3 * v**2 / n**3, n**4 / (g**6 * v**4), eps**2),
    "separate, tau as used": dataclasses.replace(SEPARATE, tau=g**7 * v**4 / l**5),
    "separate, level eps/2": dataclasses.replace(SEPARATE, level=eps),
    "joint, as printed": Chain(
        g**3 * v**2 / l**2, g**3 * v**2 * l**3 / k**2, g**3 * v**2 * l / (n * k), k**2 / (g**6 * v**4), eps**2 / l, l
    ),
    "joint, 1/k in the signal": Chain(
        g**3 * v**2 / (k * l**2),
        g**3 * v**2 * l**3 / k**2,
        g**3 * v**2 * l / (n * k),
        k**2 / (g**6 * v**4),
        eps**2 / l,
        l,
    ),
    "joint, 1/k in signal and step": Chain(
        g**3 * v**2 / (k * l**2), g**3 * v**2 * l**3 / k, g**3 * v**2 * l / (n * k), k**2 / (g**6 * v**4), eps**2 / l, l
    ),
    "joint, constants tracked": Chain(
        g**3 * v**2 / (k * l**2), g**3 * v**2 * l**2 / k, g**3 * v**2 / (n * k), k**2 / (g**6 * v**4), eps**2 / l, l
    ),
}
"""The step of "joint" is H.4's eta m; its horizon is l tau/eta. At level eps/2 the constant 2 is omitted."""

P, D, E = p**6, delta**3, eps**-8
PRINTED: dict[str, tuple[Any, Any, Any]] = {
    "separate": (l**4 * P * D * E, l**8 * P**2 * D**2 * E**2, l**10 * P**2 * D**2 * E**2),
    "cnn": (n**4 * P * D * E, n**8 * P**2 * D**2 * E**2, n**10 * P**2 * D**2 * E**2),
    "joint": (k**2 * l**2 * P * D * E, k**4 * l**6 * P**2 * D**2 * E**2, k**3 * n**2 * l**6 * P**2 * D**2 * E**2),
}
"""(T, N, m) of Theorems 4.2, 4.3 and 4.5 as printed."""
EXPECTED: dict[str, tuple[Any, Any, Any]] = {
    "separate": PRINTED["separate"],
    "cnn": PRINTED["cnn"],
    "separate, tau as used": (*PRINTED["separate"][:2], l**14 * p**20 * delta**10 * eps**-24),
    "separate, level eps/2": (
        l**4 * P * D * eps**-4, l**8 * P**2 * D**2 * eps**-8, l**10 * P**2 * D**2 * eps**-8,
    ),
    "joint, as printed": (
        k**2 * l**3 * P * D * E, k**4 * l**7 * P**2 * D**2 * E**2, k**2 * n**2 * l**8 * P**2 * D**2 * E**2,
    ),
    "joint, 1/k in the signal": (
        k**3 * l**3 * P * D * E, k**5 * l**7 * P**2 * D**2 * E**2, k**4 * n**2 * l**8 * P**2 * D**2 * E**2,
    ),
    "joint, 1/k in signal and step": (
        k**2 * l**3 * P * D * E, k**4 * l**7 * P**2 * D**2 * E**2, k**4 * n**2 * l**8 * P**2 * D**2 * E**2,
    ),
    "joint, constants tracked": (
        k**2 * l**4 * P * D * E, k**4 * l**8 * P**2 * D**2 * E**2, k**4 * n**2 * l**10 * P**2 * D**2 * E**2,
    ),
}  # fmt: skip
"""(T, N, m) of each chain."""


def agrees(chain: str, stated: tuple[Any, Any, Any]) -> tuple[bool, bool, bool]:
    """Return True if T, N and m of a chain have the stated values."""
    c = CHAINS[chain]
    found = (c.steps, c.samples, c.neurons)
    same = [sympy.simplify(a / b) == 1 for a, b in zip(found, stated, strict=True)]
    return same[0], same[1], same[2]


def power_of(expression: Any, symbol: Any) -> Any:
    """The exponent of a symbol in a product of powers."""
    return sympy.simplify(symbol * sympy.diff(sympy.log(expression), symbol))
