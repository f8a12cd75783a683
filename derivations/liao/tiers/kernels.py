"""The kernels of system `liao`: Hermite coefficients of the gate, S_pq, and those of a pair of experts."""

import functools
from typing import Any, NamedTuple

from derivations.cache import remembered
from derivations.liao.gate import gate_table
from derivations.liao.parameters import Parameters
from derivations.statement import HALF, Base, Definition, E, Gate, He, Kernel, Partial, function, sp
from hermite.gaussian import pair_kernel

RHO, G = sp.symbols("rho g")
OVERLAPS = Z11, Z12, Z21, Z22 = sp.symbols("z11 z12 z21 z22")
C = Base("c_bar")
N, S_INDEX = sp.Idx("n", (0, sp.oo)), sp.Idx("s", (0, sp.oo))
S = function("S", lambda x, at: S(x[0] + 1, x[1] + 1, x[2]) if at == 3 else None)
"""S_pq(rho), with Price's rule dS_pq/drho = S_(p+1)(q+1)."""


class PairKernels(NamedTuple):
    """The definitions before the equations of a tier, in their order."""

    coefficients: Definition
    correlation: Kernel
    energy: Kernel
    slopes: Kernel


def terms(p: Parameters) -> dict[str, int]:
    """Order at which the series of the gate is truncated: the error of every S_pq on [-1, 1] is then at most 1e-14.

    Raises `UsageError` for a gate so steep that its series does not reach that.
    """
    count = 2 * gate_table(p.gate, p.temperature, p.degree).series.shape[1]
    return {"s": count, "n": count + 2 * p.degree + 3}


def coefficients(p: Parameters) -> Definition:
    """The orthonormal Hermite coefficients E[pi^(n)(Z)]/sqrt(n!) of the gate pi; the paper has c_n = E[pi^(n)(Z)].

    pi(x) is the logistic function or the normal distribution function of beta x.
    """
    beta, w, Z = sp.Rational(str(p.temperature)), sp.Symbol("w"), sp.Symbol("Z")
    sign, root = (-1) ** sp.floor(N / 2), sp.loggamma(N + 1) / 2
    if p.gate == "logistic":
        # (beta w)^n/sqrt(n!) as an exponential, because each factor can leave the range of float64 when the product
        # does not.
        power = sp.exp(N * sp.log(beta * w) - (beta * w) ** 2 / 2 - root)
        odd = sign * sp.Integral(power / sp.sinh(sp.pi * w), (w, 0, sp.oo))
    else:
        ratio = sp.log(beta**2 / (1 + beta**2)) / 2
        power = sp.loggamma(N) - sp.loggamma((N + 1) / 2) - (N - 1) / 2 * sp.log(2) + N * ratio - root
        odd = sign * sp.exp(power) / sp.sqrt(2 * sp.pi)
    value = sp.Piecewise((HALF, sp.Eq(N, 0)), (odd, sp.Eq(sp.Mod(N, 2), 1)), (0, True))
    means = E(Gate(N, Z)) / sp.sqrt(sp.factorial(N))
    return Definition((C[N],), value, "orthonormal Hermite coefficients of the gate", means=means)


def correlation() -> Kernel:
    """S_pq(rho) = E[pi^(p)(Z_1) pi^(q)(Z_2)], by the Hermite series of the gate."""
    p, q = sp.symbols("p q", integer=True)
    Z1, Z2, s = sp.Symbol("Z1"), sp.Symbol("Z2"), S_INDEX
    ratios = (sp.sqrt(sp.factorial(n) * sp.binomial(s + n, n)) for n in (p, q))  # sqrt((s + n)!/s!)
    series = sp.Sum(sp.Mul(C[s + p] * C[s + q], *ratios) * RHO**s, s)
    note = "Z_1 and Z_2 standard normal of covariance rho; below, all S at this rho"
    return Kernel("S", (p, q, RHO), {"S": series}, {"S": (E(Gate(p, Z1), Gate(q, Z2)),)}, orders=2, note=note)


def pair_energy(degree: int) -> Any:
    """K of two experts as a polynomial in g and the overlaps of routers with experts, by the lemma."""
    return pair_kernel(0, 0, degree, degree, G, Z11, Z12, Z21, Z22, lambda a, b: S(*sorted((a, b)), RHO))


def derivatives(degree: int) -> dict[str, Any]:
    """lambda_1 .. lambda_5: the derivatives of K divided by the degrees that differentiation produces."""
    K = pair_energy(degree)
    by = {"Lam1": (RHO, 1), "Lam2": (Z11, degree), "Lam3": (Z21, degree), "Lam4": (Z12, degree), "Lam5": (G, degree**2)}
    return {name: K.diff(variable) / factor for name, (variable, factor) in by.items()}


