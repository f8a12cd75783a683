"""The means of the dynamics over fixed points, from array operations: any unit, routing and loss, one text for all.

At a frame U (n, n) with U U^T = G the fields are z = U xi, and

    A = E[c xi],  E[c z] = A U^T,  E = E[c c^T],  e = E[2 dl/dq],  R = E[dl/ds]

over the points xi, c = dl/dz by the functions of `responses`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from derivations.declare.declaration import Declaration, Group

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


class Sampler:
    """The per-sample functions of a declaration on all points at once."""

    def __init__(self, declared: Declaration, xp: Any, functions: Functions) -> None:
        self.declared, self.xp, self.functions = declared, xp, functions
        self.students = len(declared.students)

    def means(
        self, G: Any, w: Any, bias: Any, numbers: Any, noise: Any, points: Any, weights: Any, sizes: Any
    ) -> Means:
        """All means at one Gram matrix; `w` are the readouts, teachers' negative; points (n + 1, N), weights (N,).

        NumPy takes the points in blocks that stay in the processor's cache.
        """
        U = frame(self.xp, G, sum(s * len(g.slots) for s, g in zip(sizes, self.declared.students, strict=False)))
        step = BLOCK if self.xp.__name__ == "numpy" else points.shape[1]
        parts = [
            self._means(U, G, w, bias, numbers, noise, points[:, k : k + step], weights[k : k + step], sizes)
            for k in range(0, points.shape[1], step)
        ]
        if len(parts) == 1:
            return parts[0]
        drift, second, scalars, loss, error = zip(*parts, strict=True)
        return Means(sum(drift), sum(second), [sum(each) for each in zip(*scalars, strict=True)], sum(loss), sum(error))

    def _means(
        self, U: Any, G: Any, w: Any, bias: Any, numbers: Any, noise: Any, points: Any, weights: Any, sizes: Any
    ) -> Means:
        """The sums over some of the points."""
        xp = self.xp
        n = G.shape[0]
        z = U @ points[:n]
        q = xp.diagonal(G)
        shared = [numbers[k] for k in range(len(self.declared.names))]
        f, y, row, unit = 0.0, 0.0, 0, 0
        kept = []
        for number, group in enumerate(self.declared.groups):
            size, slots = sizes[number], len(group.slots)
            rows = [slice(row + s * size, row + (s + 1) * size) for s in range(slots)]
            student = number < self.students
            scale = [1 / xp.sqrt(q[r]) if student and self._normalised else xp.ones(size) for r in rows]
            fields = [z[r] * k[:, None] for r, k in zip(rows, scale, strict=True)]
            norms = [xp.ones((size, 1)) if student and self._normalised else q[r][:, None] for r in rows]
            before = sum(len(g.scalars) for g in self.declared.groups[:number])
            own = [bias[before + b, :size][:, None] for b in range(len(group.scalars))]
            a = w[unit : unit + size][:, None]
            out, routed = self._unit(number, group, fields, norms, own, shared)
            total = (a * out[0]).sum(0)
            f, y = (f + total, y) if student else (f, y - total)
            if student:
                kept.append((number, group, rows, scale, a, out, routed))
            row, unit = row + slots * size, unit + size
        value, slope = self.functions["loss"](f, y + noise * points[n], *shared)
        value, slope = value + 0.0 * y, slope + 0.0 * y
        c, e, scalars = self._gradients(kept, slope, weights, z, q)
        weighted, S = c * weights, c.shape[0]
        drift = weighted @ points[:n].T @ U.T + e[:, None] * G[:S]
        second = weighted @ c.T if self.declared.limit == "online" else xp.zeros((S, S))
        return Means(drift, second, scalars, value @ weights, ((f - y) ** 2) @ weights)

    @property
    def _normalised(self) -> bool:
        return self.declared.weights == "normalised"

    def _unit(self, number: int, group: Group, fields: Any, norms: Any, own: Any, shared: Any) -> tuple[Any, Any]:
        """The outputs of a group's unit at its share, and (share, outputs of the logit) where it has one."""
        if group.share is None:
            return self.functions[f"unit_{number}"](*fields, *norms, 1.0, *own, *shared), None
        logits = self.functions[f"logit_{number}"](*fields, *norms, *own, *shared)
        share = shares(self.xp, group.share.word, logits[0] + 0.0 * fields[0])
        return self.functions[f"unit_{number}"](*fields, *norms, share, *own, *shared), (share, logits)

    def _gradients(self, kept: Any, slope: Any, weights: Any, z: Any, q: Any) -> tuple[Any, Any, list[Any]]:
        """c (S, N), E[e] (S,), and the means for the scalars, in the order of rows."""
        xp, cs, es, scalars = self.xp, [], [], []
        for _, group, rows, scale, a, out, routed in kept:
            slots = len(group.slots)
            base = a * slope
            parts = [base * out[1 + k] for k in range(2 * slots)]
            extra = [base * out[2 + 2 * slots + b] for b in range(len(group.scalars))]
            if routed is not None and group.share is not None and group.share.word == "softmax":
                share, logits = routed
                into = base * out[1 + 2 * slots] * share
                gain = into - share * into.sum(0)  # dl/dlogit of every unit
                parts = [part + gain * logits[1 + k] for k, part in enumerate(parts)]
                extra = [part + gain * logits[1 + 2 * slots + b] for b, part in enumerate(extra)]
            parts = [part + 0.0 * base for part in parts]
            for s in range(slots):
                c = parts[s] * scale[s][:, None]
                # Of normalised weights the units see vectors of norm 1: their own q is a constant.
                own = -c * z[rows[s]] / q[rows[s]][:, None] if self._normalised else parts[slots + s]
                e = own @ weights
                cs.append(c)
                es.append(e)
            if group.output == "trained":
                scalars.append((out[0] * slope + 0.0 * base) @ weights)
            scalars += [(part + 0.0 * base) @ weights for part in extra]
        return xp.concatenate(cs), xp.concatenate(es), scalars


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
        columns, rest = [], ordered
        for k in range(n):
            rest, column = eliminated(k, rest)
            columns.append(column)
        factor = xp.stack(columns, axis=1)
    return factor[xp.argsort(order)]
