"""From nothing to the first right-hand side and loss of liao, and from the cache in a second process."""

import tempfile
import time

from benchmarks.measure import Row, child, timing


def rows(quick: bool) -> list[Row]:
    """Fresh processes; imports of third-party packages apart, and also counted in."""
    first, second = [], []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as cache:
            environment = {"ODESIM_CACHE": cache}
            first.append(child("benchmarks.compile_time:until_first_values()", environment))
            second += [child("benchmarks.compile_time:until_first_values()", environment) for _ in range(2)]
    found = []
    for label, runs, bar in (("empty cache", first, "3 s"), ("from the cache", second, "0.3 s")):
        work = timing([run["work"] for run in runs])
        everything = timing([run["work"] + run["imports"] for run in runs])
        parts = ", ".join(f"{k} {timing([run[k] for run in runs]).median:.2f} s" for k in ("derive", "flow", "loss"))
        note = f"bar {bar}; {parts}; with imports of NumPy, SciPy, numba and SymPy {everything.median:.2f} s"
        found.append(Row(f"derive and compile liao, numba, {label}", work.median, work.spread, note=note))
    return found


def until_first_values() -> dict[str, float]:
    """Seconds for third-party imports, and for everything from the request to values of the flow and the loss."""
    began = time.perf_counter()
    import numba  # noqa: F401
    import numpy  # noqa: F401
    import scipy.integrate  # noqa: F401
    import sympy  # noqa: F401

    imported = time.perf_counter()
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    problem = prepare(Case.build("liao", {}))
    derived = time.perf_counter()
    problem.functions["flow"](0.0, problem.start, *problem.arguments)
    flow = time.perf_counter()
    problem.functions["loss"](problem.start, *problem.arguments)
    ended = time.perf_counter()
    return {
        "imports": imported - began,
        "derive": derived - imported,
        "flow": flow - derived,
        "loss": ended - flow,
        "work": ended - imported,
    }
