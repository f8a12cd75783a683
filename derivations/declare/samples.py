"""The means of the dynamics over fixed points, from array operations: any unit, routing and loss, one text for all.

In a frame U (n, n) with U U^T = G the fields are z = U xi, and

    A = E[c xi],  E[c z] = A U^T,  E = E[c c^T],  e = E[2 dl/dq],  R = E[dl/ds]

over the points xi, c = dl/dz by the functions of `responses`. In a cluster of inputs fields also have means.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from derivations.declare import classification, looks, predictions, rewarded, virtual_steps
from derivations.declare.arrays import Means
from derivations.declare.clusters import MOST_CLUSTERS
from derivations.declare.declaration import Declaration, Group
from derivations.declare.frames import divided, frame
from derivations.declare.points_seen import Place, Seen, placed, shares

BLOCK = 8192
"""Number of points in a block. Half of it takes 14 % longer (because of Python), twice as much 40 % (ten fields: 1.3
MB).
"""
Functions = Mapping[str, Callable[..., Any]]


class Sampler:
    """The per-sample functions of a declaration on all points at once."""

    def __init__(self, declared: Declaration, xp: Any, functions: Functions) -> None:
        self.declared, self.xp, self.functions = declared, xp, functions
        self.students = len(declared.students)
        self._taught: tuple[Any, dict[bytes, Any]] = (None, {})
        # The groups of every answer are looked up once and not for every block of points.
        self._watched, self._readouts = declared.watched, [group.readouts for group in declared.groups]
        numbers = range(len(declared.groups))
        self._feeds = [[declared.readout(k, answer) is not None for answer in self._watched] for k in numbers]
        self._places = {head: declared.heads.index(head) for head in declared.force}
        self._fed = [[head for head, place in self._places.items() if self._feeds[k][place]] for k in numbers]

    def means(self, place: Place, points: Any, weights: Any) -> Means:
        """Return all means over points (n + heads in use, N) with weights (N,)."""
        U, S = self._frame(place)
        n = len(U)

        def part(x: Any, w: Any, y: Any) -> Means:
            z = placed(U[:S] @ x[:n], place.centre, slice(S))
            if self.declared.episode is not None:
                return rewarded.total(of(x, *terms) for terms in self._rewarded(place, z, x[n:], y, w))
            first, value = self._moves(place, z, x[n:], y, w)
            moves = virtual_steps.looked(
                self.declared.look, first, lambda z: self._moves(place, z, x[n:], y, w)[0], z, place.looks
            )
            return of(x, moves, value, w)

        def of(x: Any, moves: virtual_steps.Moves, value: Any, w: Any) -> Means:
            c, e, scalars = moves
            weighted = c * w
            drift = weighted @ x[:n].T
            if isotropic:
                drift = drift @ U.T + e[:, None] * place.G[:S]
            second = weighted @ c.T if self.declared.noisy else xp.zeros((S, S))
            first = weighted.sum(1)
            return Means(drift, e, first, second, scalars, value @ w)

        xp, isotropic = self.xp, self.declared.inputs is None
        y = self._teacher(place, U[S:], points)
        drift, own_terms, first, second, scalars, loss = zip(*self._blocks(part, points, weights, y), strict=True)
        total_drift = sum(drift) if isotropic else divided(xp, sum(drift), U, S)
        by_row = [sum(values) for values in zip(*scalars, strict=True)]
        return Means(total_drift, sum(own_terms), sum(first), sum(second), by_row, sum(loss))

    def _moves(self, place: Place, z: Any, noise: Any, y: Any, weights: Any) -> tuple[virtual_steps.Moves, Any]:
        """Return the motion of vectors and numbers at fields z (`_gradients`), and the loss of every point."""
        evaluation = self._seen(place, z, y, derivatives=True)
        of_loss = self._loss(place, evaluation, noise)
        return self._gradients(place, evaluation, of_loss, weights), of_loss[0]

    def _rewarded(
        self, place: Place, z: Any, noise: Any, y: Any, weights: Any
    ) -> Iterator[tuple[virtual_steps.Moves, Any, Any]]:  # fmt: skip
        """The motion at fields z, the loss of every point and the weights, for each of the rewards of an episode."""
        evaluation = self._seen(place, z, y, derivatives=True)
        of_loss = self._loss(place, evaluation, noise)
        reward_table = rewarded.rewards(self.xp, self.declared, self.functions, self._shared(place), place.odds)
        for reward, share in rewarded.by_point(reward_table, self._success(place, evaluation, of_loss[2])):
            moves = self._gradients(place, evaluation, of_loss, weights * share, reward)
            yield moves, of_loss[0], weights * share

    def _success(self, place: Place, evaluation: Seen, labels: list[Any]) -> Any:
        """The success (N,) of every point, 0 or 1."""
        return self.functions["success"](evaluation.f[0], labels[0], *self._shared(place))[0] + 0.0 * labels[0]

    def odds(self, place: Place, points: Any, weights: Any) -> Any:
        """The probability of a success."""
        U, S = self._frame(place)
        n = len(U)

        def part(x: Any, w: Any, y: Any) -> Any:
            evaluation = self._seen(place, placed(U[:S] @ x[:n], place.centre, slice(S)), y, derivatives=False)
            return self._success(place, evaluation, self._loss(place, evaluation, x[n:])[2]) @ w

        return sum(self._blocks(part, points, weights, self._teacher(place, U[S:], points)))

    def losses(self, place: Place, points: Any, weights: Any) -> tuple[Any, ...]:
        """(loss, share of wrong labels, E[(f - f*)^2], those of heads or of the labels of stages), no derivatives."""
        U, S = self._frame(place)
        n = len(U)

        def part(x: Any, w: Any, y: Any) -> tuple[Any, ...]:
            evaluation = self._seen(place, placed(U[:S] @ x[:n], place.centre, slice(S)), y, derivatives=False)
            signs = (evaluation.f[0], y[0], w) if self.declared.classifies() else None
            wrong = 0.0 if signs is None else classification.share_of_wrong_labels(self.xp, *signs)
            return (self._loss(place, evaluation, x[n:])[0] @ w, wrong, *self._errors(evaluation, w))

        parts = self._blocks(part, points, weights, self._teacher(place, U[S:], points))
        return tuple(sum(values) for values in zip(*parts, strict=True))

    def _errors(self, evaluation: Seen, w: Any) -> list[Any]:
        """Return E[(f - f*)^2] summed over the heads in use, then of every head, or with the labels of all stages."""
        errors = {
            answer: (f - y) ** 2 @ w
            for answer, f, y in zip(self.declared.watched, evaluation.f, evaluation.y, strict=True)
        }
        total = sum(errors[head] for head in self.declared.force)
        return [total, *(error for answer, error in errors.items() if answer)]

    def _blocks(self, part: Callable[..., Any], points: Any, *arrays: Any) -> list[Any]:
        """Apply `part` to the points and to arrays (.., N); NumPy uses blocks that stay in the processor's cache."""
        step = BLOCK if self.xp is np else points.shape[1]
        starts = range(0, points.shape[1], step)
        return [part(points[:, k : k + step], *(array[..., k : k + step] for array in arrays)) for k in starts]

    def _frame(self, place: Place) -> tuple[Any, int]:
        """The frame of all vectors (n, n), and the number of student vectors."""
        S = sum(s * len(g.slots) for s, g in zip(place.sizes, self.declared.students, strict=False))
        return frame(self.xp, place.G, S), S

    def _teacher(self, place: Place, U: Any, points: Any) -> Any:
        """Return the teacher y (heads, N) by its rows of the frame, in which it comes first, so that they are constant
        along a run.

        NumPy evaluates it once for given rows, for every cluster and for all points.
        """
        if place.label is not None:
            return (place.label + 0.0 * points[0])[None]
        n = len(place.G)
        first, w = n - len(U), place.w[:, sum(place.sizes[: self.students]) :]
        if self.xp is not np:
            return self._answer(place, placed(U @ points[:n], place.centre, slice(first, None)))
        centre = np.zeros(0) if place.centre is None else place.centre[first:]
        key = b"".join(
            np.ascontiguousarray(part).tobytes() for part in (U, place.G[first:, first:], centre, w, place.numbers)
        )
        if self._taught[0] is not points or len(self._taught[1]) > MOST_CLUSTERS:
            self._taught = (points, {})
        if key not in self._taught[1]:
            parts = self._blocks(
                lambda x: self._answer(place, placed(U @ x[:n], place.centre, slice(first, None))), points
            )
            self._taught[1][key] = np.concatenate(parts, axis=1)
        return self._taught[1][key]

    def _loss(self, place: Place, evaluation: Seen, noise: Any) -> tuple[Any, dict[str, Any], list[Any]]:
        """Return the loss of every point, its derivatives in the answers in use, by head, and their labels with
        noise.
        """
        places = self._places.values()
        label_noise = noise if self.declared.law is None else self.functions["noise_of"](noise, *self._shared(place))[0]
        f, y = [evaluation.f[h] for h in places], [evaluation.y[h] for h in places]
        labels = [
            clean_label + place.noise * head_noise for clean_label, head_noise in zip(y, label_noise, strict=True)
        ]
        value, *slopes = (part + 0.0 * y[0] for part in self.functions["loss"](*f, *labels, *self._shared(place)))
        if self.declared.loss == "squared" and self.declared.law is not None and self.declared.law.heavy:
            # Such noise has no mean square.
            value = sum((answer - target) ** 2 / 2 for answer, target in zip(f, y, strict=True))
        return value, dict(zip(self.declared.force, slopes, strict=True)), labels

    def _shared(self, place: Place) -> list[Any]:
        return [place.numbers[k] for k in range(len(self.declared.names))]

    def _answer(self, place: Place, z: Any) -> Any:
        """The teacher y (heads, N) on its fields."""
        row, outputs = 0, {}
        for number in range(self.students, len(self.declared.groups)):
            rows, row = self._rows(place, number, row)
            if not any(self._feeds[number]):
                continue
            outputs[number] = -self._group(place, number, z, rows, derivatives=False)[0]
        return self._predicted(place, False, outputs, 0.0 * z[:1])[0]

    def _seen(self, place: Place, z: Any, y: Any, derivatives: bool) -> Seen:
        """Return student f with a teacher y, and the outputs of its units on their fields."""
        row, unit_outputs, outputs = 0, [], {}
        for number in range(self.students):
            rows, row = self._rows(place, number, row)
            outputs[number], *group_terms = self._group(place, number, z, rows, derivatives)
            unit_outputs.append((number, rows, *group_terms))
        return Seen(*self._predicted(place, True, outputs, 0.0), y, z, unit_outputs)

    def _predicted(
        self, place: Place, student: bool, outputs: Mapping[int, Any], nothing: Any
    ) -> tuple[Any, dict[tuple[int, str], Any]]:
        """Answers or labels (answers, N) of the outputs of groups, and derivatives of f by (number of a group, head).

        Those of sums are 1, and left out.
        """
        declared, chain, rows = self.declared, {}, []
        total: Any = sum(outputs.values(), nothing)
        if not (declared.predictions if student else declared.label_predictions):
            return total, chain
        for position, answer in enumerate(declared.watched[: len(total)]):
            prediction = declared.prediction(student, answer)
            if prediction is None:
                rows.append(total[position])
                continue
            fed = {number: outputs[number][position] for number, _ in predictions.names(declared, student, answer)}
            function = self.functions[predictions.function(student, prediction.head)]
            value, *slopes = function(*fed.values(), *self._shared(place))
            rows.append(value + 0.0 * total[position])
            chain |= {(number, answer): slope for number, slope in zip(fed, slopes, strict=student)}
        return self.xp.stack(rows), chain

    def _rows(self, place: Place, number: int, row: int) -> tuple[list[slice], int]:
        """Return the rows of a group's vectors by slot, which begin at `row`, and the first row of the next group."""
        size, slots = place.sizes[number], len(self.declared.groups[number].slots)
        return [slice(row + s * size, row + (s + 1) * size) for s in range(slots)], row + slots * size

    def _group(
        self, place: Place, number: int, z: Any, rows: list[slice], derivatives: bool
    ) -> tuple[Any, list[Any], Any, Any, Any]:
        """(sums of a phi by head, scales of the fields, a, outputs of the unit, those of its logit) on fields z.

        With `derivatives` by `unit_k`, else by `value_k`; norms are read from the Gram matrix, students first.
        """
        xp, group, student = self.xp, self.declared.groups[number], number < self.students
        size, begin = place.sizes[number], 0 if student else len(place.G) - len(z)
        q = [place.square[begin + r.start : begin + r.stop][:, None] for r in rows]
        scale = [1 / xp.sqrt(square) for square in q] if student and self._normalised else []
        fields = [z[r] * k for r, k in zip(rows, scale, strict=True)] if scale else [z[r] for r in rows]
        norms = [xp.ones((size, 1)) if scale else square for square in q]
        first_bias = sum(len(g.scalars) for g in self.declared.groups[:number])
        unit_numbers = [place.bias[first_bias + b, :size][:, None] for b in range(len(group.scalars))]
        unit = sum(place.sizes[:number])
        a = place.w[: len(self.declared.heads) if derivatives else None, unit : unit + size]
        name = f"unit_{number}" if derivatives else f"value_{number}"
        out, routed = self._unit(name, number, [*fields, *norms], [*unit_numbers, *self._shared(place)])
        totals = [
            self._total(weights, out[0], z) if fed else 0.0 * z[0]
            for weights, fed in zip(a, self._feeds[number], strict=False)
        ]
        sums = totals[0][None] if len(totals) == 1 else xp.stack(totals)
        return sums, scale, a[:, :, None], out, routed

    def _total(self, a: Any, phi: Any, z: Any) -> Any:
        """Return sum a phi (N,) of a group that contributes to an answer, because 0 times NaN would be NaN."""
        # The output of a unit without fields is a number, and not a matrix to multiply.
        return a @ phi if self.xp.ndim(phi) == 2 else (a[:, None] * phi).sum(0) + 0.0 * z[0]

    @property
    def _normalised(self) -> bool:
        return self.declared.weights == "normalised"

    def _unit(self, name: str, number: int, fields: list[Any], unit_numbers: list[Any]) -> tuple[Any, Any]:
        """The outputs of a group's unit at its share, and (share, outputs of the logit) where it has one."""
        share = self.declared.groups[number].share
        if share is None:
            return self.functions[name](*fields, 1.0, *unit_numbers), None
        logits = self.functions[f"logit_{number}"](*fields, *unit_numbers)
        unit_shares = shares(self.xp, share.word, logits[0] + 0.0 * fields[0])
        return self.functions[name](*fields, unit_shares, *unit_numbers), (unit_shares, logits)

    def _gradients(
        self,
        place: Place,
        evaluation: Seen,
        of_loss: tuple[Any, dict[str, Any], list[Any]],
        weights: Any,
        reward: Any = None,
    ) -> tuple[Any, Any, list[Any]]:
        """c (S, N), E[e] (S,), and the means for the scalars, in the order of rows.

        `of_loss` are the loss of every point, its derivatives in the answers by head, and the labels; `reward` is the
        reward of the episode of every point.
        """
        xp, z, cs, es, scalars = self.xp, evaluation.z, [], [], []
        slopes = of_loss[1]
        slope = next(iter(slopes.values()))  # of the single answer, if there are rules
        norm = self._norm(evaluation, slope) if looks.normed(self.declared) else reward
        for number, rows, scale, a, out, routed in evaluation.kept:
            group = self.declared.groups[number]
            slots, ruled = len(group.slots), self.declared.ruled(group)
            own_slopes = slopes
            if evaluation.chain:
                own_slopes = {
                    head: head_slope * evaluation.chain.get((number, head), 1.0) for head, head_slope in slopes.items()
                }
            # With rules, which are for one answer, the derivatives of f are needed separately.
            base = self._along_answers(number, a, own_slopes) if not ruled else a[0] + 0.0 * slope
            parts, extra = self._derivatives(group, base, out, routed)
            df: dict[str, Any] = {}
            if ruled:
                df = dict(zip((*group.slots, *group.scalars), [*parts[:slots], *extra], strict=True))
                parts = [part * slope if _moves(part) else 0.0 for part in parts]
                extra = [part * slope for part in extra]
                df["a"] = out[0]
            for s, slot in enumerate(group.slots):
                if slot in ruled:
                    cs.append(self._rule(place, evaluation, number, slot, of_loss, df[slot], norm) + 0.0 * base)
                    es.append(xp.zeros(base.shape[0]))
                    continue
                c = parts[s] * scale[s] if scale else parts[s]
                # In normalised weights the units have vectors of norm 1: their own q is a constant.
                norm_slope = -c * z[rows[s]] / place.square[rows[s]][:, None] if scale else parts[slots + s]
                cs.append(c)
                es.append(norm_slope @ weights if _moves(norm_slope) else xp.zeros(base.shape[0]))
            by_word = {
                readout.word: out[0] * own_slopes.get(readout.head, 0.0 * slope) for readout in self._readouts[number]
            }
            by_word |= dict(zip(group.scalars, extra, strict=True))
            for word in group.own:
                part = by_word[word]
                if word in ruled:
                    part = self._rule(place, evaluation, number, word, of_loss, df[word], norm)
                scalars.append((part + 0.0 * base) @ weights)
        return xp.concatenate(cs), xp.concatenate(es), scalars

    def _along_answers(self, number: int, a: Any, slopes: Mapping[str, Any]) -> Any:
        """Return dl/dphi (units, N) of a group of students: the derivatives of the loss in the answers, times its
        readouts.
        """
        if not self._fed[number]:
            return 0.0 * a[0] * next(iter(slopes.values()))
        first, *rest = (a[self._places[head]] * slopes[head] for head in self._fed[number])
        return sum(rest, first)

    def _derivatives(self, group: Group, base: Any, out: Any, routed: Any) -> tuple[list[Any], list[Any]]:
        """Return the derivatives of f times a factor in fields, then in squared norms, and in the numbers of the unit.

        `base` is a times that factor.
        """
        slots = len(group.slots)
        parts = [base * out[1 + s] for s in range(slots)]
        # Most units do not depend on their norms: such a derivative is printed as a number, and remains one.
        parts += [base * out[1 + k] if _moves(out[1 + k]) else 0.0 for k in range(slots, 2 * slots)]
        extra = [base * out[2 + 2 * slots + b] for b in range(len(group.scalars))]
        if routed is not None and group.share is not None and group.share.word == "softmax":
            share, logits = routed
            into = base * out[1 + 2 * slots] * share
            gain = into - share * into.sum(0)  # by the logit of every unit
            parts = [part + gain * logits[1 + k] for k, part in enumerate(parts)]
            extra = [part + gain * logits[1 + 2 * slots + b] for b, part in enumerate(extra)]
        return parts, extra

    def _norm(self, evaluation: Seen, slope: Any) -> Any:
        """The norm (N,) of the gradient of all trained vectors."""
        squares = []
        for number, _, _, a, out, routed in evaluation.kept:
            group = self.declared.groups[number]
            parts, _ = self._derivatives(group, a[0] * slope, out, routed)
            trained = (self.declared.moves(group, slot) for slot in group.slots)
            squares += [(part + 0.0 * a[0] * slope) ** 2 for part, moves in zip(parts, trained, strict=False) if moves]
        return virtual_steps.norm(self.xp, squares)

    def _rule(
        self, place: Place, evaluation: Seen, number: int, word: str, of_loss: tuple[Any, Any, Any], df: Any, norm: Any
    ) -> Any:
        """The coefficients (units, N) of the rule of a slot or a number of a group, of a network with one answer.

        `norm` is gnorm, or the reward of an episode, if there is one of these; they cannot be combined.
        """
        group, (value, slope, label) = self.declared.groups[number], of_loss
        (rows, scale, a, out), size = evaluation.kept[number][1:5], place.sizes[number]
        fields = [evaluation.z[r] for r in rows]
        fields = [z * k for z, k in zip(fields, scale, strict=True)] if scale else fields
        places = [sum(len(g.scalars) for g in self.declared.groups[:number]) + b for b in range(len(group.scalars))]
        first = sum(len(g.scalars) for g in self.declared.groups)
        first += sum(len(self.declared.constants(g)) for g in self.declared.students[:number])
        places += [first + b for b in range(len(self.declared.constants(group)))]
        unit_numbers = [place.bias[position, :size][:, None] for position in places]
        order = (*group.slots, *(None for _ in group.slots), None, *group.scalars)  # of the outputs after phi
        dphi = out[1 + order.index(word)] if word in order else 0.0
        sample = (a[0], evaluation.f[0], label[0], value, next(iter(slope.values())), df, dphi)
        sample = sample if norm is None else (*sample, norm)
        return self.functions[f"rule_{number}_{word}"](*fields, *unit_numbers, *sample, *self._shared(place))[0]


def _moves(part: Any) -> bool:
    """Return True if a printed derivative is not the number 0."""
    return not (isinstance(part, float) and part == 0.0)
