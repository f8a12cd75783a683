"""Pass 1: sums, means, kernels and softmax factors become separate definitions.

    x[i] = a[i] sum_r b[r] (c[i, r] + d[r])   becomes   sum_x[i] = sum_r b[r] c[i, r],   sum_x2 = sum_r b[r] d[r],
                                                        x[i] = a[i] (sum_x[i] + sum_x2)

A sum is split into terms, so that factors without the index are outside. A sum over several indices is contracted one
index at a time if that costs fewer operations.
"""

import itertools
from typing import Any

import numpy as np

from derivations.equations.program import (
    NODE_W,
    NODE_X,
    Apply,
    Define,
    Item,
    Output,
    Ranges,
    entry,
    indices_in,
    is_leaf,
    operations,
    series,
)
from derivations.statement import Definition, Kernel, Statement, function, indices_of, key_of, sp

LONG = 60
"""A kernel of one function with more operations is evaluated separately, and once for mirrored pairs."""
NAMED_AFTER = (sp.exp, sp.log, sp.erf, sp.tanh, sp.asin, sp.sin, sp.cos, sp.Piecewise)
"""Functions from which a part of a formula gets its name; other parts are called "part"."""


class Lift:
    """The definitions of a statement, in order of use, with equal parts defined once.

    With `shortcuts` an array with loops is computed by these and not by its formula.
    """

    def __init__(self, statement: Statement, ranges: Ranges, shortcuts: bool = False) -> None:
        self.statement, self.ranges, self.shortcuts = statement, ranges, shortcuts
        self.items: list[Item] = []
        self.kernels: list[Definition] = []
        self.prefix, self.flat = "", False
        self._orders = written_out(statement)
        self._known: dict[Any, str] = {}
        self._lifted: dict[Any, Any] = {}
        self._filled: set[str] = set()
        named = [n.target for n in (*statement.state, *statement.constants)]
        self._taken = {key_of(t) for t in named} | {key_of(t) for d in statement.arrays for t in d.targets}

    def define_array(self, definition: Definition) -> None:
        """Add the arrays of a named definition of the statement."""
        self.prefix = key_of(definition.targets[0])
        if self._filled.issuperset(map(key_of, definition.targets)):
            return
        if definition.rule is not None:
            targets = tuple((key_of(t), tuple(indices_of(t))) for t in definition.targets)
            arguments = tuple(key_of(v) for v in definition.value)
            self.items.append(Apply(targets, definition.rule, arguments, definition.meaning))
            return
        if self.shortcuts and definition.shortcut is not None:
            made = (*definition.targets, *definition.shortcut.also)
            targets = tuple((key_of(t), tuple(indices_of(t))) for t in made)
            arguments = tuple(key_of(v) for v in definition.shortcut.arguments)
            self.items.append(Apply(targets, definition.shortcut, arguments, definition.meaning))
            self._filled.update(map(key_of, definition.shortcut.also))
            return
        kernel = definition.kernel
        for k, target in enumerate(definition.targets):
            value = definition.value if kernel is None else function(list(kernel.values)[k])(*definition.value)
            axes = tuple(indices_of(target))
            self.place(key_of(target), axes, self._stacked(sp.sympify(value), axes), definition.meaning)
        if kernel is not None and (len(definition.targets) > 1 or is_long(kernel)):
            self.kernels.append(definition)

    def _stacked(self, value: Any, axes: tuple[Any, ...]) -> Any:
        """The value with axes that are orders of a kernel expanded: the sum over k of delta_ik times the value at k.

        The formulas differ from order to order; each of them becomes an array over the other axes.
        """
        names = {i.name for order in orders_in(value, self.statement) for i in indices_in(order)}
        stacked = [i for i in axes if i.name in names]
        if not stacked:
            return value
        others, terms = tuple(i for i in axes if i not in stacked), []
        for orders in itertools.product(*map(self.ranges.values, stacked)):
            at = dict(zip(stacked, map(sp.Integer, orders), strict=True))
            part = self.named(self.lift(value.xreplace(at), others), others)
            terms.append(sp.Mul(part, *(sp.KroneckerDelta(i, k) for i, k in at.items())))
        return sp.Add(*terms)

    def rate(self, target: Any, rate: Any, meaning: str) -> Output:
        """Add the rate of a component, and record its array."""
        self.prefix, axes = key_of(target), tuple(indices_of(target))
        name = self.fresh(f"d_{self.prefix}")
        self.place(name, axes, rate, meaning)
        return Output(self.prefix, axes, name)

    def wanted(self, target: Any, value: Any, meaning: str = "") -> Output:
        """Add a requested number or array, such as the loss or an observable."""
        self.prefix, axes = key_of(target), tuple(indices_of(target))
        made = self.fresh(self.prefix)
        self.place(made, axes, value, meaning)
        return Output(self.prefix, axes, made)

    def place(self, name: str, axes: tuple[Any, ...], value: Any, meaning: str) -> None:
        """Define name[axes] = value; a value that is a single sum needs no second name."""
        before = len(self.items)
        value = self.lift(value, axes)
        last = self.items[-1] if len(self.items) > before else None
        if isinstance(last, Define) and last.axes == axes and value == entry(last.name, axes):
            self.items[-1] = Define(name, axes, last.value, last.over, last.reduction, meaning)
            self._known = {key: name if known == last.name else known for key, known in self._known.items()}
            self._lifted.clear()
        else:
            self.items.append(Define(name, axes, value, meaning=meaning))

    def lift(self, expression: Any, scope: tuple[Any, ...]) -> Any:
        """The expression with its sums and kernels named; `scope` are the bound indices of its place."""
        key = (sp.sympify(expression), scope)
        if key not in self._lifted:
            self._lifted[key] = self._lift(*key)
        return self._lifted[key]

    def _lift(self, e: Any, scope: tuple[Any, ...]) -> Any:
        if not e.args or isinstance(e, (sp.Indexed, sp.Idx)):
            return e
        if isinstance(e, sp.Sum):
            return self._sum(e, scope)
        if isinstance(e, sp.Product):
            return self._product(e, scope)
        name = type(e).__name__
        if name == "Mean":
            return self._mean(e, scope)
        if name == "Largest":
            body, over = e.args
            return self.define(self.lift(body, (*scope, over)), (over,), scope, "max")
        if name == "He":
            return self._hermite(int(e.args[0]), e.args[1], scope)
        kernel = self.statement.kernel_of(name)
        if kernel is not None:
            return self._kernel(name, kernel, e.args, scope)
        softmax = self._softmax(e, scope) if isinstance(e, sp.Mul) else None
        if softmax is not None:
            return softmax
        return e.func(*(self.lift(a, scope) for a in e.args))

    def _sum(self, e: Any, scope: tuple[Any, ...]) -> Any:
        over, body = [limit[0] for limit in e.limits], e.function
        for i in [i for i in over if i.name in self._orders]:
            # The index is a degree or an order: the formula differs from term to term, so the sum is expanded.
            over.remove(i)
            body = sp.Add(*(body.xreplace({i: sp.Integer(k)}) for k in self.ranges.values(i)))
        if not over:
            return self.lift(body, scope)
        return self.total(self.lift(body, (*scope, *over)), tuple(over), scope)

    def _product(self, e: Any, scope: tuple[Any, ...]) -> Any:
        body = e.function
        for limit in e.limits:
            body = sp.Mul(*(body.xreplace({limit[0]: sp.Integer(k)}) for k in self.ranges.values(limit[0])))
        return self.lift(body, scope)

    def _mean(self, e: Any, scope: tuple[Any, ...]) -> Any:
        """The mean over a uniform distribution, as the sum over Gauss-Legendre nodes of the statement."""
        body, variable = e.args
        low, high, count = self.statement.laws[variable.name]
        node = sp.Idx("node", count)
        x, w = (sp.IndexedBase(f"{name}{count}")[node] for name in (NODE_X, NODE_W))
        body = body.xreplace({variable: low + (high - low) * x}) * w
        return self.total(self.lift(body, (*scope, node)), (node,), scope)

    def _hermite(self, order: int, argument: Any, scope: tuple[Any, ...]) -> Any:
        if order < 0:
            return sp.Integer(0)
        if order == 0:
            return sp.Integer(1)
        z, value = self.named(self.lift(argument, scope), scope), sp.Integer(0)
        for coefficient in reversed(np.polynomial.hermite_e.herme2poly([0] * order + [1])):  # by Horner's rule
            value = value * z + int(coefficient)
        return value

    def _kernel(self, name: str, kernel: Kernel, arguments: Any, scope: tuple[Any, ...]) -> Any:
        """The value of a kernel at its arguments, with a name for each argument; orders are whole numbers."""
        lifted = [self.named(self.lift(a, scope), scope) for a in arguments]
        orders = dict(zip(kernel.arguments[: kernel.orders], lifted, strict=False))
        value = kernel.values[name].xreplace(orders)
        if isinstance(value, sp.Sum) and value.limits[0][0].upper == sp.oo:
            return self._series(name, value, kernel, lifted)
        rest = dict(zip(kernel.arguments[kernel.orders :], lifted[kernel.orders :], strict=True))
        return self.lift(value.xreplace(rest), scope)

    def _series(self, name: str, value: Any, kernel: Kernel, arguments: list[Any]) -> Any:
        """sum_s c_s x^s over infinitely many s: its coefficients are constants, the sum is a separate function."""
        s, x = value.limits[0][0], kernel.arguments[-1]
        label = "_".join([name, *map(str, arguments[:-1])])
        if label not in self._taken:
            self._taken.add(label)
            coefficient = sp.expand_func(sp.Mul(*(f for f in sp.Mul.make_args(value.function) if f != x**s)))
            self.items.append(Define(label, (s,), coefficient, meaning=f"coefficients of {name} in powers of {x}"))
        return series(sp.Symbol(label), arguments[-1])

    def _softmax(self, e: Any, scope: tuple[Any, ...]) -> Any:
        """w_m exp(x_m)/sum_l w_l exp(x_l), with the largest x subtracted, against overflow of float64.

        With weights w it is the largest x of the positive weights; other x may be larger by any number.
        """
        above = [f for f in e.args if isinstance(f, sp.exp)]
        below = [f for f in e.args if isinstance(f, sp.Pow) and f.exp == -1 and isinstance(f.base, sp.Sum)]
        if len(above) != 1 or len(below) != 1 or len(below[0].base.limits) > 1:
            return None
        own, over, terms = above[0].args[0], below[0].base.limits[0][0], sp.Mul.make_args(below[0].base.function)
        raised = [f for f in terms if isinstance(f, sp.exp)]
        member = next((i for i in scope if raised and own.xreplace({i: over}) == raised[0].args[0]), None)
        if member is None or len(raised) != 1:
            return None
        weights = [f.xreplace({over: member}) for f in terms if f != raised[0]]
        if not all(w in e.args for w in weights):
            return None
        weight, logit = self.lift(sp.Mul(*weights), scope), self.lift(own, scope)
        counts = sp.Gt(weight, 0)
        largest = sp.Piecewise((logit, counts), (-sp.oo, True)) if weights else logit
        largest = self.define(largest.xreplace({member: over}), (over,), scope, "max")
        mine = sp.exp(logit - largest)
        mine = self.named(sp.Piecewise((weight * mine, counts), (0, True)) if weights else mine, scope)
        total = self.define(mine.xreplace({member: over}), (over,), tuple(i for i in scope if i != member))
        rest = (self.lift(f, scope) for f in e.args if f not in (above[0], below[0], *weights))
        return sp.Mul(mine / total, *rest)

    def total(self, body: Any, over: tuple[Any, ...], scope: tuple[Any, ...]) -> Any:
        """The sum of a body without sums: factors that do not depend on an index are outside."""
        groups: dict[Any, list[Any]] = {}
        for term in sp.Add.make_args(body):
            inside = [f for f in sp.Mul.make_args(term) if indices_in(f) & set(over)]
            needed = tuple(i for i in over if any(i in indices_in(f) for f in inside))
            outside = [f for f in sp.Mul.make_args(term) if f not in inside]
            outside += [i.upper - i.lower + 1 for i in over if i not in needed]
            groups.setdefault((sp.Mul(*outside), needed), []).append(sp.Mul(*inside))
        parts = []
        for (outside, needed), terms in groups.items():
            parts.append(outside * (self._contracted(terms, needed, scope) if needed else sp.Add(*terms)))
        return sp.Add(*parts)

    def _contracted(self, terms: list[Any], over: tuple[Any, ...], scope: tuple[Any, ...]) -> Any:
        """A sum over several indices, the cheapest first if a factor does not depend on it."""
        if len(terms) > 1 or len(over) == 1:
            return self.define(sp.Add(*terms), over, scope)
        factors = sp.Mul.make_args(terms[0])
        whole = self.ranges.volume(frozenset().union(*map(indices_in, factors)))

        def inside(i: Any) -> list[Any]:
            return [f for f in factors if i in indices_in(f)]

        def cost(i: Any) -> int:
            return self.ranges.volume(frozenset().union(*map(indices_in, inside(i))))

        for i in sorted(over, key=cost):
            if len(inside(i)) < len(factors) and cost(i) < whole:
                left = tuple(j for j in over if j != i)
                first = self.total(sp.Mul(*inside(i)), (i,), (*scope, *left))
                return self.total(first * sp.Mul(*(f for f in factors if f not in inside(i))), left, scope)
        return self.define(terms[0], over, scope)

    def named(self, e: Any, scope: tuple[Any, ...]) -> Any:
        """The entry of an array with a composite expression; a leaf is returned unchanged."""
        return e if is_leaf(e) or self.flat else self.define(e, (), scope)

    def define(self, value: Any, over: tuple[Any, ...], scope: tuple[Any, ...], reduction: Any = "sum") -> Any:
        """The entry of an array with a sum, a maximum or a part of a formula; equal ones are defined once."""
        free = indices_in(value)
        axes = tuple(dict.fromkeys(i for i in scope if i in free and i not in over))
        places = {i: sp.Idx(f"_{k}", (i.lower, i.upper)) for k, i in enumerate((*axes, *over))}
        key = (reduction, value.xreplace(places), tuple(places[i] for i in over))
        if key not in self._known:
            word = "largest" if reduction == "max" else "sum" if over else self._word(value)
            self._known[key] = name = self.fresh(f"{word}_{self.prefix}")
            self.items.append(Define(name, axes, value, over, reduction))
        return entry(self._known[key], axes)

    def _word(self, value: Any) -> str:
        found = (f for f in sp.preorder_traversal(value) if isinstance(f, NAMED_AFTER))
        return next((type(f).__name__.lower() for f in found), "part")

    def fresh(self, name: str) -> str:
        """A name that is not yet used."""
        candidates = itertools.chain([name], (f"{name}{k}" for k in itertools.count(2)))
        chosen = next(n for n in candidates if n not in self._taken)
        self._taken.add(chosen)
        return chosen


