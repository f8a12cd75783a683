"""kawata: 20,000 neurons to their hitting times at d = 1e6, and compressed SGD of one neuron, batch 1."""

import math
from typing import Any

from benchmarks.measure import Row, compare

RTOL = 1e-6
"""Hitting times to six digits."""


def rows(quick: bool) -> list[Row]:
    """Both bars of the system."""
    return [hitting_times(quick), single_neuron(quick)]


def hitting_times(quick: bool) -> Row:
    """The vanilla flow of 20,000 neurons to their hitting times; the peer is SciPy's DOP853, neuron by neuron.

    A neuron ends at its own hitting time for the peer; ours goes on to the horizon.  The answers are compared on the
    neurons that the peer integrates.
    """
    import time

    import numpy as np
    import scipy.integrate

    import odesim
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    N, peers, d = 2000 if quick else 20_000, 20 if quick else 100, 10**6
    request: dict[str, Any] = {"C": 2, "d": d, "k_star": 4, "bias": (-0.5,), "neurons": N}
    options = {"save_points": 2, "rtol": RTOL, "until": 1e2 * d}
    odesim.integrate("kawata", **{**request, "neurons": 64}, **options)  # compiled before the clock starts
    samples = []
    run: Any = None
    for _ in range(1 if quick else 3):
        began = time.perf_counter()
        run = odesim.integrate("kawata", **request, **options)
        samples.append(time.perf_counter() - began)
    problem = prepare(Case.build("kawata", {**request, "neurons": N}, **{**options, "save_points": 2}))
    flow, arguments = problem.functions["flow"], problem.arguments
    y, hits = problem.start.reshape(N, 5), np.minimum(run["T_kappa"].min(axis=1), run["T_xi"])
    chosen = np.flatnonzero(np.isfinite(hits))[:peers]
    worst, began = 0.0, time.perf_counter()
    for j in chosen:
        per_neuron = [a[j : j + 1] if np.shape(a)[:1] == (N,) else a for a in arguments]

        def slope(t: float, m: Any, per_neuron: Any = per_neuron) -> Any:
            return flow(t, m, *per_neuron)

        def reached(t: float, m: Any) -> float:
            return float(np.abs(m[:3]).max() - 0.5)

        reached.terminal = True  # type: ignore[attr-defined]
        tolerances = {"rtol": 1e-8, "atol": 1e-13, "events": reached}
        found = scipy.integrate.solve_ivp(slope, (0, options["until"]), y[j], "DOP853", **tolerances)
        worst = max(worst, abs(hits[j] / found.t_events[0][0] - 1))
    peer = (time.perf_counter() - began) / len(chosen) * N
    return Row(
        f"kawata, {N} neurons to their hitting times, d = 1e6", float(np.median(samples)), float(np.ptp(samples)),
        "SciPy DOP853, neuron by neuron", peer, float(worst), None,
        note=f"bar 10 s on 2 cores; peer: time from {len(chosen)} neurons that arrive, same right-hand side; "
        "error: largest relative difference of the hitting times",
    )  # fmt: skip


def single_neuron(quick: bool) -> Row:
    """Compressed SGD, C = 2, one neuron, batch 1, d = 1e6; the floor is the random numbers of a step."""
    import numba
    import numpy as np

    from derivations.contract import load
    from odesim.machine import streams
    from odesim.request.case import Case
    from odesim.sgd.compressed import Chain

    d, steps = 10**6, 20_000 if quick else 200_000
    case = Case.build("kawata", {"d": d, "C": 2, "neurons": 1, "k_star": 3, "bias": (-0.5,)})
    stage = case.system.dynamics(case.stage)
    model: Any = load(stage.model)
    initial = load(stage.enter)(case.parameters, None, streams.generator(0, "initial"))
    chain = Chain.start(
        model, initial.parameters, model.place(initial), d, 1, 1e-3 / math.sqrt(d) / d, np.random.default_rng(0),
        initial=initial,
    )  # fmt: skip

    @numba.njit
    def generate(steps, shape, rng):
        total = 0.0
        for _ in range(steps):
            for _ in range(7):
                total += rng.standard_normal()
            total += rng.random() + rng.random() + rng.standard_gamma(shape)
        return total

    rng = np.random.default_rng(1)
    functions = {"chain": lambda: chain.advance(steps), "generator": lambda: generate(steps, 0.5 * (d - 6), rng)}
    times = compare(functions, 5 if quick else 25, budget=5.0)
    ours = times["chain"]
    return Row(
        "compressed SGD, kawata, one neuron, C = 2, batch 1, per step", ours.median / steps, ours.spread / steps,
        floor_seconds=times["generator"].median / steps,
        note="bar 1 us; floor: seven normals, two uniforms and one chi variable from the same generator",
    )  # fmt: skip
