"""On JAX's default device (a GPU where there is one): its ceilings, and how near to them we come.

Run by `python -m benchmarks --only device`; a full run writes `results/device-NAME.json`, with the device's name, and
its column in `README.md`.  A floor adds up what follows one another, each at the ceiling that binds it: numbers drawn
at the speed of the fastest generator at hand, products at that of large ones or of reading what they multiply.
"""

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

from benchmarks import explicit_sgd, peers, record
from benchmarks.measure import Row, Timing, compare

REPLICAS = 64
GROUP = 8
"""Replicas of explicit SGD: as many as keep their samples within the memory of one block."""


@dataclasses.dataclass(frozen=True)
class Ceilings:
    """Measured limits of a device: operations and bytes per second, and seconds per stored normal number.

    `float32` are products as SGD takes them, without losing digits, `summed_float32` those of single numbers.
    """

    float32: float
    summed_float32: float
    float64: float
    bytes: float
    normal32: float
    normal64: float

    @classmethod
    def measured(cls, quick: bool) -> "Ceilings":
        """The limits of JAX's default device."""
        import jax
        import jax.numpy as jnp

        from odesim.sgd import matrices, normals

        def speed(dtype: str, product: Callable[[Any, Any], Any]) -> float:
            size = 512 if quick else 8192 if dtype == "float32" else 4096
            a = jax.random.normal(jax.random.key(0), (size, size), dtype)
            return 2.0 * size**3 / seconds(functools.partial(jax.jit(product), a, a))

        def drawn(dtype: str) -> float:
            rows = 256 if quick else 2**18  # so that a call takes a millisecond, and its start nothing
            ours = jax.jit(lambda key: [x for _, x in normals.pieces(key, (rows, 1000), dtype)])
            theirs = jax.jit(lambda key: jax.random.normal(key, (rows, 1000), dtype))
            return min(seconds(functools.partial(f, jax.random.key(0))) for f in (ours, theirs)) / (rows * 1000)

        def summed(a: Any, b: Any) -> Any:
            return jnp.matmul(a, b, precision="highest")

        length = 2**20 if quick else 2**30
        moved = seconds(functools.partial(jax.jit(lambda x: x + 1.0), jnp.ones(length, jnp.float32)))
        return cls(
            speed("float32", matrices.product), speed("float32", summed), speed("float64", summed),
            8.0 * length / moved, drawn("float32"), drawn("float64"),
        )  # fmt: skip

    def product(self, operations: float, read: float, dtype: str) -> float:
        """The least seconds of a product: of its operations, or of the bytes that it reads, whichever is more."""
        return max(operations / getattr(self, dtype), read / self.bytes)


def rows(quick: bool) -> list[Row]:
    """All measurements; written to a file of the device unless `quick`."""
    from odesim.machine import device

    device.configure("auto")
    ceilings = Ceilings.measured(quick)
    found = [*explicit(quick, ceilings), compressed(quick, ceilings), sampled(quick, ceilings)]
    found += [states(quick, ceilings, sizes, count) for sizes, count in (((25, 5), 256), ((10, 3), 2048))]
    if not quick:
        name = device.kind()
        content = {"device": name, "described": device.describe(), "versions": record.versions()}
        content |= {"ceilings": dataclasses.asdict(ceilings), "rows": [dataclasses.asdict(row) for row in found]}
        text = json.dumps(content, indent=2) + "\n"
        record.device_path(name).write_text(text, encoding="utf-8")
        record.write_devices()
    return found


def seconds(call: Callable[[], Any]) -> float:
    """The median of a call until its result is there."""
    import jax

    return compare({"call": lambda: jax.block_until_ready(call())}, 15)["call"].median


def each(times: Timing, count: int) -> tuple[float, float]:
    """The median and the spread of one of `count`."""
    return times.median / count, times.spread / count


