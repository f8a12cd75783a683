"""Second-order term of erf units: sums of arcsines, or of orthant probabilities if fields have means; formulas and
loops.

With phi_a = f_a erf(s_a z_a), S_ab = 2 s_a s_b Cov(z_a, z_b), mu_a = sqrt(2) s_a E[z_a], two derivatives tilt the
distribution of the other fields,

    E[phi'_i phi'_j phi_k phi_l] = 4/pi s_i s_j f_i f_j f_k f_l / sqrt(det) exp(-e/2) E~[g_k g_l]
    det = (1 + S_ii)(1 + S_jj) - S_ij^2,   e = ((1 + S_jj) mu_i^2 - 2 S_ij mu_i mu_j + (1 + S_ii) mu_j^2)/det

Without means E~[g_k g_l] = 2/pi arcsin(r_kl), where r_kl is the tilted covariance of k and l over the root of their
tilted variances, each plus 1. With means, h_k the tilted one over the root of the tilted variance plus 1,

    E~[g_k g_l] = 4 Phi_2(h_k, h_l; r_kl) - 2 Phi(h_k) - 2 Phi(h_l) + 1,   E~[g_k] = 2 Phi(h_k) - 1

If fields have a different distribution in each cluster of the inputs, all quantities have the index of the cluster.
Source: Saad & Solla 1995 (I4), with another derivation.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from derivations.declare import algebra, symbols
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.grammar import read
from derivations.declare.orthants import Orthant
from derivations.statement import Base, Definition, Shortcut, sp

NOISE = sp.Symbol("noise")
LOOPS = "derivations.declare.arcsine_loops:add_all"
Factors = tuple[tuple[str, str], ...]


def definitions(model: Algebra, factors: Factors, squared: bool) -> Iterator[Definition]:
    """Scaled covariances S and means mu of units, their weights v, and the sums for all pairs of pairs of groups."""
    scales = [tuple(symbols.build(read(text), ()) for text in texts) for texts in factors]
    for n, g in enumerate(model.answering):
        for h in model.answering[0 if model.is_student(g) else n :]:
            i, j = model.index("i", g), model.index("j", h)
            value = 2 * scales[g][1] * scales[h][1] * model.covariance(_vector(model, g), i, _vector(model, h), j)
            yield Definition((scaled(model, g, i, h, j),), value, "2 s_i s_j Cov(z_i, z_j)")
        i = model.index("i", g)
        if not model.declared.several:
            yield Definition((_weight(model, g, i),), scales[g][0] * model.weight(g, i), "weights in f - f*")
        if model.mean is not None:
            vector = _vector(model, g)
            value = sp.sqrt(2) * scales[g][1] * model.centre(vector, i) / model.norm(vector, i)
            yield Definition((centre(model, g, i),), value, "sqrt(2) s_i E[z_i]")
    if model.declared.several:
        yield from _weights_of_pairs(model, scales, squared)
    for g in model.students:
        for h in model.students[g:]:
            for k, m in _met(model, squared, (g, h)):
                if g != h or k <= m:  # else the transpose of another
                    yield _sums(model, g, h, k, m)
            if model.mean is not None and model.labels is not None and squared:
                for k in model.answering:
                    yield _outputs(model, g, h, k)


def _vector(model: Algebra, number: int) -> Vector:
    return Vector(number, model.declared.groups[number].slots[0])


def _weights_of_pairs(model: Algebra, scales: Sequence[Sequence[Any]], squared: bool) -> Iterator[Definition]:
    """The weights of units in c_i of a student unit i, summed over the heads in use."""
    for g in model.students:
        for k in model.answering:
            if model.meet(g, k) and (squared or not model.is_student(k)):
                i, c = model.index("i", g), model.index("k", k)
                value = scales[k][0] * model.weights(g, i, k, c)
                yield Definition((Base(f"v{algebra.below(g, k)}")[i, c],), value, "weights in c_i")


def _weight(model: Algebra, k: int, c: Any, of: tuple[int, Any] | None = None) -> Any:
    """The weight of unit c of a group, with several heads in c_i of a unit i (of a group)."""
    if of is None or not model.declared.several:
        return Base(f"v{algebra.below(k)}")[c]
    return Base(f"v{algebra.below(of[0], k)}")[of[1], c]


def _met(model: Algebra, squared: bool, students: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Return the pairs of groups of further units. With several heads, the pairs of two students come first."""
    further = [g for g in model.answering if squared or not model.is_student(g)]
    if not model.declared.several:
        yield from ((k, m) for n, k in enumerate(further) for m in further[n:])
        return
    g, h = students
    yield from ((k, m) for k in further for m in further if model.meet(g, k) and model.meet(h, m))


