"""On JAX's default device (a GPU where there is one): sampled means, compressed and explicit SGD.

Run by `python -m benchmarks --only device`; a full run writes `results/device-NAME.json` with the device's name.
Floors are counted operations at the speed of the device's own matrix product, and the measured cost of drawing the
same random numbers there.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from benchmarks import explicit_sgd
from benchmarks.measure import Row, compare

RESULTS = Path(__file__).resolve().parent / "results"
REPLICAS = 64


def rows(quick: bool) -> list[Row]:
    """Sampled means, compressed SGD and explicit SGD; written to a file of the device unless `quick`."""
    from odesim.machine import device

    device.configure("auto")
    import jax

    name = jax.devices()[0].device_kind if jax.default_backend() != "cpu" else "cpu"
    peak = {dtype: matmul_speed(dtype, 512 if quick else 4096) for dtype in ("float32", "float64")}
    found = [sampled(quick, peak["float64"]), compressed(quick, peak["float64"]), explicit(quick, peak["float32"])]
    found = [dataclasses.replace(row, name=f"{row.name}, on {name}") for row in found]
    if not quick:
        content = {"device": name, "described": device.describe(), "matrix_product_flops": peak}
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        path = RESULTS / f"device-{stem}.json"
        path.parent.mkdir(exist_ok=True)
        text = json.dumps({**content, "rows": [dataclasses.asdict(row) for row in found]}, indent=2)
        path.write_text(text + "\n", encoding="utf-8")
    return found


def matmul_speed(dtype: str, size: int) -> float:
    """Floating-point operations per second of JAX's matrix product, in full precision, on its default device."""
    import jax
    import jax.numpy as jnp

    a = jax.random.normal(jax.random.key(0), (size, size), dtype)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    return 2.0 * size**3 / compare({"product": lambda: product(a).block_until_ready()}, 15)["product"].median


def normal_seconds(shape: tuple[int, ...], dtype: str) -> float:
    """Seconds to draw normals of a shape on JAX's default device; they are added up, so that none is stored."""
    import jax

    draw = jax.jit(lambda key: jax.random.normal(key, shape, dtype).sum())
    key = jax.random.key(0)
    return compare({"normals": lambda: draw(key).block_until_ready()}, 15)["normals"].median


def sampled(quick: bool, peak: float) -> Row:
    """One right-hand side by means over a sample: a declared committee of ten fields, online; floor: its products."""
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
    products = 2.0 * 10**2 * points  # the fields, and the sums of their products
    note = f"{2 * products / peak / times.median:.1%} of the matrix product's speed"
    name = f"right-hand side of sampled means, ten fields, {points} points"
    return Row(name, times.median, times.spread, floor_seconds=2 * products / peak, note=note)


def compressed(quick: bool, peak: float) -> Row:
    """Replicas of compressed SGD of liao (25, 5), batch 256, d = 1e9; the floor is normals and matrix products."""
    batch, steps, replicas = 256, 2 if quick else 20, 2 if quick else REPLICAS
    n, trained = 60, 50
    engine = make_engine("compressed", 10**9, batch, 1e-6, replicas, "float64")
    times = compare({"ours": lambda: engine.advance(steps)}, 3 if quick else 15, budget=10.0)["ours"]
    normals = normal_seconds((replicas, n, batch), "float64")
    products = replicas * (2.0 * batch * (n * n + 2 * trained * n + trained**2) + 2.0 * trained**3)
    name = f"compressed SGD, liao (25, 5), batch {batch}, d = 1e9, {replicas} replicas, per step of one"
    return _sgd_row(name, times, steps, replicas, products / peak, normals)


def explicit(quick: bool, peak: float) -> Row:
    """Replicas of explicit SGD of liao (25, 5) in float32; the floor is the normals and the two products."""
    d, m, m_star = (100 if quick else explicit_sgd.D), explicit_sgd.M, explicit_sgd.M_STAR
    batch, steps, replicas = 256 if quick else explicit_sgd.BATCH, 2 if quick else 20, 1 if quick else 8
    engine = make_engine("explicit", d, batch, explicit_sgd.STEP, replicas, "float32")
    times = compare({"ours": lambda: engine.advance(steps)}, 3 if quick else 15, budget=10.0)["ours"]
    normals = normal_seconds((replicas, batch, d), "float32")
    products = replicas * 2.0 * batch * d * (2 * (m + m_star) + 2 * m)
    name = f"explicit SGD, liao (25, 5), d = {d}, batch {batch}, float32, {replicas} replicas, per step of one"
    return _sgd_row(name, times, steps, replicas, products / peak, normals)


def _sgd_row(name: str, times: Any, steps: int, replicas: int, products: float, normals: float) -> Row:
    """A row of SGD: `products` and `normals` are the least seconds of a step of all replicas."""
    count = steps * replicas
    step = times.median / steps
    note = f"{products / step:.1%} of the matrix product's speed, {normals / step:.1%} of the generator's; "
    note += "floor: the normals, and the matrix products at peak"
    return Row(
        name, times.median / count, times.spread / count, floor_seconds=(products + normals) / replicas, note=note
    )


def make_engine(method: str, d: int, batch: int, step: float, replicas: int, precision: str) -> Any:
    """Replicas of liao's SGD on JAX's default device."""
    from derivations.contract import load
    from odesim.request.case import Case
    from odesim.sgd import simulation

    case = Case.build("liao", {"d": d}, backend="jax")
    wanted = simulation.Simulation.build(
        case, method=method, step_size=step, batch=batch, seeds=replicas, precision=precision
    )
    model = load(case.system.dynamics(case.stage).model)
    return simulation.make_engine(wanted, model, simulation.initial_conditions(wanted), None)[0]
