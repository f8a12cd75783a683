"""One evaluation of the exact liao flow at m = 25, m* = 5: numba and JAX on one core, and what arithmetic allows."""

import ast
import re
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
    """Additions and multiplications of one evaluation, step by step of the engine."""
    import numpy as np

    from odesim.code import steps
    from odesim.code.prepared import tables_of

    equations = problem.equations
    statement = equations.code.statement()
    texts = list(tables_of(statement, equations.layout, statement.named(problem.arguments), "rates").steps.texts)
    problem.derivative(0.0, y)
    (W, T, N), _ = problem.derivative.program(y.size)
    total = 0.0
    for row in N[steps.HEAD : steps.HEAD + steps.WIDTH * int(N[0])].astype(int).reshape(-1, steps.WIDTH):
        what, count, at, _, by, more, which, level, argument, many = row
        if what == steps.SUM:
            total += 2.0 * count * more
        elif what == steps.PRODUCT:
            total += 2.0 * count * more * which
        elif what in (steps.BLOCKS, steps.LOOPS):
            text = "\n".join(texts[which])
            each = sum(isinstance(node, ast.BinOp | ast.UnaryOp) for node in ast.walk(ast.parse(text)))
            if what == steps.LOOPS:
                ends = [(int(low), int(end)) for low, end in re.findall(r"range\(g(\d+), g(\d+)\)", text)]
                total += each * float(np.prod([N[at + end] - N[at + low] for low, end in ends]))
                continue
            total += float(steps.LANES * count * each)
            x = W[T[at : at + count * by]].reshape(count, by)[:, argument : argument + steps.LANES]
            for largest in (x**2).max(axis=1) if many else ():
                place = level
                while W[place] < largest:
                    place += 3
                total += steps.LANES * many * (8.0 * W[place + 1] + 5.0)
    return total