def scaled(model: Algebra, g: int, i: Any, h: int, j: Any) -> Any:
    """S_ij of two groups, of which the first is one of students unless none is."""
    return Base(f"S{algebra.below(g, h)}")[(*model.of_fields, i, j)]


def centre(model: Algebra, g: int, i: Any) -> Any:
    """mu_i of a group."""
    return Base(f"mu{algebra.below(g)}")[(*model.of_fields, i)]


def sums(model: Algebra, places: tuple[int, Any, int, Any], *further: int) -> Any:
    """Return the weighted sum of E~ over units of one or two further groups; without means of fields it is a sum of
    arcsines.

    Two units of one group are exchanged together with their further units.
    """
    g, i, h, j = places
    if g == h and len(further) == 2 and further[0] > further[1]:
        i, j, further = j, i, (further[1], further[0])
    return Base(f"A{algebra.below(g, h, *further)}")[(*model.of_fields, i, j)]


def _sums(model: Algebra, g: int, h: int, k: int, m: int) -> Definition:
    i, j, c, e = (model.index(letter, n) for letter, n in zip("ijkl", (g, h, k, m), strict=True))
    weight_k, weight_l = _weight(model, k, c, (g, i)), _weight(model, m, e, (h, j))
    places = (g, i, h, j)
    first, last = _tilt(model, places, k, c), _tilt(model, places, m, e)
    between = scaled(model, k, c, m, e) if model.is_student(k) or k <= m else scaled(model, m, e, k, c)
    tilted_covariance = between - first[0] * scaled(model, g, i, m, e) - first[1] * scaled(model, h, j, m, e)
    kinds = ((g, i, h, j), (g, i, g, i), (h, j, h, j), (g, i, k, c), (h, j, k, c),
             (g, i, m, e), (h, j, m, e), (k, c, m, e), (k, c, k, c), (m, e, m, e))  # fmt: skip
    arrays = [scaled(model, *units) for units in kinds]
    if model.mean is None:
        # The argument is below 1, since both variances are above the tilted covariance.
        mean = sp.asin(tilted_covariance / sp.sqrt(first[2]) / sp.sqrt(last[2]))
        meaning, shortcut = "arcsines of tilted correlations", Shortcut(LOOPS, (*arrays, weight_k, weight_l))
    else:
        heights = [_height(model, places, *unit) for unit in ((k, c, first), (m, e, last))]
        mean = _of_both(heights, first[2], last[2], tilted_covariance)
        meaning, shortcut = "means of tilted pairs", None
    shortcut = None if model.of_fields or model.declared.several else shortcut
    return Definition(
        (sums(model, places, k, m),), sp.Sum(weight_k * weight_l * mean, c, e), meaning, shortcut=shortcut
    )


def _outputs(model: Algebra, g: int, h: int, k: int) -> Definition:
    """Return the tilted mean of the outputs of units of a group."""
    i, j, c = (model.index(letter, n) for letter, n in zip("ijk", (g, h, k), strict=True))
    places = (g, i, h, j)
    tilted = _tilt(model, places, k, c)
    mean = sp.erf(_height(model, places, k, c, tilted) / sp.sqrt(2 * tilted[2]))
    return Definition((sums(model, places, k),), sp.Sum(Base(f"v{algebra.below(k)}")[c] * mean, c), "tilted outputs")


