"""Checks of models: the request, the choice of SGD's step and batch, and the results."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from derivations.contract import Dynamics, System
from odesim.ask import sgd
from odesim.errors import Interrupted, NumericalError, UsageError
from odesim.evidence import check, laboratory, verification, workers
from odesim.request.case import BACKENDS, Case
from odesim.request.parse import choice, seed_number
from odesim.request.trajectory import Trajectory
from odesim.sgd import effort as cost
from odesim.sgd.simulation import condition_of
from odesim.store import verdicts as records
from odesim.study.pair import Pair

COMPARED = ("preset", "stage", "until", "step_size", "batch", "seeds", "method")
"""Options of the comparison of a check."""
STEPS = 2000
"""Steps of SGD over the horizon of a model that declares no step."""
NOISE = 0.005
"""Value of step x dimension / batch for this SGD. The flow is the limit 0."""
SAMPLES = 10_000_000
"""Largest number of samples of one replica. If they do not reach the horizon, the picture ends earlier."""
LEAST_SHARE = 0.02
"""Least share of the horizon that a picture shows."""
PATIENCE = 120.0
"""Estimated seconds on one core above which SGD runs only on request."""


def request(
    system: System, claims: Sequence[str] | str | None = None, *, effort: str = "quick", seed: Any = 0,
    backend: str = "numba", compared: bool = True, parameters: Mapping[str, Any] | None = None, **options: Any,
) -> check.Request:  # fmt: skip
    """Return the request of a check; `options` and `parameters` are those of its comparison.

    Without options the comparison is that of `System.beside`, or the default case with the model's own step, or with
    steps and batches that keep SGD near the flow. If a model has no comparison by default, the request has the reason.
    Raises `UsageError` for an unknown claim, or for options of an impossible comparison.
    """
    level: Any = choice(effort, verification.EFFORTS, "--effort")
    asked = [claims] if isinstance(claims, str) else list(claims or ())
    verification.claims_of(system, asked)
    number = seed_number(seed)
    judged = records.Request(system, level, choice(backend, BACKENDS, "--backend"), number, tuple(asked))
    given = {name: value for name, value in options.items() if value is not None}
    chosen = dict(parameters or {})
    if not compared:
        if given or chosen:
            raise UsageError(
                "--no-compare makes no comparison, but other options describe one: give only one of the two"
            )
        return check.Request(judged, None, "not asked for")
    if given or chosen:
        return check.Request(judged, _with_training(system, chosen, {"seed": number, **given}))
    try:
        pair = _pair_by_default(system, number)
    except UsageError as error:
        return check.Request(judged, None, str(error).rstrip("."))
    seconds = cost.least_seconds(pair.simulation, sum(v.size for v in condition_of(pair.simulation).state.values()))
    if seconds > PATIENCE:
        return check.Request(
            judged, None, f"SGD would take {cost.spoken(seconds)} or more; give --step-size and --batch"
        )
    return check.Request(judged, pair)


def _pair_by_default(system: System, seed: int) -> Pair:
    """Return the comparison of SGD with the flow for a system without further options."""
    own = dict(system.beside)
    training = {name: own.pop(name) for name in COMPARED if name in own}
    return _with_training(system, own, {"seed": seed, **training})


def _with_training(system: System, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> Pair:
    """Return the comparison for these options. Add a step and a batch if neither the options nor the model have
    them.
    """
    case_options = {name: options[name] for name in ("preset", "stage", "until", "seed") if name in options}
    case = Case.build(system, parameters, **case_options)
    stage = case.system.stage(case.stage)
    if not isinstance(stage, Dynamics) or not stage.model:
        raise UsageError(f"stage {case.stage} of {system.name} has no finite-sample model")
    own = stage.usual is not None and stage.noisy  # the flow has the noise of its own steps
    if own or {"step_size", "batch"} <= options.keys():
        return sgd.pair(system, parameters, **{"step_size": None, "batch": None, **options})
    return sgd.pair(system, parameters, **_training(system, parameters, case, options))


def _training(system: System, parameters: Mapping[str, Any], case: Case, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a step, a batch and, if the samples would be too many, an earlier end.

    `STEPS` steps reach the horizon; the batch keeps step x d / batch at `NOISE`.
    """
    stage: Any = case.system.stage(case.stage)
    tick = stage.tick(case.parameters, 1.0)
    if stage.tick(case.parameters, 2.0) != 2 * tick:
        raise UsageError("the clock does not determine the size of a step: give --step-size and --batch")
    step = options.get("step_size")
    if step is None:
        step = case.until / STEPS / tick
    dimension = float(getattr(case.parameters, "d", 1) or 1)
    batch = options.get("batch")
    if batch is None:
        batch = max(1, math.ceil(float(step) * dimension / NOISE))
    # An earlier end lies on a step: the flow that it is compared with ends there too.
    most = math.floor(SAMPLES / float(batch)) * float(step) * tick
    until = min(case.until, most)
    if until < LEAST_SHARE * case.until:
        raise UsageError(
            f"SGD close to its flow needs {float(batch):.3g} samples per step, {float(batch) * STEPS:.3g} in "
            "total; give --step-size and --batch, or smaller sizes by -p"
        )
    shortened = {} if until == case.until else {"until": until}
    return {**options, **shortened, "step_size": step, "batch": batch}


def judge(
    asked: check.Request, ledger: records.Ledger, report: Callable[[Mapping[str, Any], int, int], None] | None = None,
    processes: int = 1,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the verdicts of a check; those that are finished are taken from the ledger.

    Raises `Interrupted` at Ctrl-C, with the finished verdicts kept in the ledger.
    """
    of = asked.judged
    level: Any = of.effort
    lab = laboratory.Laboratory(of.of, level, of.backend, of.seed)
    try:
        return workers.verify_all(lab, verification.claims_of(of.of, of.claims), ledger, report, processes)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {len(ledger.verdicts)} verdicts are kept in {ledger.path}.") from None


def compare(asked: check.Request, progress: Any = None, threads: int | None = None) -> tuple[Trajectory | None, str]:
    """Return the comparison of SGD with the flow, or None and the reason.

    Raises `KeyboardInterrupt` at Ctrl-C; an incomplete comparison is discarded.
    """
    if asked.pair is None:
        return None, asked.missing
    try:
        found = asked.pair.run(progress, threads)
    except (NumericalError, UsageError) as error:
        return None, str(error).rstrip(".")
    if any(run.outcome.kind == "interrupted" for run in (found.first, found.second)):
        raise KeyboardInterrupt
    return found.trajectory(), ""


def timed(job: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a job and the seconds that it took."""
    began = time.perf_counter()
    return job(), time.perf_counter() - began
