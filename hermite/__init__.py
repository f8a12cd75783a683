"""Probabilists' Hermite polynomials and Gaussian expectations of products.

Conventions, fixed here for the whole package:

* He_k is the probabilists' polynomial, orthogonal under the standard normal distribution:
  E[He_j(z) He_k(z)] = k! [j = k].
* A function f is written f = sum_k c_k / k! He_k with the *derivative means*
  c_k = E[f^(k)(z)] = E[f(z) He_k(z)],
  or f = sum_k a_k h_k with the *orthonormal* coefficients a_k = c_k / sqrt(k!) and h_k = He_k / sqrt(k!).
  The documentation of an array or function names one of the two.
* "temperature" multiplies the argument of a gate: logistic(order, temperature=b) expands x -> 1 / (1 + exp(-b
  x)).
* Nodes of a product are numbered from 1 in symbol names (rho_12), from 0 in array indices.
* S_ab(rho) = E[f^(a)(z1) g^(b)(z2)] for standard normal z1, z2 of correlation rho.

Modules: `polynomials`, `expansion`, `functions`, `activations` and `sigmoids` (closed forms), `gaussian` (the lemma for
products), `logistic` and `normal` (parts of these), `table` (compiled products), `correlation` and
`correlation_functions` (S_ab), `correlation_table` (its compiled evaluators), `quadrature` (the same numbers by
numerical integration), `errors`; `machine_code` and `sealed` (machine code between processes). Gaussian means of any
factors: `means` (the dispatcher), `ladders` (the factors), `closed`, `stein`, `laws`, `orthants`, `waves` (closed
forms), `leaves`, `panels`, `tensor`, `series`, `quasi` (quadrature, series, sampling). Importing `hermite` loads none
of them: each loads on first use.

Source: Liao & Kyrillidis 2026, Lemma 1; Abramowitz & Stegun 1964, chapter 22.
"""

import importlib

__all__ = [
    "activations",
    "closed",
    "correlation",
    "correlation_functions",
    "correlation_table",
    "errors",
    "expansion",
    "functions",
    "gaussian",
    "ladders",
    "laws",
    "leaves",
    "logistic",
    "means",
    "normal",
    "orthants",
    "panels",
    "polynomials",
    "quadrature",
    "quasi",
    "series",
    "sigmoids",
    "stein",
    "table",
    "tensor",
    "waves",
]


def __getattr__(name: str):
    """Load a module of the package on first use, so that `import hermite` stays light."""
    if name in __all__:
        return importlib.import_module(f"hermite.{name}")
    raise AttributeError(f"module 'hermite' has no attribute {name!r}; its modules are {', '.join(__all__)}")


def __dir__() -> list[str]:
    """List the modules that load on first use."""
    return sorted(__all__)
