"""Parts of a printed Python file that are the same for every statement."""

from derivations.equations.interpreter import REACH, STEP

HEAD = '''"""{title}

{body}
"""

from types import SimpleNamespace
from typing import Any  # noqa: F401

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import binom, erf, eval_hermitenorm, factorial, gammaln  # noqa: F401
'''
QUIET = '@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # in branches that are not taken'
INTEGRAL = f'''
def integral(f):
    """Over (0, oo), of an even analytic function that decays: midpoints up to {REACH:g} in steps of {STEP:g}."""
    return sum(f(w) for w in np.arange({STEP / 2!r}, {REACH!r}, {STEP!r})) * {STEP!r}
'''
MEAN = '''
def mean(f, low, high, nodes):
    """The mean of f over a uniform law, by Gauss-Legendre nodes."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return sum(weight / 2 * f(low + (high - low) * (at + 1) / 2) for at, weight in zip(x, w))
'''
SHAPES = '''
def shapes(p):
    """The shapes of the arrays of the state."""
{names}
    return {{
{body}    }}
'''
PACK = '''
def pack(state, p):
    """One flat vector from the arrays of the state."""
    return np.concatenate([np.ravel(state[name]) for name in shapes(p)])


def unpack(y, p):
    """The arrays of the state from a flat vector (or from vectors side by side)."""
    sizes = {name: int(np.prod(shape)) for name, shape in shapes(p).items()}
    parts = np.split(y, np.cumsum(list(sizes.values()))[:-1])
    return {n: part.reshape((*shape, *y.shape[1:])) for (n, shape), part in zip(shapes(p).items(), parts)}
'''
FLOW = '''
def example():
    """Integrate from the example's initial state and say when each entry of {watched} passes {level:g}."""
    p = parameters()
    {names}
{start}
    run = solve_ivp(
        lambda t, y: pack(rates(unpack(y, p), p), p), (0.0, {until!r}), pack(start, p),
        rtol=1e-6, atol=1e-9, t_eval=np.linspace(0.0, {until!r}, 4001),
    )
    path = unpack(run.y, p)["{watched}"]
    for entry in np.ndindex(path.shape[:-1]):
        above = np.flatnonzero(path[entry] > {level!r})
        if above.size:
            print("{watched}", [n + 1 for n in entry], "passes {level:g} at t =", round(float(run.t[above[0]]), 2))
    print("right-hand sides:", run.nfev)
    return run


if __name__ == "__main__":
    example()
'''
RECURSION = '''
def example():
    """Iterate from the example's initial state and say when each entry of {watched} passes {level:g}."""
    p = parameters()
    {names}
{start}
    step, passed = {step}, set()
    state = {{name: np.asarray(start[name], float) for name in shapes(p)}}
    for n in range(int(round({until!r} / step)) + 1):
        for entry in np.ndindex(state["{watched}"].shape):
            if state["{watched}"][entry] > {level!r} and entry not in passed:
                passed.add(entry)
                print("{watched}", [i + 1 for i in entry], "passes {level:g} at t =", round(n * step, 2))
        moved = rates(state, p)
        state = {{name: state[name] + step * moved[name] for name in state}}
    print("steps:", n)
    return state


if __name__ == "__main__":
    example()
'''
