"""Means of two polynomials of one Gaussian field each, by the number of contractions between the two (Price 1958).

    E[P(u) R(v)] = sum_n n! p_n r_n rho^n        p_n = E[P^(n)(u)] / n!,  rho = E[u v]

With He_k at unit variance all p_n but p_k vanish, to the last digit, so that powers of a small rho are not lost beside
terms of order 1 that cancel each other: a start at rho = 1e-20 keeps its relative accuracy.
"""

import math
from collections.abc import Sequence
from typing import Any

from derivations.declare import symbols
from derivations.declare.gates import Part


def contracted(parts: Sequence[Part], numbers: Sequence[Sequence[Any]], cells: tuple[str, str, str]) -> str:
    """E[P R] as text, `numbers` being the coefficients of the terms of both parts; cells = (E[u^2], E[u v], E[v^2]).

    >>> import sympy
    >>> from derivations.declare.gates import Term
    >>> square = (Term(sympy.Integer(1), -1, 0, (2,)), Term(sympy.Integer(-1), -1, 0, (0,)))
    >>> contracted((square, square), ((1, -1), (1, -1)), ("a", "r", "b"))
    '(a + -1.0)*(b + -1.0) + 2.0*r*r'
    """
    polynomials = [
        {term.powers[0]: number for term, number in zip(part, values, strict=True)}
        for part, values in zip(parts, numbers, strict=True)
    ]
    found = []
    for n in range(min(max(p, default=-1) for p in polynomials) + 1):
        means = [_mean(p, n, cell) for p, cell in zip(polynomials, (cells[0], cells[2]), strict=True)]
        if None in means:
            continue
        factors = [f"{math.factorial(n)}.0" if n > 1 else "", *(str(mean) for mean in means), *[cells[1]] * n]
        found.append("*".join(f for f in factors if f and f != "1.0") or "1.0")
    return " + ".join(found) or "0.0"


def _mean(polynomial: dict[int, Any], n: int, cell: str) -> str | None:
    """E[P^(n)(u)] / n! as text; None where it has no term.

    Coefficients with a common factor stand before whole numbers, which are summed without rounding where E[u^2] = 1.
    """
    import sympy

    terms = [
        ((p - n) // 2, sympy.sympify(c) * math.comb(p, n) * math.prod(range(p - n - 1, 1, -2)))
        for p, c in sorted(polynomial.items(), reverse=True)
        if p >= n and (p - n) % 2 == 0
    ]
    if not terms:
        return None
    common = terms[0][1]
    ratios = [sympy.cancel(value / common) for _, value in terms]
    if all(ratio.is_Rational for ratio in ratios):
        scale = math.lcm(*(int(ratio.q) for ratio in ratios))
        common, ratios = common / scale, [ratio * scale for ratio in ratios]
    else:
        common, ratios = sympy.Integer(1), [value for _, value in terms]
    texts = []
    for (power, _), ratio in zip(terms, ratios, strict=True):
        factors = ["" if ratio == 1 else symbols.text(ratio, "") if ratio.is_number else f"({symbols.text(ratio, '')})"]
        texts.append("*".join(f for f in (*factors, *[cell] * power) if f) or "1.0")
    total = " + ".join(texts)
    if common == 1:
        return f"({total})" if len(texts) > 1 else total
    before = f"({symbols.text(common, '')})"
    return before if total == "1.0" else f"{before}*({total})"
