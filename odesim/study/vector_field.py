"""Vector field whose zeros are the stationary points of a declared model, as one JAX function of its unknowns.

In the limit `flow` the unknowns are the overlaps M of the students with the teachers, and trained numbers of the units.
Students then lie in the span of the teachers, and the flow stays in this span:

    Q = M P^-1 M^T,   F = (dM/dt, da/dt, ..)                    P the Gram matrix of the teachers

Zeros of F are stationary points of the vectors, and F has the spectrum of their linearisation within the span. Outside
of it the components e_a of the students along a further direction obey de_a/dt = sum_c A_ac e_c, with A from the
second-order motion of Q: d(e e^T)/dt = A e e^T + e e^T A^T. The spectrum of the Gram matrix alone would include
directions that no vectors have. In the limit `online` the unknowns are all overlaps that move, and G must have no
negative eigenvalue.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Smooth, UsageError
from derivations.declare.kinks import kinked
from derivations.declare.parameter_class import rows
from derivations.declare.places import known_places
from derivations.declare.schedules import active
from odesim.flow.problem import Problem, initial_condition, prepare
from odesim.request.case import Case

SINGULAR = 1e-9
"""Smallest eigenvalue of the Gram matrix of independent teachers. Overlaps with dependent teachers are not
coordinates.
"""
LARGEST = 150
"""Largest number of unknowns of a search, which computes 128 dense Jacobians at once."""
CONE = 1e-10
"""Part of the largest eigenvalue down to which a Gram matrix may have negative eigenvalues, due to rounding on the
boundary.
"""
STEP = 1e-3
"""First step of the differences of the arguments with respect to a parameter, in units of the parameter or of 1."""


class VectorField:
    """Field F(x, p) of a case; p are values of parameters that replace those of the case.

    `size` is the number of unknowns. `pairs` (size, 2) are the two rows of the Gram matrix whose overlap is an unknown;
    for a number of a unit the pair is (n + k, -1), n the number of rows and k the place of the number among all.
    `online` distinguishes the two meanings of the unknowns, and `spheres` is True if the norms of the students are
    fixed.
    """

    def __init__(self, case: Case) -> None:
        require_vectors(case)
        self.problem: Problem = prepare(dataclasses.replace(case, backend="jax"))
        require_smooth(self.problem)
        self.case = self.problem.case
        self.declared = case.parameters.declaration
        self.rows = rows(case.parameters)
        self.online = self.declared.limit == "online"
        self.spheres = self.declared.weights != "free" and not (self.online and self.declared.weights == "normalised")
        self._lay_out()
        if self.size > LARGEST:
            raise UsageError(
                f"atlas: the model has {self.size} unknowns, and a search takes up to {LARGEST}: choose fewer units"
            )

    def _lay_out(self) -> None:
        """Set the place of every unknown in the flat state."""
        _, table = known_places(self.problem.initial)
        students, count = self.rows.students, len(table["rows"])
        pairs = np.stack([table["rows"], table["columns"]], 1)
        pairs[pairs[:, 0] >= students] = pairs[pairs[:, 0] >= students][:, ::-1]
        self._entries = table["entries"]
        numbers_of_units = [
            (place, word)
            for number, word, _ in self.rows.scalars
            for place in self._places(self.declared.students[number].named(word))
            if self._moving(number, word)
        ]
        norms = pairs[:, 0] == pairs[:, 1]
        teachers = pairs[:, 1] >= students
        chosen = ~norms if self.spheres else np.ones(count, bool)
        if not self.online:
            order = np.lexsort((pairs[:, 1], pairs[:, 0]))
            chosen = order[teachers[order]]
        overlaps = np.arange(count)[chosen]
        self._scalars = np.array([place for place, _ in numbers_of_units], int)
        numbers = np.stack([self.rows.total + self._scalars - count, np.full(len(numbers_of_units), -1)], 1)
        self.places = np.concatenate([overlaps, self._scalars])
        self.pairs = np.concatenate([pairs[overlaps], numbers]).astype(int)
        self.size = len(self.places)

    def _places(self, name: str) -> np.ndarray:
        """Places of a component in the flat state."""
        return self.rows.layout.places(name, self.problem.start.size).ravel()

    def _moving(self, number: int, word: str) -> bool:
        """Return True if a number of the units is trained at a rate that is not 0."""
        group, p = self.declared.students[number], self.case.parameters
        rate = self.declared.rate(group, word)
        return self.declared.moves(group, word) and not (rate and getattr(p, rate) == 0)

    # -- the field ------------------------------------------------------------------------------------------------

    def values(self, changes: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Return the arrays that the field depends on, with some parameters changed: arguments, P, norms, and a flat
        state.
        """
        parameters = dataclasses.replace(self.case.parameters, **(changes or {}))
        initial = initial_condition(dataclasses.replace(self.case, parameters=parameters))
        start = self.rows.layout.pack({**self.problem.initial.state, **initial.state})
        gram = self.rows.gram({**initial.constants, **self.problem.equations.unpack(start)})
        s = self.rows.students
        arguments = self.problem.equations.arguments(initial)
        start[self.places] = 0.0  # a draw on which nothing depends
        if not self.online:
            start[: len(self._entries)] = 0.0
        return {
            "arrays": [np.asarray(a, float) for a in arguments if not _is_fixed(a)],
            "teachers": gram[s:, s:],
            "square": np.diag(gram)[:s].copy(),
            "start": start,
        }

    def derivative(self, changes: Mapping[str, float], name: str) -> dict[str, Any]:
        """d values/d parameter by differences of steps h, h/2, h/4 with Richardson's extrapolation."""
        centre, h = float(changes[name]), STEP * max(1.0, abs(float(changes[name])))
        slopes = []
        for step in (h, h / 2, h / 4):
            ahead, behind = (self.values({**changes, name: centre + sign * step}) for sign in (1, -1))
            slopes.append({key: _slope(ahead[key], behind[key], 2 * step) for key in ahead})
        coarse, middle, fine = slopes
        return {key: _richardson(coarse[key], middle[key], fine[key]) for key in fine}

    def flat(self, x: Any, values: Mapping[str, Any], outer: Any = 0.0) -> Any:
        """Flat state of the unknowns x; `outer` (students,) are squared components outside of the teachers' span."""
        import jax.numpy as jnp

        start = jnp.asarray(values["start"])
        if self.online:
            return start.at[self.places].set(x)
        m = self._on_spheres(self._overlaps(x), values, outer)
        q = m @ jnp.linalg.inv(values["teachers"]) @ m.T + jnp.diag(outer + jnp.zeros(self.rows.students))
        gram = jnp.concatenate([q, m], 1).reshape(-1)
        y = start.at[: len(self._entries)].set(gram[self._entries])
        return y.at[self._scalars].set(x[x.size - len(self._scalars) :])

    def _overlaps(self, x: Any) -> Any:
        """The overlaps (students, teachers) among the unknowns of a flow."""
        shape = (self.rows.students, self.rows.teachers)
        return x[: shape[0] * shape[1]].reshape(shape)

    def _on_spheres(self, m: Any, values: Mapping[str, Any], outer: Any = 0.0) -> Any:
        """Return overlaps of the students with the declared norms, if these are fixed."""
        import jax.numpy as jnp

        if not self.spheres:
            return m
        length = jnp.sqrt((values["square"] - outer) / self._squares(m, values))
        return m * length[:, None]

    def _squares(self, m: Any, values: Mapping[str, Any]) -> Any:
        """Squared norms (students,) of vectors in the span with the overlaps m."""
        import jax.numpy as jnp

        return ((m @ jnp.linalg.inv(values["teachers"])) * m).sum(1)

    def slope(self, x: Any, values: Mapping[str, Any]) -> Any:
        """F at the unknowns x (size,), traced by JAX."""
        import jax.numpy as jnp

        rates = self._rates(self.flat(x, values), values)[self.places]
        if self.online or not self.spheres:
            return rates
        # On a sphere nothing moves along a vector; a force to its norm, which does not vanish at 0, isolates the zeros.
        m = self._overlaps(x)
        pull = (1 - values["square"] / self._squares(m, values))[:, None] * m
        return rates - jnp.concatenate([pull.reshape(-1), jnp.zeros(len(self._scalars))])

    def _rates(self, y: Any, values: Mapping[str, Any]) -> Any:
        """Right-hand side of the flat state."""
        arrays = iter(values["arrays"])
        arguments = [a if _is_fixed(a) else next(arrays) for a in self.problem.arguments]
        return self.problem.functions["flow"](0.0, y, *arguments)

    @functools.cached_property
    def evaluate_block(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Jitted (F, dF/dx) at many unknowns (N, size)."""
        import jax

        return jax.jit(jax.vmap(self._with_jacobian, (0, None)))

    @functools.cached_property
    def evaluate(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Jitted (F, dF/dx) at unknowns (size,)."""
        import jax

        return jax.jit(self._with_jacobian)

    def _with_jacobian(self, x: Any, values: Any) -> tuple[Any, Any]:
        import jax

        def twice(x: Any) -> tuple[Any, Any]:
            rates = self.slope(x, values)
            return rates, rates

        jacobian, rates = jax.jacfwd(twice, has_aux=True)(x)
        return rates, jacobian

    @functools.cached_property
    def by_values(self) -> Callable[[Any, Any, Any], Any]:
        """Jitted derivative of F by a parameter, from d values/d parameter."""
        import jax

        return jax.jit(lambda x, values, tangent: jax.jvp(lambda v: self.slope(x, v), (values,), (tangent,))[1])

    @functools.cached_property
    def _outward(self) -> Callable[[Any, Any], Any]:
        """Jitted derivatives (students, state) of the right-hand side with respect to squared components outside of the
        span.
        """
        import jax
        import jax.numpy as jnp

        def rates(x: Any, values: Any) -> Any:
            def moved(w: Any) -> Any:
                return self._rates(self.flat(x, values, w), values)

            return jax.jacfwd(moved)(jnp.zeros(self.rows.students)).T

        return jax.jit(rates)

    def outside(self, x: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
        """Return A (students, students) of de/dt = A e, for the students' components e along a direction outside of the
        span.

        For e = unit c the second-order motion of Q, less that of vectors in the span, is A_ac in column c and row c.
        """
        s, n = self.rows.students, self.rows.total
        gram = self.gram(x, values)
        m, inverse = gram[:s, s:], np.linalg.inv(gram[s:, s:])
        matrix = np.empty((s, s))
        for c, rate in enumerate(np.asarray(self._outward(x, values))):
            motion = np.zeros((s, n)).reshape(-1)
            motion[self._entries] = rate[: len(self._entries)]
            motion = motion.reshape(s, n)
            student_motion = np.triu(motion[:, :s]) + np.triu(motion[:, :s], 1).T
            within = motion[:, s:] @ inverse @ m.T
            column = (student_motion - within - within.T)[:, c]
            column[c] /= 2
            matrix[:, c] = column
        return matrix

    # -- what a point is ------------------------------------------------------------------------------------------

    def state(self, x: np.ndarray, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Components of the state by name."""
        return self.problem.equations.unpack(np.asarray(self.flat(x, values)))

    def gram(self, x: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
        """Gram matrix (n, n) of students and teachers."""
        gram, s = np.zeros((self.rows.total, self.rows.total)), self.rows.students
        flat = np.asarray(self.flat(x, values))
        for block in self.rows.moving:
            part = self.problem.equations.unpack(flat)[block.name]
            gram[block.rows, block.columns], gram[block.columns, block.rows] = part, part.T
        gram[s:, s:] = values["teachers"]
        return gram

    def least(self, x: np.ndarray, values: Mapping[str, Any]) -> float:
        """Return the smallest eigenvalue of the Gram matrix over the largest; if it is below zero, no vectors have this
        matrix.
        """
        gram = self.gram(x, values)
        if not np.isfinite(gram).all():
            return -np.inf
        eigenvalues = np.linalg.eigvalsh(gram)
        return float(eigenvalues[0] / eigenvalues[-1])

    def loss(self, x: np.ndarray, values: Mapping[str, Any]) -> float:
        """Return the loss of the model, without the mean square of label noise if the model leaves it out."""
        arrays = iter(values["arrays"])
        arguments = [a if _is_fixed(a) else next(arrays) for a in self.problem.arguments]
        return float(self._loss(np.asarray(self.flat(x, values)), *arguments))

    @functools.cached_property
    def _loss(self) -> Callable[..., Any]:
        from odesim.flow.problem import compile_functions

        return compile_functions(self.problem.equations, "numpy")["loss"]

    def tangent(self, x: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
        """Return an orthonormal basis (size, k) of the free directions; on spheres, those that keep the norms."""
        if self.online or not self.spheres:
            return np.eye(self.size)
        m = np.asarray(self._overlaps(x)) @ np.linalg.inv(values["teachers"])
        normal = np.zeros((self.rows.students, self.size))
        for a, row in enumerate(m):
            normal[a, a * self.rows.teachers : (a + 1) * self.rows.teachers] = row
        return np.linalg.svd(normal)[2][self.rows.students :].T

    def spectrum(self, x: np.ndarray, values: Mapping[str, Any], jacobian: np.ndarray) -> np.ndarray:
        """Eigenvalues of the linearisation, the most unstable first; those of a flow within the teachers' span."""
        basis = self.tangent(x, values)
        eigenvalues = np.linalg.eigvals(basis.T @ jacobian @ basis)
        return eigenvalues[np.argsort(-eigenvalues.real, kind="stable")]


def _is_fixed(argument: Any) -> bool:
    """Return True for sizes and places, which do not depend on numbers of the model."""
    return np.asarray(argument).dtype.kind in "iub"


def _slope(ahead: Any, behind: Any, width: float) -> Any:
    if isinstance(ahead, list):
        return [_slope(a, b, width) for a, b in zip(ahead, behind, strict=True)]
    return (np.asarray(ahead) - np.asarray(behind)) / width


def _richardson(coarse: Any, middle: Any, fine: Any) -> Any:
    """Extrapolate differences of steps h, h/2 and h/4: errors of order h^2 and h^4 vanish."""
    if isinstance(fine, list):
        return [_richardson(*triple) for triple in zip(coarse, middle, fine, strict=True)]
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15


def require_vectors(case: Case) -> None:
    """Raise `UsageError` with the reason if the stationary points of a case are not points of vectors."""
    declared = getattr(case.parameters, "declaration", None)
    if declared is None:
        raise UsageError(
            f"atlas takes only declared models, and {case.system.name} is not one: "
            "odesim.linearise(run).stationary() finds a stationary point of it near a run"
        )
    reasons = {
        "giant steps follow a map, not a flow; declare limit = 'flow' or 'online'": declared.limit == "batch",
        "with time-dependent values there are no stationary points; replace them by numbers, such as -p step=0.1": (
            bool(active(case.parameters))
        ),
        "memories change continually, so there are no stationary points; declare the model without them": bool(
            declared.memories
        ),
        "momentum with a time adds velocities to the state, which are 0 at stationary points; declare the "
        "model without momentum, which has the same stationary points": declared.timed,
        "atlas supports only isotropic inputs, but [inputs] adds a Gram matrix for every eigenspace or a mean "
        "for every cluster": declared.inputs is not None,
        "a teacher that is a copy of the students changes from stage to stage; use a model with a fixed teacher": any(
            group.copied for group in declared.groups
        ),
        "a kink or a jump (relu, abs, step, sign, clip, top1, hinge) gives means without second derivatives "
        "where two vectors are parallel, and stationary points lie there": kinked(declared),
        "tier leading describes small overlaps alone; use -p tier=exact": case.tier == "leading",
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"atlas: {reason}")
    _require_moving(case)


def _require_moving(case: Case) -> None:
    """Raise `UsageError` for vectors that are not trained, and for linearly dependent teachers."""
    from derivations.declare.initial import teacher_gram

    declared = case.parameters.declaration
    for group in declared.students:
        for slot in group.slots:
            rate = declared.rate(group, slot)
            if not declared.moves(group, slot) or (rate and getattr(case.parameters, rate) == 0):
                raise UsageError(
                    f"atlas: the vectors {group.named(slot)} are not trained, so a stationary point would "
                    "depend on their random values; train all vectors"
                )
    values = np.linalg.eigvalsh(teacher_gram(case.parameters))
    if values.size == 0 or values[0] < SINGULAR * values[-1]:
        raise UsageError(
            "atlas: the teacher vectors are linearly dependent, so the overlaps with them are not "
            "coordinates; choose another gram"
        )


def require_smooth(problem: Problem) -> None:
    """Raise `UsageError` for equations over random points, because their stationary points have an error."""
    advance = problem.equations.advance
    if not isinstance(advance, Smooth) or advance.rough > 0:
        raise UsageError(
            f"atlas: tier {problem.equations.about.name} takes means over {problem.case.parameters.points} random "
            "points, and the zeros of its right-hand side are displaced by their error; atlas needs a tier exact"
        )
