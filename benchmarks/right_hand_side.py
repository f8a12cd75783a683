"""One evaluation of the exact liao flow at m = 25, m* = 5: numba and JAX on one core, and what arithmetic allows."""

import ast
from typing import Any

from benchmarks.measure import Row, compare, matmul_peak


def rows(quick: bool) -> list[Row]:
    """At the random start (small overlaps, short series) and at time 60 (overlaps near 1, long series)."""
    import jax
    import numpy as np

    from odesim.flow import solve
    from odesim.flow.problem import compile_functions, prepare
    from odesim.request.case import Case

    jax.config.update("jax_enable_x64", True)
    case = Case.build("liao", {}, until=60.0, save_points=2)
    problem = prepare(case)
    arguments = problem.arguments
    compiled = problem.slope()  # what integrators call
    reference = compile_functions(problem.equations, "numpy")["flow"]
    traced = compile_functions(problem.equations, "jax")["flow"]
    arrays = [a for a in arguments if not isinstance(a, int)]
    fixed = [a for a in arguments if isinstance(a, int)]
    jitted = jax.jit(lambda y, arrays: traced(0.0, y, *fixed, *arrays))
    late = problem.equations.start(_initial_at(problem, solve.solve(case)))
    peak = matmul_peak()
    found = []
    for label, y in (("start", problem.start), ("time 60", late)):
        on_device, device_arrays = jax.numpy.asarray(y), [jax.numpy.asarray(a) for a in arrays]
        times = compare(
            {
                "numba": lambda y=y: compiled(0.0, y),
                "jax": lambda y=on_device, a=device_arrays: jitted(y, a).block_until_ready(),
                "numpy": lambda y=y: reference(0.0, y, *arguments),
            },
            20 if quick else 300,
        )
        truth = reference(0.0, y, *arguments)
        scale = np.abs(truth).max()
        error = {
            "numba": float(np.abs(compiled(0.0, y) - truth).max() / scale),
            "jax": float(np.abs(np.asarray(jitted(on_device, device_arrays)) - truth).max() / scale),
        }
        operations = count_operations(problem, y)
        for name, bar in (("numba", "25 us"), ("jax", "300 us")):
            note = f"bar {bar}; {operations / 1e6:.2f} Mflop counted, {operations / times[name].median / peak:.0%} of "
            note += f"the core's measured {peak / 1e9:.0f} Gflop/s; error: against the NumPy assembly"
            found.append(
                Row(
                    f"right-hand side liao (25, 5), {name}, {label}", times[name].median, times[name].spread, "NumPy",
                    times["numpy"].median, error[name], None, operations / peak, note,
                )
            )  # fmt: skip
    return found


def _initial_at(problem: Any, run: Any) -> Any:
    """The last state of a run as an initial condition."""
    import dataclasses

    names = [component.name for component in problem.equations.state]
    return dataclasses.replace(problem.initial, state={name: run[name][-1] for name in names})


def count_operations(problem: Any, y: Any) -> float:
    """Additions and multiplications of one evaluation: series, pair kernels, and the product C G."""
    import numpy as np

    from derivations.liao import loops
    from odesim.code.printer import scalar_source

    m, m_star = problem.case.parameters.m, problem.case.parameters.m_star
    kernel = ast.parse(scalar_source("pair_gradient", problem.equations.code.kernels()["pair_gradient"]))
    per_pair = sum(isinstance(node, ast.BinOp | ast.UnaryOp) for node in ast.walk(kernel))
    n = 2 * (m + m_star)
    known = np.concatenate([y, problem.arguments.teachers.ravel(), (1.0, 0.0)])
    at = loops.layout(m, m_star)
    inputs = known[at["inputs"]].reshape(6, -1)
    levels, (reach, ends) = problem.arguments.series, problem.arguments.reach
    total = 0.0
    for k, block in enumerate((inputs[0] ** 2).reshape(-1, 16)):
        if k >= at["alone"]:
            total += 16 * per_pair
            continue
        terms = ends[np.searchsorted(reach[:-1], block.max())]
        total += 16 * (levels.shape[1] * (2 * terms + 5) + per_pair)
    return total + 2.0 * 2 * m * n * n + 3.0 * 2 * m * n
