"""Summary of a run of a declared model: its conventions, its dynamics, and its most important numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.declare import (
    batches,
    classes,
    data,
    episodes,
    labels,
    leading,
    looks,
    mixture,
    momentum,
    schedules,
    spectra,
)
from derivations.declare.declaration import Declaration
from derivations.declare.noise import in_force
from derivations.declare.parameter_class import rows
from derivations.declare.readouts import word_of
from derivations.declare.rows import cosines


def conventions(parameters: Any) -> dict[str, str]:
    """Conventions on which such codes differ (factors of loss and output, clock), and the vectors of a unit, if
    several.
    """
    declared: Declaration = parameters.declaration
    loss_texts = {
        "squared": "(f - y)^2 / 2", "correlation": "-f y", "logistic": "log(1 + exp(-f sign(y)))",
        "hinge": "max(0, 1 - f sign(y))", "own": "as declared",
        "softmax": "-log softmax(f) at the head of the largest y",
    }  # fmt: skip
    words = {
        "sum": "sum",
        "mean": "1/K sum",
        "root": "1/sqrt(K) sum",
        "trained": "sum of a_i phi_i",
        "own": "as declared",
    }
    clocks = {"online": "steps / d, step eta / d", "batch": "steps, of size eta"}
    clock = clocks.get(declared.limit, "steps x step size")
    slots = list(dict.fromkeys(slot for group in declared.students for slot in group.slots))
    several = {"vectors": ", ".join(slots)} if len(slots) > 1 else {}  # a number without a declaration appears here
    inputs = {} if declared.inputs is None else {"inputs": f"{data.convention(declared.inputs)}; norms are Euclidean"}
    if declared.moved:
        fixed = declared.inputs is not None and declared.inputs.data is None
        inputs["means"] = "of Euclidean norms as written, which stay as they are at any d" if fixed else "the samples'"
    if declared.by_cluster:
        inputs["labels"] = "y is the label of the cluster; no teacher"
    factors = ", ".join(f"step x rate_{name} for {name}" for name, _ in declared.rates)
    rates = {"rates": factors} if factors else {}
    rates |= {schedule.name: schedule.text for schedule in schedules.active(parameters)}
    sign = "added in a step: {1}" if declared.limit == "batch" else "d {0}/dt = {1}"
    rates |= {f"memory {memory.name}": sign.format(memory.name, memory.text) for memory in declared.memories}
    rates |= momentum.convention(parameters) | looks.convention(parameters)
    rates |= episodes.convention(parameters)
    for letter, side in (("f", declared.predictions), ("y", declared.label_predictions)):
        rates |= {f"prediction of {word_of(prediction.head, letter)}": prediction.text for prediction in side}
    if declared.batch_size is not None and getattr(parameters, "batch", None) is None:
        count = f"{batches.samples(parameters):.12g} samples of a step"
        rates["batch"] = f"{declared.batch_size.text}, {count}" if declared.noisy else "inf, the mean over all samples"
    law = in_force(parameters).law
    if law is not None:
        heavy = ", without a variance, which the loss omits" if law.heavy else ""
        rates["noise"] = f"{law.text}, xi ~ N(0, 1){heavy}"
    rates |= {f"rule of {rule.name}": rule.text for rule in declared.rules}
    text = ", ".join(declared.force) + ("" if declared.force == declared.heads else f" of {', '.join(declared.heads)}")
    heads = {"heads": f"the loss is over {text}, and each label has noise of its own"} if declared.several else {}
    return {
        **several,
        **inputs,
        **rates,
        "loss": loss_texts[declared.loss],
        "output": ", ".join(dict.fromkeys(words[r.output] for group in declared.students for r in group.readouts)),
        **heads,
        "clock": clock,
        "weights": declared.weights,
    }


def gradient_note(declared: Declaration) -> str:
    """Return a sentence on the gradient that is used if a unit jumps."""
    jumps = any(group.unit.calls("step", "sign", "top1") for group in declared.students)
    if not jumps or declared.rules:
        return ""
    return "the mean of the derivative of every sample, which is what SGD follows: 0 where a unit or router jumps"


def critical_step(parameters: Any) -> float | None:
    """Return the step of the online limit above which the loss grows; it is known for linear units.

    With f = sum_i w_i . x of K units and the squared loss, u = sum_i w_i - u* has for a batch of B

        d|u|^2/dt = (-2 eta K + eta^2 K^2 / B) |u|^2,   which is positive above eta = 2 B / K.
    """
    declared: Declaration = parameters.declaration
    linear = len(declared.students) == 1 and declared.students[0].unit.kind == "name"
    plain = declared.loss == "squared" and declared.weights == "free" and declared.limit == "online"
    plain = plain and declared.inputs is None and not declared.rates and not declared.schedules and not declared.rules
    if not linear or not plain or declared.several or declared.timed or parameters.decay > 0:
        return None
    if declared.students[0].output != "sum" or declared.predicted or declared.look is not None:
        return None
    return (
        2.0
        / momentum.acceleration(parameters)
        * schedules.begun(parameters).batch
        / getattr(parameters, declared.students[0].named("units"))
    )


LARGEST_STEP = 0.05
"""Threshold of eta lam_1/d: above it the loss of the online limit differs from that of SGD by a few per cent."""


def of_inputs(parameters: Any) -> dict[str, Any]:
    """Return the summary of inputs with eigenvalues: blocks, their error, and the distance of SGD from its limit."""
    blocks, declared = spectra.blocks(parameters), parameters.declaration
    if blocks is None:
        return {}
    summary: dict[str, Any] = {"blocks": len(blocks.share)}
    if not declared.inputs.blocks:
        summary["spectrum_error"] = blocks.error
    summary |= data.told(declared.inputs)
    law = mixture.mixture(parameters)
    assert law is not None
    if declared.inputs.classes:
        summary["covariance_lost"] = classes.lost(declared.inputs, law.eigenvalue / blocks.scale, blocks.dimension)
    if declared.limit == "online":
        summary["step_x_largest"] = size = float(schedules.begun(parameters).step * law.eigenvalue.max() / parameters.d)
        if size > LARGEST_STEP:
            larger = ", or a larger d if the largest eigenvalue stays as it is"
            summary["inputs"] = (
                f"the online limit is small steps, step x largest eigenvalue / d -> 0, and here it is {size:.2g}: SGD "
                "in this dimension learns otherwise by per cents; take a smaller step"
            ) + ("" if data.dimension(declared.inputs) else larger)
    return summary


def observe(initial: Initial, state: Mapping[str, np.ndarray]) -> Labelled:
    """The largest cosine along a run between a vector of any student and any teacher's vector of the same slot."""
    layout = rows(initial.parameters)
    gram = layout.gram({**initial.constants, **state})
    values = cosines(layout, layout.whole(gram))
    if values is None:
        return {}
    variables: Labelled = {
        "best_cosine": (("time", "teacher_row"), values, "largest |cosine| of any student vector with a teacher's")
    }
    blocks = spectra.blocks(initial.parameters)
    if blocks is None or not layout.stack:
        return variables
    law = mixture.mixture(initial.parameters)
    assert law is not None
    correlations = cosines(layout, np.einsum("l,...lij->...ij", law.probability @ law.eigenvalue, gram))
    text = "largest |correlation| of any student field with a teacher's"
    return {**variables, "best_correlation": (("time", "teacher_row"), correlations, text)}


def summarise(tier: str, initial: Initial, run: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Tier, conventions, loss and errors at both ends, and the hitting times of the declared events."""
    declared: Declaration = initial.parameters.declaration
    summary: dict[str, Any] = {"tier": tier, "conventions": conventions(initial.parameters)}
    note = gradient_note(declared)
    if note:
        summary["gradient"] = note
    warned = leading.warning(initial)
    if warned:
        summary["sgd"] = warned
    errors = (error.name for error, _ in labels.errors(declared))
    for name in ("loss", *errors, "classification_error"):
        if name in run:
            summary |= {f"{name}_initial": float(run[name][0]), f"{name}_final": float(run[name][-1])}
    if "best_cosine" in run:
        summary["best_cosines"] = [float(x) for x in run["best_cosine"][-1]]
    if "best_correlation" in run:
        summary["best_correlations"] = [float(x) for x in run["best_correlation"][-1]]
    summary |= of_inputs(initial.parameters)
    critical = critical_step(initial.parameters)
    if critical is not None:
        summary["critical_step"] = critical
    for event in declared.events:
        times = np.asarray(run[event.name]) if event.name in run else np.array([np.inf])
        first = float(times.min(initial=np.inf))
        summary[event.name] = first if np.isfinite(first) else None
    return summary
