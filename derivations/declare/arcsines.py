"""The second-order term of erf units: sums of arcsines, as formulas and as loops.

With phi_a = f_a erf(s_a z_a), S_ab = 2 s_a s_b E[z_a z_b] and two derivatives tilting the covariance of the rest,

    E[phi'_i phi'_j phi_k phi_l] = 4/pi s_i s_j f_i f_j f_k f_l / sqrt(det) 2/pi arcsin(r_kl),
    det = (1 + S_ii)(1 + S_jj) - S_ij^2

where r_kl is the tilted covariance of k and l over the root of their tilted variances, each plus 1.  Source: Saad &
Solla 1995 (I4), by another way.
"""

from collections.abc import Iterator
from typing import Any

from derivations.declare import algebra, symbols
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.grammar import read
from derivations.statement import Base, Definition, Shortcut, sp

NOISE = sp.Symbol("noise")
LOOPS = "derivations.declare.arcsine_loops:add_all"
Factors = tuple[tuple[str, str], ...]


def definitions(model: Algebra, factors: Factors, squared: bool) -> Iterator[Definition]:
    """Scaled covariances S of all units, their weights v, and the sums of arcsines of all pairs of pairs of groups."""
    scales = [tuple(symbols.build(read(text), ()) for text in each) for each in factors]
    for g in model.groups:
        for h in model.groups[0 if model.is_student(g) else g :]:
            i, j = model.index("i", g), model.index("j", h)
            value = 2 * scales[g][1] * scales[h][1] * model.covariance(_vector(model, g), i, _vector(model, h), j)
            yield Definition((scaled(g, i, h, j),), value, "2 s_i s_j E[z_i z_j]")
        i = model.index("i", g)
        yield Definition((Base(f"v{algebra.below(g)}")[i],), scales[g][0] * model.weight(g, i), "weights in f - f*")
    for g in model.students:
        for h in model.students[g:]:
            for k, m in _met(model, squared):
                yield _sums(model, g, h, k, m)


def _vector(model: Algebra, number: int) -> Vector:
    return Vector(number, model.declared.groups[number].slots[0])


def _met(model: Algebra, squared: bool) -> Iterator[tuple[int, int]]:
    met = [g for g in model.groups if squared or not model.is_student(g)]
    yield from ((k, m) for n, k in enumerate(met) for m in met[n:])


def scaled(g: int, i: Any, h: int, j: Any) -> Any:
    """S_ij of two groups, of which the first is one of students unless none is."""
    return Base(f"S{algebra.below(g, h)}")[i, j]


def sums(g: int, i: Any, h: int, j: Any, k: int, m: int) -> Any:
    """The weighted sum of arcsines over units of groups k and m."""
    return Base(f"A{algebra.below(g, h, k, m)}")[i, j]


def _sums(model: Algebra, g: int, h: int, k: int, m: int) -> Definition:
    i, j, c, e = (model.index(letter, n) for letter, n in zip("ijkl", (g, h, k, m), strict=True))
    one, two = Base(f"v{algebra.below(k)}")[c], Base(f"v{algebra.below(m)}")[e]
    first, last = _tilt(g, i, h, j, k, c), _tilt(g, i, h, j, m, e)
    between = scaled(k, c, m, e) if model.is_student(k) or k <= m else scaled(m, e, k, c)
    inside = between - first[0] * scaled(g, i, m, e) - first[1] * scaled(h, j, m, e)
    angle = sp.asin(inside * first[2] * last[2])  # below 1, since both variances are above the tilted covariance
    arrays = [scaled(*a) for a in ((g, i, h, j), (g, i, g, i), (h, j, h, j), (g, i, k, c), (h, j, k, c), (g, i, m, e),
                                   (h, j, m, e), (k, c, m, e), (k, c, k, c), (m, e, m, e))]  # fmt: skip
    return Definition(
        (sums(g, i, h, j, k, m),),
        sp.Sum(one * two * angle, c, e),
        "arcsines of tilted correlations",
        shortcut=Shortcut(LOOPS, (*arrays, one, two)),
    )


def _tilt(g: int, i: Any, h: int, j: Any, k: int, c: Any) -> tuple[Any, Any, Any]:
    """The coefficients of S_ic and S_jc that tilt unit c, and one over the root of its tilted variance plus 1."""
    own, other, cross = 1 + scaled(g, i, g, i), 1 + scaled(h, j, h, j), scaled(g, i, h, j)
    first, last = scaled(g, i, k, c), scaled(h, j, k, c)
    one = (other * first - cross * last) / determinant(g, i, h, j)
    two = (own * last - cross * first) / determinant(g, i, h, j)
    return one, two, 1 / sp.sqrt(1 + scaled(k, c, k, c) - one * first - two * last)


def determinant(g: int, i: Any, h: int, j: Any) -> Any:
    """(1 + S_ii)(1 + S_jj) - S_ij^2."""
    return (1 + scaled(g, i, g, i)) * (1 + scaled(h, j, h, j)) - scaled(g, i, h, j) ** 2


def total(model: Algebra, factors: Factors, places: tuple[Vector, Any, Vector, Any], squared: bool) -> Any:
    """E[phi'_i phi'_j (sum_k w_k phi_k + noise)^2]."""
    one, i, two, j = places
    g, h = one.group, two.group
    scale = 4 / sp.pi
    for number in (g, h):
        for text in factors[number]:
            scale *= symbols.build(read(text), ())
    found = NOISE**2
    for k, m in _met(model, squared):
        found += (1 if k == m else 2) * 2 / sp.pi * sums(g, i, h, j, k, m)
    return scale / sp.sqrt(determinant(g, i, h, j)) * found
