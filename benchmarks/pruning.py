"""pruning: a population flow against the exact recursion, and count-space SGD at batch sizes from 1 to 2.5e5."""

from typing import Any

from benchmarks.measure import Row, timing

BATCHES = (1, 250_000)


def rows(quick: bool) -> list[Row]:
    """Both bars of the system."""
    return [flow(quick), counted(quick)]


def flow(quick: bool) -> Row:
    """The flow of preset theory-small (14 experts, d = 100, 190,295 steps); the peer is the exact recursion itself.

    The error is the largest difference of an alignment, over the largest alignment.
    """
    import time

    import numpy as np

    import odesim

    options: dict[str, Any] = {"preset": "theory-small", "save_points": 2, **({"d": 40} if quick else {})}
    run = odesim.integrate("pruning", tier="flow", until=10, **options)  # compiled before the clock starts
    odesim.integrate("pruning", tier="recursion", until=10, **options)
    samples = []
    for _ in range(1 if quick else 5):
        began = time.perf_counter()
        run = odesim.integrate("pruning", tier="flow", **options)
        samples.append(time.perf_counter() - began)
    began = time.perf_counter()
    exact = odesim.integrate("pruning", tier="recursion", **options)
    peer = time.perf_counter() - began
    error = float(np.abs(run["h"][-1] - exact["h"][-1]).max() / np.abs(exact["h"][-1]).max())
    ours = timing(samples)
    return Row(
        "pruning, population flow of theory-small", ours.median, ours.spread, "exact recursion, step by step", peer,
        error, 0.0, note="bar 1 s within 1e-3 of the recursion; error: of the alignments at T, relative to the largest",
    )  # fmt: skip


def counted(quick: bool) -> Row:
    """Count-space SGD of preset theory-sgd with batches of 2.5e5 (ours) and of 1 (the peer): the cost must not differ.

    The error is that of Delta against the population, relative to its largest.
    """
    import time

    import numpy as np

    import odesim

    size: dict[str, Any] = {"d": 40} if quick else {}
    exact = odesim.integrate("pruning", preset="theory-sgd", tier="recursion", save_points=2, **size)
    options: dict[str, Any] = {
        "method": "compressed",
        "step_size": 2.0,
        "preset": "theory-sgd",
        "save_points": 2,
        **size,
    }
    odesim.simulate("pruning", batch=1, until=2, **options)
    samples: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    errors: dict[int, float] = {}
    for _ in range(1 if quick else 5):
        for batch in BATCHES:  # in turns, so that the machine's moods fall on both
            began = time.perf_counter()
            run = odesim.simulate("pruning", batch=batch, **options)
            samples[batch].append(time.perf_counter() - began)
            gap = np.abs(run["Delta"][0, -1] - exact["Delta"][-1]).max() / exact["Delta"][-1].max()
            errors[batch] = float(gap)
    ours, one = timing(samples[BATCHES[1]]), timing(samples[BATCHES[0]])
    return Row(
        "pruning, count-space SGD of theory-sgd, B = 2.5e5", ours.median, ours.spread, "the same, B = 1", one.median,
        errors[BATCHES[1]], errors[BATCHES[0]],
        note="bar: the two costs within 20 %; error: of the routers' growth against the population, one run",
    )  # fmt: skip
