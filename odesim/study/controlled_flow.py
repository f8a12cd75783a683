"""Flow with a step, decay or noise u(t) that can be chosen: states, costates and the greedy choice on a fixed grid.

The state follows y' = F(y, u) by the classical Runge-Kutta rule on a grid, with u at the grid points and half-way
between them, so that everything is a differentiable function of the values of u. In the step of online SGD F is a
quadratic polynomial, F = F0 + u F1 + u^2 F2: then the Hamiltonian p . F of a costate p is a parabola in u, and its
least value is known in closed form.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.errors import UsageError
from odesim.request.case import Case
from odesim.study import parameter_dependence as dependence
from odesim.study.parameter_dependence import Inputs
from odesim.study.traced_quantities import TracedQuantity

EXACT = 1e-9
"""Relative deviation from a quadratic polynomial that counts as rounding."""
STILL = 1e-12
"""Entries of a state that move by less than this, relative to the fastest, count as constant."""
CHOICES = 129
"""Number of values of u among which the greedy one is searched if F is not a quadratic polynomial."""


class ControlledFlow:
    """A flow with a parameter u that may change in time, and a quantity h of its state.

    Raises `UsageError` if the start depends on u, if other schedules jump, or if the arguments are not a quadratic
    polynomial in u.
    """

    def __init__(
        self, case: Case, base: Inputs, name: str, quantity: TracedQuantity, bounds: tuple[float, float]
    ) -> None:
        self.base, self.quantity, self.bounds, self.start = base, quantity, bounds, base.start
        if len(base.ends):
            raise UsageError(f"the model has schedules that jump at t = {base.ends[0]:g}; replace them by numbers")
        self._coefficients = _polynomial(case, base, name, bounds)
        if np.abs(self._coefficients[1:, : base.start.size]).max(initial=0.0) > 0:
            raise UsageError(f"--vary {name}: the start depends on it")
        self.quadratic = self._is_quadratic()

    def _arguments(self, u: Any) -> tuple[Any, ...]:
        """Run-time arguments at a value of u."""
        import jax.numpy as jnp

        first, second, third = (jnp.asarray(row[self.start.size :]) for row in self._coefficients)
        row, floats, place = first + u * second + u**2 * third, [], 0
        for array in self.base.floats[0]:
            floats.append(row[place : place + array.size].reshape(array.shape))
            place += array.size
        return dependence.joined(self.base.sizes, floats, self.base.whole)

    def rate(self, y: Any, u: Any) -> Any:
        """Return F(y, u)."""
        return self.base.problem.functions["flow"](0.0, y, *self._arguments(u))

    def value(self, y: Any, u: Any) -> Any:
        """Return h(y)."""
        return self.quantity.value(self.base.problem.functions, y, self._arguments(u))

    def _is_quadratic(self) -> bool:
        """True if F is a quadratic polynomial in u at the start and near it."""
        import jax

        rate, (low, high) = jax.jit(self.rate), self.bounds
        states = [self.start, self.start + 0.01 * np.cos(np.arange(self.start.size))]
        nodes = low + (high - low) * np.array([0.1, 0.35, 0.6, 0.85])
        weights = np.linalg.solve(np.vander(nodes[:3], increasing=True).T, nodes[3] ** np.arange(3))
        for y in states:
            rates = np.array([rate(y, u) for u in nodes])
            if np.abs(weights @ rates[:3] - rates[3]).max() > EXACT * np.abs(rates).max():
                return False
        return True

    def powers(self, y: Any) -> tuple[Any, Any]:
        """Return F1 and F2 of F = F0 + u F1 + u^2 F2, from three evaluations."""
        import jax
        import jax.numpy as jnp

        upper = self.bounds[1]
        zero, middle, end = jax.vmap(lambda u: self.rate(y, u))(jnp.array([0.0, upper / 2, upper]))
        return (4 * middle - end - 3 * zero) / upper, (2 * end - 4 * middle + 2 * zero) / upper**2

    def least(self, y: Any, p: Any) -> Any:
        """Return the u between the bounds that minimises p . F(y, u)."""
        import jax
        import jax.numpy as jnp

        low, high = self.bounds
        if not self.quadratic:
            choices = jnp.linspace(low, high, CHOICES)
            return choices[jnp.argmin(jax.vmap(lambda u: p @ self.rate(y, u))(choices))]
        first, second = (p @ part for part in self.powers(y))
        vertex = -first / (2 * jnp.where(second > 0, second, 1.0))
        edge = jnp.where(first * high + second * high**2 < first * low + second * low**2, high, low)
        return jnp.clip(jnp.where(second > 0, vertex, edge), low, high)

    @functools.cached_property
    def states(self) -> Callable[[Any, Any], Any]:
        """Jitted states (n + 1, P) at the grid points, from steps (n,) and u at points and midpoints (2n + 1,)."""
        import jax

        return jax.jit(self.follow)

    def follow(self, steps: Any, u: Any) -> Any:
        """Return the states at the grid points, as a traced function."""
        import jax
        import jax.numpy as jnp

        def step(y: Any, inputs: Any) -> Any:
            h, begin, middle, end = inputs
            next_state = _runge_kutta(self.rate, y, h, jnp.stack([begin, middle, middle, end]))
            return next_state, next_state

        start = jnp.asarray(self.start)
        _, later = jax.lax.scan(step, start, (steps, u[0:-1:2], u[1::2], u[2::2]))
        return jnp.concatenate([start[None], later])

    @functools.cached_property
    def values(self) -> Callable[[Any, Any], Any]:
        """Jitted values of h (n,) along states (n, P) and u (n,)."""
        import jax

        return jax.jit(jax.vmap(self.value))

    @functools.cached_property
    def greedy(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Jitted states (n + 1, P) and u (n + 1,) of the schedule that lowers `sign` h as fast as possible at every
        moment.

        Called with steps (n,) and the sign, 1 or -1.
        """
        import jax
        import jax.numpy as jnp

        def run(steps: Any, sign: Any) -> Any:
            def choice(y: Any) -> Any:
                return self.least(y, sign * jax.grad(self.value)(y, self.bounds[1]))

            def step(y: Any, h: Any) -> Any:
                next_state = _runge_kutta(lambda y, unused: self.rate(y, choice(y)), y, h, jnp.zeros(4))
                return next_state, next_state

            start = jnp.asarray(self.start)
            _, later = jax.lax.scan(step, start, steps)
            states = jnp.concatenate([start[None], later])
            return states, jax.vmap(choice)(states)

        return jax.jit(run)

    @functools.cached_property
    def sweep(self) -> Callable[[Any, Any], tuple[Any, ...]]:
        """Jitted sweep: final h, states, costates (n + 1, P), and the u with the least p . F, of steps and u (n + 1,).

        u is linear between the grid points.  p' = -F_y^T p backwards from p(T) = grad h, along a state that is cubic
        between two points.
        """
        import jax
        import jax.numpy as jnp

        def pulled(y: Any, u: Any, p: Any) -> Any:
            return jax.vjp(lambda y: self.rate(y, u), y)[1](p)[0]

        def back(p: Any, inputs: Any) -> Any:
            h, y0, y1, u0, u1 = inputs
            slopes = jax.vmap(self.rate)(jnp.stack([y0, y1]), jnp.stack([u0, u1]))
            middle, um = (y0 + y1) / 2 + h / 8 * (slopes[0] - slopes[1]), (u0 + u1) / 2
            stage_inputs = jnp.stack([y1, middle, middle, y0]), jnp.stack([u1, um, um, u0])
            previous = _runge_kutta(lambda p, stage: pulled(stage[0], stage[1], p), p, h, stage_inputs)
            return previous, previous

        def run(steps: Any, u: Any) -> Any:
            fine = jnp.zeros(2 * u.size - 1).at[::2].set(u).at[1::2].set((u[1:] + u[:-1]) / 2)
            states = self.follow(steps, fine)
            last = jax.grad(self.value)(states[-1], u[-1])
            _, costates = jax.lax.scan(back, last, (steps, states[:-1], states[1:], u[:-1], u[1:]), reverse=True)
            costates = jnp.concatenate([costates, last[None]])
            return self.value(states[-1], u[-1]), states, costates, jax.vmap(self.least)(states, costates)

        return jax.jit(run)

    def alignment(self, states: np.ndarray, costates: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return the cosine (n,) between costate and grad h over the entries that move: 1 where greed is optimal."""
        import jax

        slopes = np.asarray(jax.jit(jax.vmap(jax.grad(self.value)))(states, u))
        speeds = np.abs(np.asarray(jax.jit(jax.vmap(self.rate))(states, u))).max(0)
        moving = speeds > STILL * speeds.max()
        p, g = np.asarray(costates)[:, moving], slopes[:, moving]
        sizes = np.linalg.norm(p, axis=1) * np.linalg.norm(g, axis=1)
        return (p * g).sum(1) / np.where(sizes > 0, sizes, 1.0)


def _runge_kutta(rate: Callable[[Any, Any], Any], y: Any, h: Any, inputs: Any) -> Any:
    """One step of the classical rule y' = rate(y, input) with the inputs of its four stages in arrays (4, ..).

    The stages are a loop, because the right-hand side would otherwise be compiled four times.
    """
    import jax
    import jax.numpy as jnp

    def stage(carry: Any, stage_data: Any) -> Any:
        slope, total = carry
        reach, weight, stage_input = stage_data
        slope = rate(y + h * reach * slope, stage_input)
        return (slope, total + weight * slope), None

    reach, weights = jnp.array([0.0, 0.5, 0.5, 1.0]), jnp.array([1.0, 2.0, 2.0, 1.0]) / 6
    (_, total), _ = jax.lax.scan(stage, (0.0 * y, 0.0 * y), (reach, weights, inputs))
    return y + h * total


def _polynomial(case: Case, base: Inputs, name: str, bounds: tuple[float, float]) -> np.ndarray:
    """Coefficients (3, numbers) of start and arguments as a quadratic polynomial of a parameter.

    Raises `UsageError` if they are not such a polynomial, as for a batch, which divides the noise.
    """
    low, high = bounds
    nodes = low + (high - low) * np.array([0.25, 0.5, 0.75, 1.0])
    rows = []
    for node in nodes:
        node_inputs = dependence.inputs_of(dependence.moved(case, name, float(node)))
        if node_inputs.form != base.form:
            raise UsageError(f"--vary {name}: it changes the form of the equations")
        rows.append(np.nan_to_num(node_inputs.flat))
    powers = np.vander(nodes, 3, increasing=True)
    coefficients = np.linalg.solve(powers[:3], np.array(rows[:3]))
    coefficients[np.abs(coefficients) < 1e-13 * np.abs(np.array(rows)).max(0)] = 0.0
    error = np.abs(powers[3] @ coefficients - rows[3])
    if (error > EXACT * np.maximum(np.abs(rows[3]), 1.0)).any():
        raise UsageError(
            f"--vary {name}: a schedule needs equations that are quadratic in {name}, and those of this model are not"
        )
    return coefficients
