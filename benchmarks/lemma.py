"""The table of E[He_i He_j He_k He_l] for all degrees up to 12: ours against repeated hafnians of The Walrus."""

from typing import Any

from benchmarks import peers
from benchmarks.measure import Row, compare, matmul_peak

DEGREE = 12
SAMPLE = ((12, 12, 12, 12), (12, 0, 0, 12), (6, 6, 6, 6), (3, 3, 3, 3), (11, 9, 12, 12), (12, 10, 8, 12))


def rows(quick: bool) -> list[Row]:
    """The whole table of four correlated variables of unit variance, 28,561 entries."""
    import numpy as np

    from hermite.table import table

    factor = np.random.default_rng(7).standard_normal((4, 6))
    covariance = factor @ factor.T
    scale = 1.0 / np.sqrt(np.diag(covariance))
    covariance = scale[:, None] * covariance * scale
    size = DEGREE + 1
    out = np.empty((size,) * 4)
    functions = {"ours": lambda: table(covariance, DEGREE, out)}
    note, theirs = (
        "bar 25 us; numba, into a given array; errors: against 50 digits, relative to the largest entry",
        None,
    )
    try:
        from thewalrus import hafnian_batched

        off = covariance - np.diag(np.diag(covariance))
        functions["peer"] = lambda: hafnian_batched(off, size, np.zeros(4))
        theirs = np.real(np.asarray(functions["peer"]()))
    except Exception as error:
        functions.pop("peer", None)
        note = f"{note}; {peers.reason(error)}"
    times = compare(functions, 20 if quick else 200)
    peer = times.get("peer")
    # Half of the entries vanish by parity; the others need three multiply-adds.
    floor = size**4 / 2 * 6 / matmul_peak()
    exact = exact_sample(covariance)
    return [
        Row(
            f"lemma table, degree {DEGREE}, 4 factors", times["ours"].median, times["ours"].spread, "The Walrus",
            peer.median if peer else None, largest_error(exact, out),
            largest_error(exact, theirs) if theirs is not None else None, floor, note,
        )
    ]  # fmt: skip


def largest_error(exact: dict[tuple[int, ...], Any], values: Any) -> float:
    """The largest error of a table at the exact entries, relative to the largest entry of the table."""
    scale = float(abs(values).max())
    return max(abs(float(value - float(values[degrees]))) for degrees, value in exact.items()) / scale


def exact_sample(covariance: Any) -> dict[tuple[int, ...], Any]:
    """Some entries of the table, the largest among them, by the recurrence in 50 digits."""
    import mpmath

    memory: dict[tuple[int, ...], Any] = {(0, 0, 0, 0): mpmath.mpf(1)}

    def moment(degrees: tuple[int, ...]) -> Any:
        """Stein's identity: lower the first variable by one, and each other in turn."""
        if sum(degrees) % 2:
            return mpmath.mpf(0)
        if degrees not in memory:
            first = next(k for k, n in enumerate(degrees) if n)
            lower = [n - (k == first) for k, n in enumerate(degrees)]
            total = mpmath.mpf(0)
            for j in range(4):
                entry = mpmath.mpf(float(covariance[first, j])) - (j == first)
                if lower[j] and entry:
                    total += entry * lower[j] * moment(tuple(n - (k == j) for k, n in enumerate(lower)))
            memory[degrees] = total
        return memory[degrees]

    with mpmath.workdps(50):
        return {degrees: moment(degrees) for degrees in SAMPLE}
