"""The means of the dynamics over fixed points, from array operations: any unit, routing and loss, one text for all.

At a frame U (n, n) with U U^T = G the fields are z = U xi, and

    A = E[c xi],  E[c z] = A U^T,  E = E[c c^T],  e = E[2 dl/dq],  R = E[dl/ds]

over the points xi, c = dl/dz by the functions of `responses`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from derivations.declare.declaration import Declaration

BLOCK = 2048
"""Points at a time: ten fields of them are 160 kB."""
Functions = Mapping[str, Callable[..., Any]]


class Means(NamedTuple):
    """E[c z_b] + E[e] G_ab (S, n), E[c c^T] (S, S), E[dl/ds] by row of scalars, the loss, and E[(f - f*)^2]."""

    drift: Any
    second: Any
    scalars: list[Any]
    loss: Any
    error: Any


class Place(NamedTuple):
    """Where means are asked for: Gram matrix, weights of all units in f - f*, their own numbers, and the user's.

    `noise` is that of the labels, `sizes` are those of the groups.
    """

    G: Any
    w: Any
    bias: Any
    numbers: Any
    noise: Any
    sizes: Any


class Seen(NamedTuple):
    """Student f, teacher y and fields z at some points, and what every group of students gave."""

    f: Any
    y: Any
    z: Any
    kept: list[Any]


class Sampler:
    """The per-sample functions of a declaration on all points at once."""

    def __init__(self, declared: Declaration, xp: Any, functions: Functions) -> None:
        self.declared, self.xp, self.functions = declared, xp, functions
        self.students = len(declared.students)

    def means(self, at: Place, points: Any, weights: Any) -> Means:
        """All means over points (n + 1, N) with weights (N,)."""
        U = self._frame(at)

        def part(x: Any, w: Any) -> Means:
            seen = self._seen(at, U @ x[:-1], derivatives=True)
            value, slope = self._loss(at, seen, x[-1])
            c, e, scalars = self._gradients(seen, slope, w, xp.diagonal(at.G))
            weighted, S = c * w, c.shape[0]
            drift = weighted @ x[:-1].T @ U.T + e[:, None] * at.G[:S]
            second = weighted @ c.T if self.declared.limit == "online" else xp.zeros((S, S))
            return Means(drift, second, scalars, value @ w, (seen.f - seen.y) ** 2 @ w)

        xp = self.xp
        drift, second, scalars, loss, error = zip(*self._blocks(part, points, weights), strict=True)
        return Means(sum(drift), sum(second), [sum(each) for each in zip(*scalars, strict=True)], sum(loss), sum(error))

    def losses(self, at: Place, points: Any, weights: Any) -> tuple[Any, Any]:
        """(loss, E[(f - f*)^2]) alone, which need no derivatives."""
        U = self._frame(at)

        def part(x: Any, w: Any) -> tuple[Any, Any]:
            seen = self._seen(at, U @ x[:-1], derivatives=False)
            return self._loss(at, seen, x[-1])[0] @ w, (seen.f - seen.y) ** 2 @ w

        loss, error = zip(*self._blocks(part, points, weights), strict=True)
        return sum(loss), sum(error)

    def _blocks(self, part: Callable[[Any, Any], Any], points: Any, weights: Any) -> list[Any]:
        """`part` of the points; NumPy takes them in blocks that stay in the processor's cache."""
        step = BLOCK if self.xp.__name__ == "numpy" else points.shape[1]
        return [part(points[:, k : k + step], weights[k : k + step]) for k in range(0, points.shape[1], step)]

    def _frame(self, at: Place) -> Any:
        return frame(
            self.xp, at.G, sum(s * len(g.slots) for s, g in zip(at.sizes, self.declared.students, strict=False))
        )

    def _loss(self, at: Place, seen: Seen, noise: Any) -> tuple[Any, Any]:
        """The loss of every point and its derivative in f."""
        found = self.functions["loss"](seen.f, seen.y + at.noise * noise, *self._shared(at))
        value, slope = (part + 0.0 * seen.y for part in found)
        return value, slope

    def _shared(self, at: Place) -> list[Any]:
        return [at.numbers[k] for k in range(len(self.declared.names))]

    def _seen(self, at: Place, z: Any, derivatives: bool) -> Seen:
        """Student, teacher and what all units give: students with derivatives by `unit_k`, others by `value_k`."""
        xp, q = self.xp, self.xp.diagonal(at.G)
        f, y, row, unit = 0.0, 0.0, 0, 0
        kept = []
        for number, group in enumerate(self.declared.groups):
            size, slots = at.sizes[number], len(group.slots)
            rows = [slice(row + s * size, row + (s + 1) * size) for s in range(slots)]
            student = number < self.students
            scale = [1 / xp.sqrt(q[r])[:, None] for r in rows] if student and self._normalised else []
            fields = [z[r] * k for r, k in zip(rows, scale, strict=True)] if scale else [z[r] for r in rows]
            norms = [xp.ones((size, 1)) if scale else q[r][:, None] for r in rows]
            before = sum(len(g.scalars) for g in self.declared.groups[:number])
            own = [at.bias[before + b, :size][:, None] for b in range(len(group.scalars))]
            a = at.w[unit : unit + size][:, None]
            name = f"unit_{number}" if student and derivatives else f"value_{number}"
            out, routed = self._unit(name, number, [*fields, *norms], [*own, *self._shared(at)])
            # The output of a unit that no field moves is a number, and no matrix to multiply.
            total = (at.w[unit : unit + size] @ out[0]) if xp.ndim(out[0]) == 2 else (a * out[0]).sum(0)
            f, y = (f + total, y) if student else (f, y - total)
            if student:
                kept.append((group, rows, scale, a, out, routed))
            row, unit = row + slots * size, unit + size
        return Seen(f, y, z, kept)

    @property
    def _normalised(self) -> bool:
        return self.declared.weights == "normalised"

    def _unit(self, name: str, number: int, fields: list[Any], own: list[Any]) -> tuple[Any, Any]:
        """The outputs of a group's unit at its share, and (share, outputs of the logit) where it has one."""
        share = self.declared.groups[number].share
        if share is None:
            return self.functions[name](*fields, 1.0, *own), None
        logits = self.functions[f"logit_{number}"](*fields, *own)
        taken = shares(self.xp, share.word, logits[0] + 0.0 * fields[0])
        return self.functions[name](*fields, taken, *own), (taken, logits)

    def _gradients(self, seen: Seen, slope: Any, weights: Any, q: Any) -> tuple[Any, Any, list[Any]]:
        """c (S, N), E[e] (S,), and the means for the scalars, in the order of rows."""
        xp, z, cs, es, scalars = self.xp, seen.z, [], [], []
        for group, rows, scale, a, out, routed in seen.kept:
            slots = len(group.slots)
            base = a * slope
            parts = [base * out[1 + s] for s in range(slots)]
            # Most units do not depend on their norms: such a derivative is printed as a number, and stays one.
            parts += [base * out[1 + k] if _moves(out[1 + k]) else 0.0 for k in range(slots, 2 * slots)]
            extra = [base * out[2 + 2 * slots + b] for b in range(len(group.scalars))]
            if routed is not None and group.share is not None and group.share.word == "softmax":
                share, logits = routed
                into = base * out[1 + 2 * slots] * share
                gain = into - share * into.sum(0)  # dl/dlogit of every unit
                parts = [part + gain * logits[1 + k] for k, part in enumerate(parts)]
                extra = [part + gain * logits[1 + 2 * slots + b] for b, part in enumerate(extra)]
            for s in range(slots):
                c = parts[s] * scale[s] if scale else parts[s]
                # Of normalised weights the units see vectors of norm 1: their own q is a constant.
                own = -c * z[rows[s]] / q[rows[s]][:, None] if scale else parts[slots + s]
                cs.append(c)
                es.append(own @ weights if _moves(own) else xp.zeros(base.shape[0]))
            if group.output == "trained":
                scalars.append((out[0] * slope + 0.0 * base) @ weights)
            scalars += [part @ weights for part in extra]
        return xp.concatenate(cs), xp.concatenate(es), scalars