def explicit(quick: bool, ceilings: Ceilings) -> list[Row]:
    """Explicit SGD of liao (25, 5) in float32: one replica beside PyTorch's loop on the same device, and several."""
    d, m, m_star = (100 if quick else explicit_sgd.D), explicit_sgd.M, explicit_sgd.M_STAR
    batch, steps = (256 if quick else explicit_sgd.BATCH), 2 if quick else 32
    drawn = float(batch * d)
    # The fields of all vectors, and the gradients of those that are trained.
    operations = [2.0 * drawn * 2 * (m + m_star), 2.0 * drawn * 2 * m]
    products = sum(ceilings.product(count, 4.0 * drawn, "float32") for count in operations)
    floor = ceilings.normal32 * drawn + products
    found = []
    for replicas in (1, GROUP):
        engine = explicit_sgd.make_engine(d, batch, replicas=replicas, device="auto")
        calls: dict[str, Callable[[], Any]] = {"ours": functools.partial(engine.advance, steps)}
        failed = add_torch(calls, steps) if replicas == 1 and not quick else ""
        times = compare(calls, 3 if quick else 15, budget=10.0)
        ours, spread = each(times["ours"], steps * replicas)
        peer = times["peer"].median / steps if "peer" in times else None
        note = f"bar 60% of the floor: {floor / ours:.0%}; of drawing alone {ceilings.normal32 * drawn / ours:.0%}, of "
        note += f"products by single numbers alone {sum(operations) / ceilings.summed_float32 / ours:.0%}{failed}"
        name = f"explicit SGD, liao (25, 5), d = {d}, batch {batch}, float32, {replicas} at once, step of each"
        found.append(Row(name, ours, spread, "PyTorch loop" if peer else None, peer, floor_seconds=floor, note=note))
    return found


def add_torch(calls: dict[str, Callable[[], Any]], steps: int) -> str:
    """Add PyTorch's loop, on its GPU where JAX has one, as the peer; why there is none, otherwise."""
    import jax

    try:
        loop = explicit_sgd.torch_loop(steps, "cpu" if jax.default_backend() == "cpu" else "cuda")
        loop()
    except Exception as error:
        return f"; {peers.reason(error)}"
    calls["peer"] = loop
    return ""


def compressed(quick: bool, ceilings: Ceilings) -> Row:
    """Replicas of compressed SGD of liao (25, 5), batch 256, d = 1e9; the floor is normals and matrix products."""
    batch, steps, replicas = 256, 2 if quick else 32, 2 if quick else REPLICAS
    n, trained = 60, 50
    wanted: Any = {"method": "compressed", "step_size": 1e-6, "precision": "float64", "device": "auto"}
    engine = explicit_sgd.make_engine(10**9, batch, replicas=replicas, **wanted)
    times = compare({"ours": functools.partial(engine.advance, steps)}, 3 if quick else 15, budget=10.0)["ours"]
    products = 2.0 * batch * (n * n + 2 * trained * n + trained**2) + 2.0 * trained**3
    return Row(
        f"compressed SGD, liao (25, 5), batch {batch}, d = 1e9, {replicas} at once, step of each",
        *each(times, steps * replicas), floor_seconds=ceilings.normal64 * n * batch + products / ceilings.float64,
        note="floor: normals and products",
    )  # fmt: skip


def sampled(quick: bool, ceilings: Ceilings) -> Row:
    """One right-hand side by means over a sample: a declared committee of ten fields, online."""
    import jax

    import odesim
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    points = 2**14 if quick else 2**20
    unit = {"unit": "erf(w/sqrt(2))", "units": 5}
    system = odesim.declare(student=unit, teacher=unit, training={"limit": "online"}, start={"norm": 0.7})
    case = Case.build(system, {"tier": "sampled", "points": points}, until=1.0, backend="jax")
    problem = prepare(case)
    slope, y = problem.slope(), problem.start
    times = compare({"ours": lambda: jax.block_until_ready(slope(0.0, y))}, 3 if quick else 50)["ours"]
    floor = ceilings.product(4.0 * 10**2 * points, 8.0 * 11 * points, "float64")
    name = f"right-hand side of sampled means, ten fields, {points} points"
    return Row(name, times.median, times.spread, floor_seconds=floor, note="floor: reading the points once")


def states(quick: bool, ceilings: Ceilings, sizes: tuple[int, int], count: int) -> Row:
    """Right-hand sides of liao at many states by one program, which an ensemble of flows would be made of."""
    import jax
    import numpy as np

    from benchmarks.right_hand_side import count_operations
    from odesim.code.traced import joined, split
    from odesim.flow.problem import prepare
    from odesim.request.case import Case

    count = 4 if quick else count
    problem = prepare(Case.build("liao", {"m": sizes[0], "m_star": sizes[1]}, backend="jax"))
    flow, (known, arrays) = problem.functions["flow"], split(problem.arguments)
    together = jax.jit(jax.vmap(lambda y: flow(0.0, y, *joined(known, arrays))))
    at = jax.numpy.asarray(np.array([problem.start] * count))
    times = compare({"ours": lambda: jax.block_until_ready(together(at))}, 3 if quick else 50)["ours"]
    floor = count_operations(problem, problem.start) / ceilings.float64
    name = f"right-hand side liao {sizes}, {count} states by one program, each"
    return Row(name, *each(times, count), floor_seconds=floor, note="float64; floor: operations of the shortest series")