def _of_both(heights: list[Any], X: Any, Y: Any, T: Any) -> Any:
    """E~[g_k g_l] of tilted means, of variances plus 1, and of a covariance."""
    u, v = heights
    orthant = Orthant(u, v, X, Y, T, sp.sqrt(X * Y - T**2))
    return 4 * orthant - sp.erf(u / sp.sqrt(2 * X)) - sp.erf(v / sp.sqrt(2 * Y)) - 1


def _tilt(model: Algebra, places: tuple[int, Any, int, Any], k: int, c: Any) -> tuple[Any, Any, Any]:
    """The coefficients of S_ic and S_jc that tilt unit c, and its tilted variance plus 1."""
    g, i, h, j = places
    var_i, var_j = 1 + scaled(model, g, i, g, i), 1 + scaled(model, h, j, h, j)
    cross, det = scaled(model, g, i, h, j), determinant(model, places)
    first, last = scaled(model, g, i, k, c), scaled(model, h, j, k, c)
    tilt_i, tilt_j = (var_j * first - cross * last) / det, (var_i * last - cross * first) / det
    return tilt_i, tilt_j, 1 + scaled(model, k, c, k, c) - tilt_i * first - tilt_j * last


def _height(model: Algebra, places: tuple[int, Any, int, Any], k: int, c: Any, tilt: tuple[Any, Any, Any]) -> Any:
    """The tilted mean of unit c."""
    g, i, h, j = places
    return centre(model, k, c) - tilt[0] * centre(model, g, i) - tilt[1] * centre(model, h, j)


def determinant(model: Algebra, places: tuple[int, Any, int, Any]) -> Any:
    """(1 + S_ii)(1 + S_jj) - S_ij^2."""
    g, i, h, j = places
    return (1 + scaled(model, g, i, g, i)) * (1 + scaled(model, h, j, h, j)) - scaled(model, g, i, h, j) ** 2


def _exponent(model: Algebra, places: tuple[int, Any, int, Any]) -> Any:
    """Return e, the exponent from the means of i and j."""
    g, i, h, j = places
    mean_i, mean_j = centre(model, g, i), centre(model, h, j)
    var_i, var_j = 1 + scaled(model, g, i, g, i), 1 + scaled(model, h, j, h, j)
    value = var_j * mean_i**2 - 2 * scaled(model, g, i, h, j) * mean_i * mean_j + var_i * mean_j**2
    return value / determinant(model, places)


def total(model: Algebra, factors: Factors, places: tuple[Vector, Any, Vector, Any], squared: bool) -> Any:
    """E[phi'_i phi'_j (sum_k w_k phi_k - y + noise)^2], y the label of a cluster, 0 without one.

    With several heads it is E[c_i c_j], weights of i and j included.
    """
    first, i, second, j = places
    pair = (first.group, i, second.group, j)
    scale = 4 / sp.pi
    for number in (first.group, second.group):
        for text in factors[number]:
            scale *= symbols.build(read(text), ())
    several = model.declared.several
    residual = NOISE**2 * (model.weights(first.group, i, second.group, j) if several else 1)
    if model.labels is not None:
        residual += model.labels**2
        if model.mean is not None and squared:
            residual -= 2 * model.labels * sum(sums(model, pair, k) for k in model.answering)
    part = sp.Integer(1) if model.mean is not None else 2 / sp.pi
    for k, m in _met(model, squared, (first.group, second.group)):
        residual += (1 if k == m or several else 2) * part * sums(model, pair, k, m)
    if model.mean is not None:
        scale *= sp.exp(-_exponent(model, pair) / 2)
    return scale / sp.sqrt(determinant(model, pair)) * residual
