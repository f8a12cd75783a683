"""The exact flow of a declared model as a script that runs alone with NumPy and SciPy."""

import inspect
from typing import Any

import numpy as np

from derivations.contract import UsageError, load
from derivations.declare import arrays, loops, population, tilt
from derivations.declare.initial import enter
from derivations.declare.kernels import Kernels
from derivations.declare.lane_frame import FIXED
from derivations.declare.system import rows

SCRIPT = """

def drift_of(t, y):
    return flow(t, y, *ARGUMENTS)


if __name__ == "__main__":
    from scipy.integrate import solve_ivp

    run = solve_ivp(drift_of, (0.0, UNTIL), START, method="DOP853", rtol=1e-8, atol=1e-10)
    print("loss at the start", loss(START, *ARGUMENTS))
    print("loss at time", run.t[-1], loss(run.y[:, -1], *ARGUMENTS))
"""


def python(parameters: Any, found: Kernels) -> str:
    """A script that runs alone with NumPy and SciPy: the generated functions, the loops around them, and a start."""
    if found.closed or (parameters.declaration.limit == "online" and found.second):
        raise UsageError("there is no exact flow to print as Python")
    initial = enter(parameters, None, np.random.default_rng(0))
    equations_ = population.exact(parameters)
    named = {**({} if found.tilts else {"second": population.NONE}), **dict(found.texts)}
    texts = [text for name, text in named.items() if name != "pairs" and not name.startswith("lanes_")]
    tilted = [load(reference) for reference in tilt.LOOPS] if found.tilts else []
    frame = ("look_up", "normalise", "seen", "motion", "packed", "view", "flow", "parts", "watch", "loss")
    helpers = [inspect.getsource(function) for function in (*tilted, *(getattr(loops, name) for name in frame))]
    values = equations_.arguments(initial)
    plain = (*values[: arrays.Arguments._fields.index("cells")], *values[FIXED:])  # without tables of lanes
    given = ",\n    ".join(_literal(value) for value in plain)
    start = f"START = {_literal(equations_.start(initial))}\nARGUMENTS = (\n    {given},\n)\nUNTIL = 100.0\n"
    names = ", ".join(part.name for part in rows(parameters).layout.parts)
    head = f'"""{parameters.declaration.title}: the exact flow, derived by odesim.  State: {names}."""\n\n'
    head += "import math\nfrom math import cos, erf, exp, sin, sqrt\n\nimport numpy as np\n"
    return "\n\n".join([head, *texts, *helpers, start]) + SCRIPT


def _literal(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name}).reshape({value.shape})"
    return repr(value)
