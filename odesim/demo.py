"""The demonstration of `make demo`: a whole run as a user asks for it, then both back ends on a small one."""

import sys
import time
from typing import Any

SMALL: dict[str, Any] = {"m": 5, "m_star": 2, "d": 200}
UNTIL = 20.0
RTOL = 1e-11
# The two integrators control their own errors; at a requested 1e-11 they agree to 1e-9 along a whole run.
AGREEMENT = 1e-9


def main() -> int:
    """Integrate liao at its defaults, then compare numba with JAX on a small case. Return the exit code."""
    from odesim.cli import main as command

    print("$ odesim integrate --system liao", flush=True)
    try:
        command(["integrate", "--system", "liao"])
    except SystemExit as finished:
        if finished.code:
            return int(finished.code)
    words = " ".join(f"-p {name}={value}" for name, value in SMALL.items())
    print(f"\nboth back ends: --system liao {words} --until {UNTIL:g} --rtol {RTOL:g}", flush=True)
    difference = compare()
    agree = difference <= AGREEMENT
    answer = "they agree" if agree else "they DISAGREE"
    print(f"  largest difference {difference:.1e}: {answer} (to {AGREEMENT:g})")
    return 0 if agree else 3


def compare() -> float:
    """Return the largest difference between numba (SciPy) and JAX (diffrax) over all saved values of a small run."""
    import numpy as np

    import odesim

    runs = {}
    for backend in ("numba", "jax"):
        started = time.perf_counter()
        runs[backend] = odesim.integrate("liao", backend=backend, until=UNTIL, rtol=RTOL, save_points=81, **SMALL)
        run = runs[backend]
        print(f"  {backend:<6} {run.outcome.kind}, {time.perf_counter() - started:.1f} s", flush=True)
        if run.outcome.kind != "completed":
            return float("inf")
    first, second = runs["numba"], runs["jax"]
    return max(float(np.abs(first[name] - second[name]).max()) for name in first.state)


if __name__ == "__main__":
    sys.exit(main())
