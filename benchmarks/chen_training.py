"""Algorithm 1 of chen on full batches against a plain PyTorch loop of the same model, 2 cores."""

from typing import Any

from benchmarks import peers
from benchmarks.measure import Row, compare

N, D, M, J, PATCHES, K = 16000, 50, 8, 16, 4, 4
STEP, RHO = 1e-3, 100.0


def rows(quick: bool) -> list[Row]:
    """Seconds per epoch at the paper's sizes, Algorithm 1, cubic experts."""
    import resource

    import numpy as np

    steps = 1 if quick else 3
    engine = make_engine()
    functions: dict[str, Any] = {"ours": lambda: engine.advance(steps), "floor": bare_products(engine)}
    note = "bar 3 times as fast; floor: one product each way of every dense patch with its expert's filters"
    try:
        functions["peer"] = torch_loop(steps, engine)
    except Exception as error:
        note = f"{note}; {peers.reason(error)}"
    times = compare(functions, 3 if quick else 9, budget=15.0)
    ours, peer = times["ours"], times.get("peer")
    held = np.array([engine.training.dense.nbytes, engine.training.amplitudes.nbytes]).sum() / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        Row(
            f"chen, Algorithm 1, n = {N}, M = {M}, J = {J}, P = {PATCHES}, d = {D}, per epoch", ours.median / steps,
            ours.spread / steps, "PyTorch loop", peer.median / steps if peer else None,
            floor_seconds=times["floor"].median, note=f"{note}; examples {held:.0f} MB, process at most {peak:.2f} GB",
        )
    ]  # fmt: skip


def make_engine(method: str = "explicit", batch: int = N, **parameters: Any) -> Any:
    """One replica: at the paper's sizes by default, and with parameters by these alone."""
    from derivations.contract import load
    from odesim.request.case import Case
    from odesim.sgd import families
    from odesim.sgd.simulation import Simulation, initial_conditions

    case = Case.build("chen", parameters, preset=None if parameters else "setting1")
    simulation = Simulation.build(case, method=method, step_size=STEP, batch=batch)
    model = load(case.system.dynamics(case.stage).model)
    return families.make_engine(simulation, model, initial_conditions(simulation), None)[0]


def bare_products(engine: Any) -> Any:
    """The matrix products of the noise patches with one expert's filters, forwards and backwards."""
    import numpy as np

    dense = np.ascontiguousarray(engine.training.dense.reshape(-1, D))
    filters = np.ascontiguousarray(engine.weights[0].filters[0])
    return lambda: (dense @ filters.T).T @ dense


def torch_loop(steps: int, engine: Any) -> Any:
    """Algorithm 1 as one writes it with PyTorch: all experts on all patches, autograd, float32."""
    import numpy as np
    import torch

    e, w = engine.training, engine.weights[0]
    x = np.concatenate([e.amplitudes.T[..., None] * w.frame[e.atoms.T], e.dense], axis=1)
    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(e.labels, dtype=torch.float32)
    filters = torch.tensor(w.filters, dtype=torch.float32, requires_grad=True)
    router = torch.tensor(w.routers.T.copy(), dtype=torch.float32, requires_grad=True)
    flat = inputs.reshape(-1, D)

    def step() -> None:
        logits = inputs.sum(dim=1) @ router
        chosen = (logits.detach() + torch.rand_like(logits)).argmax(dim=1)
        outputs = ((flat @ filters.reshape(-1, D).T) ** 3).reshape(N, PATCHES, M, J).sum(dim=(1, 3))
        gate = torch.softmax(logits, dim=1)
        output = (outputs * gate).gather(1, chosen[:, None])[:, 0]
        loss = torch.nn.functional.softplus(-labels * output).mean()
        gradient, router_gradient = torch.autograd.grad(loss, (filters, router))
        with torch.no_grad():
            norms = gradient.reshape(M, -1).norm(dim=1)
            rate = torch.where(norms > 0, STEP / norms, torch.zeros_like(norms))
            filters.sub_(rate[:, None, None] * gradient)
            router.sub_(STEP * RHO * router_gradient)

    def run() -> None:
        for _ in range(steps):
            step()

    return run
