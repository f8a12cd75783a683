"""pmoe: joint training on counts of patterns against the same steps in 1000 dimensions, ours and plain PyTorch's."""

from typing import Any

from benchmarks import peers
from benchmarks.measure import Row, compare

SIZES: dict[str, Any] = {"mode": "joint", "n": 16, "p": 8, "k": 8, "l": 6, "m": 40, "d": 1000}
BATCH, STEP = 128, 0.02
"""The paper's sizes (Section 5.1) in a batch that suits a matrix product, and d = 1000."""


def rows(quick: bool) -> list[Row]:
    """Seconds per step on counts, against explicit vectors (NumPy and PyTorch, float64)."""
    steps = 5 if quick else 20
    many = 20 * steps  # what a training of thousands of steps takes: the first ones find the caches of another loop
    counts, vectors = make_engine("compressed"), make_engine("explicit")
    error = difference(counts, vectors)
    functions: dict[str, Any] = {
        "counts": lambda: counts.advance(many),
        "vectors": lambda: vectors.advance(steps),
        "floor": bare_products(vectors, steps),
        "draws": random_numbers(many),
    }
    note = "bar 20 times as fast at d = 1000; floor: the uniform numbers of the samples"
    try:
        functions["torch"] = torch_loop(steps, vectors)
    except Exception as problem:
        note = f"{note}; {peers.reason(problem)}"
    times = compare(functions, 3 if quick else 9, budget=15.0)
    name = "pmoe, joint training, n = 16, k = 8, l = 6, m = 40, d = 1000, batch 128, per step"
    ours, slow, torch = times["counts"], times["vectors"], times.get("torch")
    explicit = "bar as fast; floor: the products of patches and weights, there and back"
    return [
        Row(f"{name}, on counts", ours.median / many, ours.spread / many, "our explicit loop", slow.median / steps,
            error=error, floor_seconds=times["draws"].median / many, note=note),
        Row(f"{name}, on counts", ours.median / many, ours.spread / many, "PyTorch loop",
            torch.median / steps if torch else None, error=error, floor_seconds=times["draws"].median / many,
            note=note),
        Row(f"{name}, on vectors", slow.median / steps, slow.spread / steps, "PyTorch loop",
            torch.median / steps if torch else None, floor_seconds=times["floor"].median / steps, note=explicit),
    ]  # fmt: skip


def make_engine(method: str) -> Any:
    """One replica with fresh samples in every step."""
    from odesim.request.case import Case
    from odesim.sgd import families
    from odesim.sgd.simulation import Simulation, initial_conditions

    case = Case.build("pmoe", SIZES, until=1e6)
    simulation = Simulation.build(case, method=method, step_size=STEP, batch=BATCH)
    model = case.system.dynamics(case.stage).truth(case.parameters)
    return families.make_engine(simulation, model, initial_conditions(simulation), None)[0]


def difference(counts: Any, vectors: Any) -> float:
    """The largest difference of inner products after ten steps of both on the same samples."""
    import numpy as np

    for engine in (counts, vectors):
        engine.advance(10)
    pairs = zip(counts.move.tables(counts.moving[0]), vectors.move.tables(vectors.moving[0]), strict=True)
    return float(max(np.abs(a - b).max() for a, b in pairs))


def bare_products(engine: Any, steps: int) -> Any:
    """The matrix products of all patches with all weights, there and back."""
    import numpy as np

    x = np.random.default_rng(0).standard_normal((SIZES["n"] * BATCH, SIZES["d"]))
    weights = np.vstack([engine.moving[0][0].reshape(-1, SIZES["d"]), engine.moving[0][1]])

    def run() -> None:
        for _ in range(steps):
            np.matmul(weights @ x.T, x)

    return run


def random_numbers(steps: int) -> Any:
    """The uniform numbers that the samples of these steps need."""
    import numpy as np

    rng = np.random.default_rng(0)
    return lambda: [rng.random((SIZES["n"], BATCH)) for _ in range(steps)]


def torch_loop(steps: int, engine: Any) -> Any:
    """Joint training as one writes it with PyTorch: gather patches, top-l, softmax, autograd; float64."""
    import torch

    n, k, taken, d = SIZES["n"], SIZES["k"], SIZES["l"], SIZES["d"]
    frame = torch.tensor(engine.move.frame)
    hidden = torch.tensor(engine.moving[0][0].copy(), requires_grad=True)
    router = torch.tensor(engine.moving[0][1].copy(), requires_grad=True)
    out = torch.tensor(engine.out[0].copy())

    def step() -> None:
        label = torch.where(torch.rand(BATCH) < 0.5, 1.0, -1.0).double()
        atoms = torch.cat([(label < 0).long()[:, None], torch.randint(2, SIZES["p"] + 2, (BATCH, n - 1))], dim=1)
        x = frame[atoms]
        route = torch.einsum("bnd,kd->bkn", x, router)
        top, index = route.topk(taken, dim=2)
        gate = torch.softmax(top, dim=2)
        chosen = torch.gather(x[:, None].expand(-1, k, -1, -1), 2, index[..., None].expand(-1, -1, -1, d))
        fields = torch.relu(torch.einsum("bkjd,kmd->bkjm", chosen, hidden))
        f = (gate * torch.einsum("bkjm,km->bkj", fields, out)).sum(dim=(1, 2)) / taken
        loss = torch.nn.functional.softplus(-label * f).mean()
        gradient, pull = torch.autograd.grad(loss, (hidden, router))
        with torch.no_grad():
            hidden.sub_(STEP * gradient)
            router.sub_(STEP * pull)

    def run() -> None:
        for _ in range(steps):
            step()

    return run
