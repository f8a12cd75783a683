"""The symbolic derivation of system `kawata`: shifted Hermite coefficients, potential, gradient and Hessian.

1. `mean_activation`: alpha_0(t) = E[sigma(Z + t)], the Gaussian smoothing of the activation, in closed form.
2. `shifted_coefficient`: by Stein's identity alpha_i(t) = E[sigma(Z + t) h_i(Z)] is (d/dt)^i alpha_0(t) / sqrt(i!),
   hence the rule d alpha_i/dt = sqrt(i + 1) alpha_{i+1}.
3. `potential`: E[h_i(u.z) h_j(w.z)] = [i = j] (u.w)^i makes the correlation of a neuron with the labels of cluster c
   H_c = sum_i alpha_i(rho nu_c) (beta_i kappa_c^i + s_c gamma_i xi^i).
4. `cluster_kernels`: its partial derivatives by SymPy, with the rule of step 2 for the coefficients.

Source: Kawata et al. 2025, Lemmas A.3, B.2 and C.7, with the coefficients of the latter corrected.
"""

import functools
from typing import Any

import sympy

from derivations.contract import Kernel

T = sympy.Symbol("t", real=True)
KAPPA, XI = sympy.symbols("kappa xi", real=True)


def normal_density(t: Any) -> Any:
    """phi(t) = exp(-t^2/2) / sqrt(2 pi)."""
    return sympy.exp(-(t**2) / 2) / sympy.sqrt(2 * sympy.pi)


def normal_distribution(t: Any) -> Any:
    """Phi(t)."""
    return (1 + sympy.erf(t / sympy.sqrt(2))) / 2


def mean_activation(name: str, series: tuple[Any, ...] = ()) -> Any:
    """alpha_0(t) = E[sigma(Z + t)] of an activation, `series` the orthonormal coefficients of a polynomial one.

    A polynomial sum_l c_l h_l has E[h_l(Z + t)] = t^l / sqrt(l!).  Source: Gaussian convolutions.
    """
    if name == "polynomial":
        return sum((c * T**order / sympy.sqrt(sympy.factorial(order)) for order, c in enumerate(series)), sympy.S.Zero)
    return {
        "relu": T * normal_distribution(T) + normal_density(T),
        "erf": sympy.erf(T / 2),
        "exp": sympy.exp(T + sympy.Rational(1, 2)),
        "cos": sympy.exp(-sympy.Rational(1, 2)) * sympy.cos(T),
        "probit": normal_distribution(T / sympy.sqrt(2)),
    }[name]


def shifted_coefficient(name: str, i: int, series: tuple[Any, ...] = ()) -> Any:
    """alpha_i(t) = (d/dt)^i alpha_0(t) / sqrt(i!)."""
    return sympy.diff(mean_activation(name, series), T, i) / sympy.sqrt(sympy.factorial(i))


def coefficient(i: int) -> sympy.Symbol:
    """The symbol of alpha_i at the mean of the cluster."""
    return sympy.Symbol(f"A_{i}")


def local_weight(i: int) -> sympy.Symbol:
    """The symbol of lambda p_c beta_{c,i}."""
    return sympy.Symbol(f"B_{i}")


def global_weight(i: int) -> sympy.Symbol:
    """The symbol of lambda p_c s_c gamma_i."""
    return sympy.Symbol(f"Y_{i}")


def potential(degree: int) -> Any:
    """lambda p_c H_c = sum_{i <= degree} A_i (B_i kappa^i + Y_i xi^i)."""
    return sum(
        (coefficient(i) * (local_weight(i) * KAPPA**i + global_weight(i) * XI**i) for i in range(degree + 1)),
        sympy.S.Zero,
    )


def along_shift(expression: Any, degree: int) -> Any:
    """d/dt of an expression in the A_i: d A_i/dt = sqrt(i + 1) A_{i+1}."""
    return sum(
        (sympy.diff(expression, coefficient(i)) * sympy.sqrt(i + 1) * coefficient(i + 1) for i in range(degree + 2)),
        sympy.S.Zero,
    )


def table(degree: int) -> tuple[str, ...]:
    """The rows of the table that a cluster's kernel reads: A_0..A_{degree+2}, B_0..B_degree, Y_0..Y_degree."""
    names = [coefficient(i).name for i in range(degree + 3)]
    names += [local_weight(i).name for i in range(degree + 1)]
    return tuple(names + [global_weight(i).name for i in range(degree + 1)])


def hidden_kernels() -> dict[str, Kernel]:
    """`hidden`: the gradient of the leading potential of a cancelled global task, A (nu_1 - nu_2) xi^k.

    With s = (s, -s) the terms of order xi^k cancel and d alpha_k/dt = sqrt(k + 1) alpha_{k+1} gives degree k + 1:
    xi' = k A dn xi^(k-1), dn' = 2 A xi^k for dn = nu_1 - nu_2, A = lambda p rho sqrt(k+1) alpha_{k+1}(b) s gamma.
    """
    A, k, dn, power = sympy.symbols("A k dn power", real=True)
    x = sympy.Symbol("x", positive=True)
    u = A * dn * x**k
    slope = {"d_xi": sympy.diff(u, x), "d_dn": 2 * sympy.diff(u, dn)}
    # x^(k-1) is handed in as `power`, so that an integer power of a negative xi is what it is.
    outputs = {name: sympy.powsimp(sympy.expand(v / x ** (k - 1))) * power for name, v in slope.items()}
    return {"hidden": Kernel((), ("A", "k", "dn", "x", "power"), outputs)}


@functools.cache
def cluster_kernels(degree: int) -> dict[str, Kernel]:
    """`cluster_gradient` (d_kappa, d_xi, d_t, value) and `cluster_hessian` of lambda p_c H_c.

    Terms of one power are factored into the Horner form by which they are evaluated.
    """
    u = potential(degree)
    gradient = {
        "d_kappa": sympy.diff(u, KAPPA),
        "d_xi": sympy.diff(u, XI),
        "d_t": along_shift(u, degree),
        "value": u,
    }
    hessian = {
        "d_kappa_kappa": sympy.diff(u, KAPPA, 2),
        "d_xi_xi": sympy.diff(u, XI, 2),
        "d_kappa_t": along_shift(gradient["d_kappa"], degree),
        "d_xi_t": along_shift(gradient["d_xi"], degree),
        "d_t_t": along_shift(gradient["d_t"], degree),
    }
    names = table(degree)

    def kernel(outputs: dict[str, Any]) -> Kernel:
        return Kernel(names, (KAPPA.name, XI.name), {k: _horner(v) for k, v in outputs.items()})

    return {"cluster_gradient": kernel(gradient), "cluster_hessian": kernel(hessian)}


def _horner(expression: Any) -> Any:
    """The sum of a polynomial in kappa and one in xi, each by Horner's rule."""
    constant = expression.subs({KAPPA: 0, XI: 0})
    local = sympy.horner(expression.subs({XI: 0}) - constant, KAPPA)
    remote = sympy.horner(expression.subs({KAPPA: 0}) - constant, XI)
    return sympy.nfloat(local + remote + constant, n=17)
