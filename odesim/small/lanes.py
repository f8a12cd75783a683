"""Text of DOP853 for one small flow, with eight flows side by side; `lane_loops` calls it."""

from derivations.contract import Kernel
from odesim.flow.tableau import dop853

WIDTH = 8
"""Number of lanes: one AVX-512 register, two of AVX."""


def block_functions(kernel: Kernel, n: int) -> list[str]:
    """Return `block_slope` and `block_jacobian` for the kernels `slopes` and `jacobian`, for `odesim.flow.blocks`."""
    entries = ", ".join(f"out[{i}]" for i in range(n * n))
    given = _given("y", "P", kernel, n)
    return [
        f"def block_slope(y, out, tables, kernels):\n    P = tables[0]\n    {_outputs(n)} = slopes({given})\n",
        f"def block_jacobian(y, out, tables, kernels):\n    P = tables[0]\n    {entries}, = jacobian({given})\n",
    ]


def slopes_at(kernel: Kernel, n: int) -> str:
    """Return `slopes_at(row, out)`, which computes the slopes at a row of states and parameters."""
    call = f"{_outputs(n)} = slopes({_given('y', 'P', kernel, n)})"
    return f"def slopes_at(row, out):\n    y, P = row, row[{n}:]\n    {call}\n"


def _outputs(n: int) -> str:
    return ", ".join(f"out[{i}]" for i in range(n)) + ","


def _given(state: str, parameters: str, kernel: Kernel, n: int) -> str:
    """Return the arguments of a kernel at a state and parameters."""
    numbers = [*(f"{state}[{i}]" for i in range(n)), *(f"{parameters}[{j}]" for j in range(_extra(kernel, n)))]
    return ", ".join(["0", "0", *numbers])


def _extra(kernel: Kernel, n: int) -> int:
    """Return the number of parameters of a kernel besides the n entries of the state."""
    return len(kernel.scalars) - n


def lane_functions(kernel: Kernel, n: int) -> list[str]:
    """Return `lane_slope(w, lane)` and `lane_step(w, rtol)` for a flow of n numbers with the kernel `slopes`.

    w has rows of eight numbers: y (n), its slope (n), y at the end of the step (n), the slope there (n), the parameters
    (q), the step h, of the step taken norm^(-1/8), with the error's norm in units of the tolerance, and the square of h
    times the largest observed rate, and the size below which the errors of entries are absolute.
    """
    fixed = [f"p{j}" for j in range(_extra(kernel, n))]
    at = WIDTH * (4 * n + len(fixed))
    read = [f"y{i} = w[{WIDTH * i} + lane]" for i in range(n)]
    read += [f"{p} = w[{WIDTH * (4 * n + j)} + lane]" for j, p in enumerate(fixed)]
    slope = [f"{_targets('f', 0, n)} = {_call([f'y{i}' for i in range(n)], fixed)}"]
    slope += [f"w[{WIDTH * (n + i)} + lane] = f0_{i}" for i in range(n)]
    step = [f"h = w[{at} + lane]", *(f"f0_{i} = w[{WIDTH * (n + i)} + lane]" for i in range(n))]
    step += _stages(n, fixed) + _judge(n, at)
    return [
        "def lane_slope(w, lane):\n" + "".join(f"    {line}\n" for line in [*read, *slope]),
        f"def lane_step(w, rtol):\n    for lane in range({WIDTH}):\n"
        + "".join(f"        {line}\n" for line in [*read, *step]),
    ]


def _targets(stem: str, stage: int, n: int) -> str:
    return ", ".join(f"{stem}{stage}_{i}" for i in range(n)) + ","


def _call(state: list[str], fixed: list[str]) -> str:
    return f"slopes({', '.join(['0', '0', *state, *fixed])})"


def _sum(weights, i: int) -> str:
    """Return the sum of the slopes of component i with these weights, without vanishing terms."""
    return " + ".join(f"{float(c)!r} * f{s}_{i}" for s, c in enumerate(weights) if c != 0)


def _stages(n: int, fixed: list[str]) -> list[str]:
    """Return all stages: f1 .. f11, the last stage z, the new state and, as f12, its slope."""
    A, B = dop853().A, dop853().B
    lines = []
    for s in range(1, 12):
        lines += [f"z{i} = y{i} + h * ({_sum(A[s], i)})" for i in range(n)]
        lines.append(f"{_targets('f', s, n)} = {_call([f'z{i}' for i in range(n)], fixed)}")
    lines += [f"n{i} = y{i} + h * ({_sum(B, i)})" for i in range(n)]
    return [*lines, f"{_targets('f', 12, n)} = {_call([f'n{i}' for i in range(n)], fixed)}"]


def _judge(n: int, at: int) -> list[str]:
    """Return the error's norm and the largest observed rate, as in `block_loops.attempt`, and the stored values."""
    E3, E5 = dop853().E3, dop853().E5
    lines = ["five = 0.0", "three = 0.0", "rise = 0.0", "run = 1e-300", f"least = w[{at + 3 * WIDTH} + lane]"]
    for i in range(n):
        lines += [
            f"size = abs(y{i})",
            f"other = abs(n{i})",
            "scale = h / (least + (size if size > other else other))",  # for a start at 1e-300 this is a number
            f"five += (({_sum(E5, i)}) * scale) ** 2",
            f"three += (({_sum(E3, i)}) * scale) ** 2",
            f"rise += (f12_{i} - f11_{i}) ** 2",
            f"run += (n{i} - z{i}) ** 2",
            f"w[{WIDTH * (2 * n + i)} + lane] = n{i}",
            f"w[{WIDTH * (3 * n + i)} + lane] = f12_{i}",
        ]
    norm = f"five / (rtol * np.sqrt((five + 0.01 * three) * {n}.0 + 1e-300))"
    return [
        *lines,
        f"w[{at + WIDTH} + lane] = 1.0 / np.sqrt(np.sqrt(np.sqrt({norm})))",
        f"w[{at + 2 * WIDTH} + lane] = h * h * rise / run",
    ]