def is_long(kernel: Kernel) -> bool:
    """Return True for a kernel with so many operations that it is evaluated separately."""
    return sum(operations(sp.sympify(value)) for value in kernel.values.values()) > LONG


def written_out(statement: Statement) -> frozenset[str]:
    """Names of the indices that are a degree or an order somewhere: an exponent, or the order of a kernel or of He."""
    names: set[str] = set()
    values = [e.rate for e in statement.equations]
    for d in statement.arrays:
        values += d.value if isinstance(d.value, (tuple, list, sp.Tuple)) else [d.value]
    values += [] if statement.loss is None else [statement.loss]
    values += [w.value for w in statement.watched]
    values += [value for kernel in statement.kernels for value in kernel.values.values()]
    for e in values:
        for part in sp.preorder_traversal(sp.sympify(e)):
            orders: tuple[Any, ...] = ()
            if isinstance(part, sp.Pow):
                orders = () if part.exp.is_number else (part.exp,)
            elif isinstance(part, (sp.factorial, sp.binomial)):
                orders = part.args
            names |= {i.name for order in orders for i in indices_in(order)}
        names |= {i.name for order in orders_in(sp.sympify(e), statement) for i in indices_in(order)}
    return frozenset(names)


def orders_in(expression: Any, statement: Statement) -> list[Any]:
    """The orders of the kernels of a statement and of He in an expression."""
    found: list[Any] = []
    for part in sp.preorder_traversal(expression):
        kernel = statement.kernel_of(type(part).__name__)
        found += part.args[: 1 if type(part).__name__ == "He" else kernel.orders if kernel is not None else 0]
    return found
