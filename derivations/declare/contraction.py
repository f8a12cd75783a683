"""Means of two polynomials of one Gaussian field each, by the number of contractions between the two (Price 1958).

    E[P(u) R(v)] = sum_n n! p_n r_n rho^n        p_n = E[P^(n)(u)] / n!,  rho = E[u v]

With He_k at unit variance all p_n but p_k vanish, to the last digit, so that powers of a small rho are not lost in
terms of order 1 that cancel each other. A start at rho = 1e-20 therefore keeps its relative accuracy.
"""

import math
from collections.abc import Sequence
from typing import Any

from derivations.declare.gates import Part


def contracted(parts: Sequence[Part], numbers: Sequence[Sequence[Any]], cells: tuple[Any, Any, Any]) -> Any:
    """E[P R], `numbers` being the coefficients of the terms of both parts; cells = (E[u^2], E[u v], E[v^2]).

    >>> import sympy
    >>> from derivations.declare.gates import Term
    >>> square = (Term(sympy.Integer(1), -1, 0, (2,)), Term(sympy.Integer(-1), -1, 0, (0,)))
    >>> contracted((square, square), ((1, -1), (1, -1)), sympy.symbols("a r b"))
    2*r**2 + (a - 1)*(b - 1)
    """
    import sympy

    polynomials = [
        {term.powers[0]: number for term, number in zip(part, values, strict=True)}
        for part, values in zip(parts, numbers, strict=True)
    ]
    total = sympy.Integer(0)
    for n in range(min(max(p, default=-1) for p in polynomials) + 1):
        first_mean, second_mean = (_mean(p, n, cell) for p, cell in zip(polynomials, (cells[0], cells[2]), strict=True))
        total += math.factorial(n) * first_mean * second_mean * cells[1] ** n
    return total


def _mean(polynomial: dict[int, Any], n: int, cell: Any) -> Any:
    """Return E[P^(n)(u)] / n! of a polynomial by its powers.

    A common factor of the coefficients is extracted; the integers are summed without rounding if E[u^2] = 1.
    """
    import sympy

    terms = [
        ((p - n) // 2, sympy.sympify(c) * math.comb(p, n) * math.prod(range(p - n - 1, 1, -2)))
        for p, c in sorted(polynomial.items(), reverse=True)
        if p >= n and (p - n) % 2 == 0
    ]
    if not terms:
        return sympy.Integer(0)
    common = terms[0][1]
    ratios = [sympy.cancel(value / common) for _, value in terms]
    if all(ratio.is_Rational for ratio in ratios):
        scale = math.lcm(*(int(ratio.q) for ratio in ratios))
        common, ratios = common / scale, [ratio * scale for ratio in ratios]
    else:
        common, ratios = sympy.Integer(1), [value for _, value in terms]
    total = sympy.Add(*(ratio * cell**power for (power, _), ratio in zip(terms, ratios, strict=True)))
    # The terms cancel exactly if E[u^2] = 1, but not after multiplication by a fraction: SymPy distributes a fraction
    # over a sum, unlike a float.
    return (sympy.Float(common, 17) if common.is_Rational and not common.is_Integer else common) * total