def _moves(part: Any) -> bool:
    """Whether a printed derivative is anything but the number 0."""
    return not (isinstance(part, float) and part == 0.0)


def shares(xp: Any, word: str, logits: Any) -> Any:
    """softmax or top-1 over the units, the first axis."""
    if word == "softmax":
        raised = xp.exp(logits - logits.max(0))
        return raised / raised.sum(0)
    return 1.0 * (xp.arange(logits.shape[0])[:, None] == xp.argmax(logits, axis=0))


def frame(xp: Any, G: Any, S: int) -> Any:
    """Rows U (n, n) with U U^T = G: Cholesky's factor, teachers first; a vanishing pivot leaves its column empty."""
    n = G.shape[0]
    order = xp.concatenate([xp.arange(S, n), xp.arange(S)])
    ordered = G[order][:, order]
    least = 1e-14 * xp.diagonal(ordered)

    def eliminated(k: Any, rest: Any) -> tuple[Any, Any]:
        good = rest[k, k] > least[k]
        column = xp.where(good & (xp.arange(n) >= k), rest[:, k], 0.0) / xp.sqrt(xp.where(good, rest[k, k], 1.0))
        return rest - column[:, None] * column, column

    if "jax" in xp.__name__:
        import jax

        factor = jax.lax.scan(lambda rest, k: eliminated(k, rest), ordered, xp.arange(n))[1].T
    else:
        factor = _definite(ordered, least)
        if factor is None:
            columns, rest = [], ordered
            for k in range(n):
                rest, column = eliminated(k, rest)
                columns.append(column)
            factor = xp.stack(columns, axis=1)
    return factor[xp.argsort(order)]


def _definite(G: np.ndarray, least: np.ndarray) -> np.ndarray | None:
    """Cholesky's factor by the library, where no squared pivot is at most `least`; a sixth of the steps' time."""
    try:
        found = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return None
    return found if (np.diagonal(found) ** 2 > least).all() else None
