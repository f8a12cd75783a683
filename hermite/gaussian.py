"""Gaussian expectations of products of Hermite polynomials, as sums over multigraphs."""

from collections.abc import Iterator
from math import factorial, fsum, prod
from numbers import Rational
from typing import Any

from hermite.errors import ShapeError, degree


def _share(total: int, limits: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every way of writing total as an ordered sum with each part within its limit."""
    if not limits:
        if total == 0:
            yield ()
        return
    for first in range(min(total, limits[0]) + 1):
        for rest in _share(total - first, limits[1:]):
            yield (first, *rest)


def _walk(node: int, left: tuple[int, ...], loops: tuple[bool, ...]) -> Iterator[tuple[dict, tuple[int, ...]]]:
    """Yield (edges, self-loops) on the nodes from `node` on; `left` counts the missing edge ends of each."""
    if not left:
        yield {}, ()
        return
    for own in range(left[0] // 2 + 1 if loops[node] else 1):
        for parts in _share(left[0] - 2 * own, left[1:]):
            edges = {(node, node + 1 + i): m for i, m in enumerate(parts) if m}
            remaining = tuple(have - used for have, used in zip(left[1:], parts, strict=True))
            for more, more_loops in _walk(node + 1, remaining, loops):
                yield {**edges, **more}, (own, *more_loops)


def multigraphs(degrees, loops: Any = False) -> Iterator[tuple[dict[tuple[int, int], int], tuple[int, ...]]]:
    """Yield every multigraph with the given degrees as (edge multiplicities, self-loops).

    sum_{j != i} M_ij + 2 L_i = k_i with non-negative integers, M symmetric.

    Arguments: degrees, sequence of n integers k_i >= 0; loops, False, True, or a sequence of n booleans, True for nodes
    that may have self-loops. Yields ({(i, j): M_ij > 0 for i < j}, (L_1, ..., L_n)), nodes from 0. Raises: DegreeError,
    ShapeError. Source: Liao & Kyrillidis 2026, Lemma 1.

    >>> list(multigraphs((2, 1, 1)))
    [({(0, 1): 1, (0, 2): 1}, (0, 0, 0))]
    """
    degrees = tuple(degree(k, "degrees") for k in degrees)
    allowed = (loops,) * len(degrees) if isinstance(loops, bool) else tuple(bool(x) for x in loops)
    if len(allowed) != len(degrees):
        raise ShapeError(f"loops: expected {len(degrees)} booleans, got {len(allowed)}; pass one per degree")
    if sum(degrees) % 2:  # every edge uses two ends: an odd total leaves no graph
        return iter(())
    return _walk(0, degrees, allowed)


def _pairings(degrees: tuple[int, ...], edges: dict, loops: tuple[int, ...]) -> int:
    """Return prod k_i! / (prod M_ij! prod L_i! 2^L_i), the whole number of pairings behind one multigraph."""
    below = prod(map(factorial, edges.values())) * prod(2**own * factorial(own) for own in loops)
    return prod(map(factorial, degrees)) // below


def _terms(degrees: tuple[int, ...], entry, excess) -> Iterator[Any]:
    """Yield the summand of each multigraph; entry(i, j) = C_ij and excess[i] = C_ii - 1."""
    for edges, loops in multigraphs(degrees, [e != 0 for e in excess]):
        weight = _pairings(degrees, edges, loops)
        yield weight * prod(
            [entry(i, j) ** m for (i, j), m in edges.items()] + [excess[i] ** own for i, own in enumerate(loops) if own]
        )


def correlation_symbols(n: int):
    """Return the n x n SymPy matrix with 1 on the diagonal and the symbols rho_ij (nodes from 1) off it.

    Arguments: n, integer >= 0; from 10 nodes on the two numbers are separated, rho_1_10. Raises: DegreeError.

    >>> correlation_symbols(2)[0, 1]
    rho_12
    """
    import sympy

    n = degree(n, "n")
    between = "_" if n > 9 else ""

    def entry(i, j):  # SymPy's own integers
        low, high = sorted((int(i), int(j)))
        return sympy.Integer(1) if i == j else sympy.Symbol(f"rho_{low + 1}{between}{high + 1}")

    return sympy.Matrix(n, n, entry)


def expectation_symbolic(degrees, covariance=None):
    """Return E[prod_i He_{k_i}(x_i)] exactly, for centred jointly Gaussian x of covariance C.

    (prod k_i!) sum_{M, L} prod_{i<j} C_ij^M_ij / M_ij! prod_i ((C_ii - 1) / 2)^L_i / L_i!  over
    `multigraphs`.

    Arguments: degrees, n integers >= 0; covariance, a symmetric n x n SymPy matrix, or None for unit
    variances and symbols rho_ij (i < j, nodes from 1). Returns an expanded SymPy expression, a polynomial in
    the entries.
    Raises: DegreeError, ShapeError. Source: Liao & Kyrillidis 2026, Lemma 1; Isserlis 1918.

    >>> expectation_symbolic((2, 1, 1))
    2*rho_12*rho_13
    """
    import sympy

    degrees = tuple(degree(k, "degrees") for k in degrees)
    n = len(degrees)
    matrix = correlation_symbols(n) if covariance is None else sympy.Matrix(covariance)
    if matrix.shape != (n, n):
        raise ShapeError(f"covariance: expected shape {(n, n)}, got {matrix.shape}; give one row per degree")
    if any(sympy.simplify(matrix[i, j] - matrix[j, i]) != 0 for i in range(n) for j in range(i)):
        raise ShapeError("covariance: expected a symmetric matrix, got an unsymmetric one; pass (C + C.T) / 2 if meant")
    excess = [matrix[i, i] - 1 for i in range(n)]
    return sympy.expand(sympy.Add(*_terms(degrees, lambda i, j: matrix[i, j], excess)))


def _rows(covariance, n: int) -> list[list]:
    """Return covariance as a symmetric list of n rows, or raise ShapeError."""
    rows = [list(row) for row in covariance]
    if len(rows) != n or any(len(row) != n for row in rows):
        raise ShapeError(
            f"covariance: expected {n} rows of {n} numbers, got {[len(r) for r in rows]}; one row for each degree"
        )
    rows = [[value.item() if hasattr(value, "item") else value for value in row] for row in rows]
    for i in range(n):
        for j in range(i):
            # 1e-12: far above what building C = A A^T rounds, far below any asymmetry that is meant
            if not abs(rows[i][j] - rows[j][i]) <= 1e-12 * (abs(rows[i][j]) + abs(rows[i][i]) + abs(rows[j][j])):
                raise ShapeError(f"covariance: expected C[{i}][{j}] = C[{j}][{i}], got {rows[i][j]} and {rows[j][i]}")
    return rows


def expectation(degrees, covariance):
    """Return the number E[prod_i He_{k_i}(x_i)], exact when every C_ij is an int or Fraction.

    The sum of `expectation_symbolic`, a polynomial in the entries of C.

    Arguments: degrees, n integers >= 0; covariance, symmetric n x n nested sequence or array of numbers.
    Returns a float (terms added without intermediate rounding), or an int / Fraction.
    Raises: DegreeError, ShapeError. Source: Liao & Kyrillidis 2026, Lemma 1.

    >>> from fractions import Fraction
    >>> expectation((2, 2), [[1, Fraction(1, 3)], [Fraction(1, 3), 1]])
    Fraction(2, 9)
    """
    degrees = tuple(degree(k, "degrees") for k in degrees)
    rows = _rows(covariance, len(degrees))
    excess = [rows[i][i] - 1 for i in range(len(rows))]
    terms = _terms(degrees, lambda i, j: rows[i][j], excess)
    if all(isinstance(value, Rational) for row in rows for value in row):
        return sum(terms)
    return fsum(float(term) for term in terms)


def pair_terms(p: int, q: int) -> list[tuple[int, int, int, int, int, int]]:
    """Return (coefficient, n13, n14, n23, n24, n34) for each way nodes 3, 4 meet each other and 1, 2.

    coefficient = p! q! / (n13! n14! n23! n24! n34!), n13 + n23 + n34 = p, n14 + n24 + n34 = q.

    Arguments: p, q, integers >= 0, the degrees of nodes 3 and 4 (nodes 1 and 2 are free). Raises:
    DegreeError.
    Source: Liao & Kyrillidis 2026, Lemma 1.

    >>> pair_terms(1, 1)
    [(1, 0, 0, 1, 1, 0), (1, 0, 1, 1, 0, 0), (1, 1, 0, 0, 1, 0), (1, 1, 1, 0, 0, 0), (1, 0, 0, 0, 0, 1)]
    """
    p, q = degree(p, "p"), degree(q, "q")
    terms = []
    for n34 in range(min(p, q) + 1):
        for n13 in range(p - n34 + 1):
            for n14 in range(q - n34 + 1):
                counts = (n13, n14, p - n34 - n13, q - n34 - n14, n34)
                terms.append((factorial(p) * factorial(q) // prod(map(factorial, counts)), *counts))
    return terms


def pair_kernel(a0: int, b0: int, p: int, q: int, g, z11, z12, z21, z22, S):
    """Return E[f^(a0)(v1.x) f^(b0)(v2.x) He_p(w1.x) He_q(w2.x)] through the correlation functions S_ab.

    sum coefficient z11^n13 z12^n14 z21^n23 z22^n24 g^n34 S(a0 + n13 + n14, b0 + n23 + n24) over `pair_terms`.

    Arguments: a0, b0, derivative orders; p, q, degrees; g = w1.w2; zij = vi.wj; S, callable (a, b) -> the symbol or
    value of S_ab(v1.v2). All of v1, v2, w1, w2 have unit length. Returns a number or a symbolic expression, like the
    values of S. Raises: DegreeError. Source: Liao & Kyrillidis 2026, Lemma 1 with Stein's identity on nodes 1 and 2.

    >>> import sympy
    >>> pair_kernel(0, 0, 1, 0, *sympy.symbols("g z11 z12 z21 z22"), sympy.Function("S"))
    z11*S(1, 0) + z21*S(0, 1)
    """
    a0, b0 = degree(a0, "a0"), degree(b0, "b0")
    total = 0
    for count, n13, n14, n23, n24, n34 in pair_terms(p, q):
        geometry = z11**n13 * z12**n14 * z21**n23 * z22**n24 * g**n34
        total = total + count * geometry * S(a0 + n13 + n14, b0 + n23 + n24)
    return total