def grouped(expression: Any) -> Any:
    """A polynomial as a sum over powers of g and correlation functions, every coefficient factored."""
    expression = sp.expand(expression)
    functions = sorted(expression.atoms(S), key=lambda s: (s.args[0] + s.args[1], s.args[1]))
    generators = (G, *functions)
    total = []
    for exponents, value in sp.Poly(expression, *generators).terms():
        total.append(sp.Mul(*(x**n for x, n in zip(generators, exponents, strict=True))) * sp.factor(value))
    return sp.Add(*total)


@functools.cache
def polynomials(degree: int) -> dict[str, Any]:
    """K and lambda_1 .. lambda_5, grouped for a reader; cached for each degree, because they take a second."""

    def derive() -> dict[str, str]:
        made = {"K": grouped(pair_energy(degree)), **{name: grouped(x) for name, x in derivatives(degree).items()}}
        return {name: str(x) for name, x in made.items()}

    names = {"S": S, "Integer": sp.Integer, **{str(x): x for x in (RHO, G, *OVERLAPS)}}
    texts = remembered(f"liao_pair_kernels_{degree}", (__name__, "hermite.gaussian"), derive)
    return {name: sp.sympify(text, names) for name, text in texts.items()}


def pair_kernels(p: Parameters) -> PairKernels:
    """The kernels of a pair of experts of degree p."""
    degree = p.degree
    v1, v2, w1, w2 = sp.symbols("v1x v2x w1x w2x")

    def mean(a: int, b: int, s: int, t: int) -> Any:
        return E(Gate(a, v1), Gate(b, v2), He(s, w1), He(t, w2))

    values = dict(polynomials(degree))
    low, K = degree - 1, sp.Symbol("K")
    orders = {"Lam1": (1, 1, degree, degree), "Lam2": (1, 0, low, degree), "Lam3": (0, 1, low, degree)}
    orders |= {"Lam4": (1, 0, degree, low), "Lam5": (0, 0, low, low)}
    by = {"Lam1": Partial(K, RHO), "Lam5": Partial(K, G) / degree**2}
    by |= {f"Lam{n}": Partial(K, z) / degree for n, z in ((2, Z11), (3, Z21), (4, Z12))}
    note = "of two experts with rho = v_1.v_2, `g` = w_1.w_2, " + ", ".join(
        f"z_{a}{b} = v_{a}.w_{b}" for a in (1, 2) for b in (1, 2)
    )
    arguments = (RHO, G, *OVERLAPS)
    energy = Kernel("pair_energy", arguments, {"K": values.pop("K")}, {"K": (mean(0, 0, degree, degree),)}, note=note)
    means = {name: (by[name], mean(*x)) for name, x in orders.items()}
    return PairKernels(coefficients(p), correlation(), energy, Kernel("Lam", arguments, values, means))


UP = {"1": "¹", "2": "²", "3": "³", "4": "⁴", "5": "⁵"}
FAMILIES = (("gamma", r"\gamma", "γ"), ("zeta", r"\zeta", "ζ"), ("I", "I", "I"), ("lam", r"\lambda", "λ"))


def notation() -> dict[str, tuple[str, str]]:
    """The paper's symbols for the names."""
    families = (*FAMILIES, ("hat", r"\hat\lambda", "λ̂"))
    found = {f"{x}{y}": (rf"{t}^{{({y})}}", f"{u}{UP[y]}") for x, t, u in families for y in UP}
    found |= {f"T{y}": (rf"I^{{*({y})}}", f"I*{UP[y]}") for y in "123"}
    found |= {f"P_{x}{y}": (f"P^{{{x}{y}}}", f"P{x}{y}") for x in "vw" for y in "vw"}
    found |= {f"grad_{x}": (rf"\nabla^{{{x}}}", f"∇{x}") for x in "vw"}
    found |= {f"Lam{x}": (rf"\Lambda_{x}", f"Λ{'₀₁₂₃₄₅'[x]}") for x in range(1, 6)} | {"Lam": (r"\Lambda", "Λ")}
    found |= {"m_star": ("m^*", "m*"), "v_star": ("v^*", "v*"), "w_star": ("w^*", "w*"), "Gate": (r"\pi", "π")}
    found |= {f"K_{x}{y}": (f"K^{{{x}{y}}}", f"K{x}{y}") for x, y in ("ss", "st", "tt")}
    found |= {"c_bar": (r"\bar{c}", "c̄")}
    found |= {"I3_self": ("I^{(3)}", "I³")}
    return found | {f"{x}{y}x": (rf"{x}_{y}{{\cdot}}x", f"{x}{'₀₁₂'[y]}·x") for x in "vw" for y in (1, 2)}
