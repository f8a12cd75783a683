"""Pass: sums over one index of products of two matrices become products of matrices, as few as possible.

    x[i, j] = sum_r a[i, r] b[r, j] + 3 sum_l c[i, l] d[j, l]     [a, 3c] times [b; d^T]
    y[i, k] = sum_r a[i, r] e[r, k]                               the same left matrix: e is next to b

Sums with common left matrices are side by side, those with the same right matrices below each other.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

from derivations.equations.lower.lift import Lift
from derivations.equations.lower.pairs import ordered
from derivations.equations.program import Define, Item, Product, Program, Rows, entry
from derivations.statement import in_order, key_of, sp

LEAST = 64
"""Number of multiplications above which a product of matrices is faster than loops."""


@dataclasses.dataclass(frozen=True)
class Term:
    """number * left[i, r] * right[r, j], summed over r; either matrix may be transposed."""

    number: Any
    left: Any
    right: Any
    inner: Any


@dataclasses.dataclass(frozen=True)
class Total:
    """name[i, j] = sum of terms."""

    name: str
    axes: tuple[Any, Any]
    terms: tuple[Term, ...]


def find_products(program: Program, lift: Lift, symmetric: frozenset[str]) -> Program:
    """Replace sums that are products of matrices by `Product`."""
    sums = {
        item.name: terms for item in program.body if isinstance(item, Define) and (terms := terms_of(item, program))
    }
    axes = {item.name: item.axes for item in program.body if isinstance(item, Define)}
    reads = Counter(name for item in program.body for name in item.reads)
    body: list[Item] = []
    totals: list[Total] = []
    gathered: set[str] = set()
    for item in program.body:
        if isinstance(item, Define) and item.name not in sums and len(item.axes) == 2 and not item.over:
            item, joined, names = _joined(item, sums, reads, lift)
            totals += joined
            gathered |= names
        body.append(item)
    for name, terms in sums.items():
        if name not in program.output_names and name not in gathered:
            totals.append(Total(name, (axes[name][0], axes[name][1]), tuple(terms)))
    replaced = {name for name in sums if name not in program.output_names}
    body = [item for item in body if not item.writes & replaced]
    for product in _stacked(totals, symmetric):
        body = _inserted(body, product)
    return dataclasses.replace(program, body=ordered(body))


def _inserted(body: list[Item], product: Product) -> list[Item]:
    """The items with a product inserted after the last item that it depends on."""
    after = max((k + 1 for k, item in enumerate(body) if item.writes & product.reads), default=0)
    return [*body[:after], product, *body[after:]]


def terms_of(d: Define, program: Program) -> list[Term]:
    """The terms of a sum of products of two matrices; empty for any other sum."""
    if len(d.axes) != 2 or len(d.over) != 1 or d.reduction != "sum" or program.ranges.volume(d.domain) < LEAST:
        return []
    (i, j), (r,), found = d.axes, d.over, []
    if any(k.lower != 0 for k in d.domain):
        return []
    for term in sp.Add.make_args(d.value):
        number, rest = term.as_coeff_Mul()
        factors = sp.Mul.make_args(rest)
        left = [f for f in factors if isinstance(f, sp.Indexed) and len(f.indices) == 2 and set(f.indices) == {i, r}]
        right = [f for f in factors if isinstance(f, sp.Indexed) and len(f.indices) == 2 and set(f.indices) == {r, j}]
        if len(left) != 1 or len(right) != 1 or len(factors) != 2:
            return []
        found.append(Term(number, left[0], right[0], r))
    return found


def _joined(
    item: Define, sums: dict[str, list[Term]], reads: Counter[str], lift: Lift
) -> tuple[Define, list[Total], set[str]]:
    """A formula with one name for its sums of products, these sums, and their former names."""
    totals: list[Total] = []
    gathered: set[str] = set()
    # A matrix and its transpose: both are used.
    entries = Counter(key_of(x) for x in item.value.atoms(sp.Indexed))

    def go(e: Any) -> Any:
        if isinstance(e, (sp.Indexed, sp.Idx)) or not e.args:
            return e
        if not isinstance(e, sp.Add):
            return e.func(*map(go, e.args))
        mine = []
        for term in e.args:
            number, x = term.as_coeff_Mul()
            name = key_of(x) if isinstance(x, sp.Indexed) and x.indices == item.axes else ""
            if name in sums and reads[name] == entries[name] == 1:
                gathered.add(name)
                mine.append((term, [dataclasses.replace(t, number=number * t.number) for t in sums[name]]))
        if not mine:
            return e.func(*map(go, e.args))
        terms = sorted((t for _, some in mine for t in some), key=lambda t: str(t.left))
        scale = terms[-1].number  # the same for sums of the same left matrices, with any earlier items
        name = lift.fresh(f"products_{item.name}")
        terms = [dataclasses.replace(t, number=t.number / scale) for t in terms]
        totals.append(Total(name, (item.axes[0], item.axes[1]), tuple(terms)))
        rest = [go(a) for a in e.args if a not in [term for term, _ in mine]]
        return sp.Add(*rest, scale * entry(name, item.axes))

    value = go(item.value)
    return dataclasses.replace(item, value=value), totals, gathered


def _stacked(totals: Iterable[Total], symmetric: frozenset[str]) -> list[Product]:
    """Sums with common left matrices as columns of a product, and products of the same right matrices as its rows."""
    groups: list[tuple[Any, dict[Any, Any], list[Total]]] = []
    for total in totals:
        numbers = {(t.left, t.inner): t.number for t in total.terms}
        if len(numbers) < len(total.terms):
            raise ValueError(f"{total.name} has two terms with the same left matrix")
        for axis, known, members in groups:
            common = known.keys() & numbers.keys()
            if axis == total.axes[0] and common and all(known[x] == numbers[x] for x in common):
                known.update(numbers)
                members.append(total)
                break
        else:
            groups.append((total.axes[0], dict(numbers), [total]))
    same: dict[Any, Product] = {}
    for axis, numbers, members in groups:
        key, product = _product(axis, numbers, members, symmetric)
        known = same.get(key)
        same[key] = product if known is None else dataclasses.replace(known, rows=(*known.rows, *product.rows))
    return list(same.values())


def _product(
    axis: Any, numbers: dict[Any, Any], members: list[Total], symmetric: frozenset[str]
) -> tuple[Any, Product]:
    """One group as a product, with a key that is equal for groups of the same right matrices in the same places."""

    def text(total: Total, term: Term | None) -> str:
        if term is None:
            return ""
        r, j = sp.Idx("r", term.inner.upper + 1), sp.Idx("j", total.axes[1].upper + 1)
        found = term.right.xreplace({term.inner: r, total.axes[1]: j})
        if key_of(found) in symmetric:
            found = in_order(found)
        return f"{found} {term.inner.upper} {total.axes[1].upper}"

    cells = {(x, m.name): next((t for t in m.terms if (t.left, t.inner) == x), None) for x in numbers for m in members}
    shown = {place: text(m, cells[place]) for m in members for place in cells if place[1] == m.name}
    columns = sorted(members, key=lambda m: sorted(shown[x, m.name] for x in numbers)[::-1])
    blocks = sorted(numbers, key=lambda x: [shown[x, m.name] for m in columns])
    right = tuple(tuple(t.right if (t := cells[x, m.name]) is not None else None for m in columns) for x in blocks)
    rows = Rows(axis, tuple((numbers[x], x[0]) for x in blocks), tuple(m.name for m in columns))
    key = (axis.upper, tuple(tuple(shown[x, m.name] for m in columns) for x in blocks))
    return key, Product((rows,), tuple(x[1] for x in blocks), tuple(m.axes[1] for m in columns), right)
