"""Explicit SGD of liao against a plain PyTorch loop of the same model, and its memory at large d and batch."""

from typing import Any

from benchmarks import peers
from benchmarks.measure import Row, child, compare

D, M, M_STAR, BATCH = 1000, 25, 5, 4096
STEP = 1e-4
BLOCK = 512
"""Samples whose 2 MB stay in a core's cache between being drawn and being used; 4096 at once take twice as long."""
NORMAL = 1.2e-9
"""Seconds of a normal number, by the fastest vectorised library on a core with vectors of 512 bits."""


def rows(quick: bool) -> list[Row]:
    """Seconds per step on one core, float32; then the peak memory of one step at d = 1e5."""
    return [speed(quick), memory(quick)]


def speed(quick: bool) -> Row:
    """d = 1000, m = 25, m* = 5, batch 4096; the floor counts the two products and a fast generator's normals."""
    engine = make_engine(D, BATCH)
    steps = 2 if quick else 4

    functions: dict[str, Any] = {"ours": lambda: engine.advance(steps), "products": bare_loop(steps)}
    note = f"bar 1.3 times the floor: the two products in blocks, measured, and {1e9 * NORMAL:.1f} ns a normal number"
    try:
        functions["peer"] = torch_loop(steps)
    except Exception as error:
        note = f"{note}; {peers.reason(error)}"
    times = compare(functions, 3 if quick else 15, budget=10.0)
    ours, peer = times["ours"], times.get("peer")
    floor = times["products"].median / steps + NORMAL * BATCH * D
    return Row(
        f"explicit SGD, liao (25, 5), d = {D}, batch {BATCH}, float32, per step", ours.median / steps,
        ours.spread / steps, "PyTorch loop", peer.median / steps if peer else None, floor_seconds=floor,
        note=f"{note}; {ours.median / steps / floor:.2f} times",
    )  # fmt: skip


def bare_loop(steps: int) -> Any:
    """The products of a step, fields and a gradient by blocks, jitted in one loop."""
    import jax
    import jax.numpy as jnp

    def body(k: Any, weights: Any) -> Any:
        fields = jnp.matmul(block, weights.T).T
        return weights.at[: 2 * M].add(1e-9 * jnp.matmul(fields[: 2 * M], block))

    block = jax.random.normal(jax.random.key(0), (BLOCK, D), jnp.float32)
    run = jax.jit(lambda weights: jax.lax.fori_loop(0, steps * BATCH // BLOCK, body, weights))
    weights = jnp.full((2 * (M + M_STAR), D), 1e-2, jnp.float32)
    return lambda: run(weights).block_until_ready()


def make_engine(d: int, batch: int, *, replicas: int = 1, device: str = "cpu", **how: Any) -> Any:
    """Replicas of liao's SGD by JAX in place: explicit, in float32, unless `how` says otherwise."""
    from derivations.contract import load
    from odesim.request.case import Case
    from odesim.sgd import simulation

    case = Case.build("liao", {"d": d}, backend="jax")
    how = {"method": "explicit", "step_size": STEP, "precision": "float32", **how}
    wanted = simulation.Simulation.build(case, batch=batch, seeds=replicas, device=device, **how)
    model = load(case.system.dynamics(case.stage).model)
    return simulation.make_engine(wanted, model, simulation.initial_conditions(wanted), None)[0]


def torch_loop(steps: int, device: str = "cpu") -> Any:
    """A usual loop in PyTorch: normalised rows, autograd of the squared error, plain descent; one core of a CPU."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    unit = torch.nn.functional.normalize
    v, w = (unit(torch.randn(M, D, device=device)).requires_grad_() for _ in range(2))
    v_star, w_star = (unit(torch.randn(M_STAR, D, device=device)) for _ in range(2))

    def output(x: Any, routers: Any, experts: Any) -> Any:
        z = x @ experts.T
        return (torch.sigmoid(x @ routers.T) * (z**3 - 3 * z)).sum(1)

    optimiser = torch.optim.SGD([v, w], lr=STEP)

    def run() -> None:
        for _ in range(steps):
            x = torch.randn(BATCH, D, device=device)
            residual = output(x, unit(v), unit(w)) - output(x, v_star, w_star)
            optimiser.zero_grad()
            (0.5 * residual**2).mean().backward()
            optimiser.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return run


def memory(quick: bool) -> Row:
    """Peak resident memory of a fresh process that takes one step; two cores, as users have them."""
    batch = 2048 if quick else 65536
    name = f"explicit SGD, one step at d = 1e5, m = 25, batch {batch}, float32"
    used = child(f"benchmarks.explicit_sgd:one_step({batch})", timeout=1800.0)
    note = f"peak memory of the process {used['peak_bytes'] / 1e9:.2f} GB (bar 2 GB); seconds include compilation"
    return Row(name, used["seconds"], 0.0, note=note)


def one_step(batch: int) -> dict[str, float]:
    """Seconds and peak memory of one step at d = 1e5."""
    import resource
    import time

    engine = make_engine(100_000, batch)
    began = time.perf_counter()
    engine.advance(1)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_bytes": 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
