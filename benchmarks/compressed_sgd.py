"""Compressed SGD on one core: a bare single index at batch 1, and liao (25, 5) at batch 256, at small and huge d."""

from typing import Any

from benchmarks.measure import Row, compare, matmul_peak


def rows(quick: bool) -> list[Row]:
    """Seconds per SGD step."""
    return [single_index(quick), *liao(quick)]


def single_index(quick: bool) -> Row:
    """He_3, one student, one teacher vector, batch 1; the floor is the generator alone: two normals and a gamma."""
    import numba
    import numpy as np

    from benchmarks import single_index as case
    from odesim.sgd.compressed import Chain

    d, steps = 10**6, 20_000 if quick else 200_000
    # A step size of 0.01/d keeps the overlap at its starting size, so every step costs the same.
    chain = Chain.start(case.MODEL, case.Parameters(d), case.start(1e-3), d, 1, 1e-2 / d, np.random.default_rng(0))

    @numba.njit
    def generate(steps, shape, rng):
        total = 0.0
        for _ in range(steps):
            total += rng.standard_normal() + rng.standard_normal() + rng.standard_gamma(shape)
        return total

    rng = np.random.default_rng(1)
    functions = {"chain": lambda: chain.advance(steps), "generator": lambda: generate(steps, 0.5 * (d - 2), rng)}
    times = compare(functions, 5 if quick else 25, budget=5.0)
    ours = times["chain"]
    return Row(
        "compressed SGD, single index, batch 1, per step", ours.median / steps, ours.spread / steps,
        floor_seconds=times["generator"].median / steps,
        note="bar 0.2 us; numba; floor: two normals and one chi variable from the same generator",
    )  # fmt: skip


def liao(quick: bool) -> list[Row]:
    """m = 25, m* = 5, batch 256, at d = 1e3 and 1e9 in turn; the floor is normals and matrix products."""
    import numpy as np

    from derivations.contract import load
    from odesim.machine import streams
    from odesim.request.case import Case
    from odesim.sgd.compressed import Chain

    batch, steps = 256, 5 if quick else 20
    chains = {}
    for d in (10**3, 10**9):
        case = Case.build("liao", {"d": d})
        stage = case.system.dynamics(case.stage)
        model = load(stage.model)
        initial = load(stage.enter)(case.parameters, None, streams.generator(0, "initial"))
        chains[d] = Chain.start(
            model, initial.parameters, model.place(initial), d, batch, 1e-6, np.random.default_rng(d)
        )
    n, trained = next(iter(chains.values())).factor.shape[0], 50
    functions: dict[str, Any] = {f"{d}": (lambda chain=chain: chain.advance(steps)) for d, chain in chains.items()}
    rng = np.random.default_rng(2)
    functions["normals"] = lambda: rng.standard_normal((n, batch))
    times = compare(functions, 5 if quick else 25, budget=5.0)
    products = 2.0 * batch * (n * n + 2 * trained * n + trained**2) + 2.0 * trained**3
    floor = times["normals"].median + products / matmul_peak()
    found = []
    for d in chains:
        ours = times[f"{d}"]
        ratio = ours.median / times["1000"].median
        note = f"bar 0.6 ms; {ratio:.2f} times the cost at d = 1e3 (bar within 10 %)"
        note += "; floor: the normals, and the matrix products at peak"
        name = f"compressed SGD, liao (25, 5), batch {batch}, d = {d:.0e}, per step".replace("e+0", "e")
        found.append(Row(name, ours.median / steps, ours.spread / steps, floor_seconds=floor, note=note))
    return found
