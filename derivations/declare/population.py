"""The exact population dynamics of a declared model, closed on the Gram matrix of its vectors.

With c_a = dl/dz_a, the derivative of the sample's loss in the field of vector a,

    du_a/dt = -E[c_a x],   E[c_a z_b] = sum_c C_ac G_cb,   C_ab = dL/dG_ab (Stein; twice that on the diagonal)

so that dG = -(C G) - (C G)^T on the students; `sphere` subtracts the part along u_a, `normalised` divides by norms.  In
the online limit (step eta/d, time steps/d) dG_ab gains eta^2 E[c_a c_b]/B.  Readouts and scalars follow the partial
derivatives of the loss.  Sources: Saad & Solla 1995; Price 1958.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from derivations.contract import (
    Addressed,
    Code,
    Component,
    Crossing,
    Equations,
    Initial,
    Labelled,
    Observables,
    Smooth,
    Tier,
    UsageError,
    Written,
)
from derivations.declare import arrays, coupling, lane_tables, tilt
from derivations.declare.declaration import Declaration
from derivations.declare.initial import teacher_gram
from derivations.declare.kernels import Kernels
from derivations.declare.lane_frame import COMMON, KIND
from derivations.declare.places import known_places
from derivations.declare.remembered import identity, kernels
from derivations.declare.rows import Rows
from derivations.declare.summary import observe, summarise
from derivations.declare.system import numbers, rows

LOOPS = ("derivations.lanes:correlations",)
AROUND = ("derivations.declare.lane_frame:called", "derivations.declare.lane_frame:given")
KINDS = {"free": 0.0, "sphere": 1.0, "normalised": 2.0}
ERROR = Component("error", (), (0.0, np.inf), "E[(f - f*)^2]", "mean squared error without factor and label noise")


def exact(parameters: Any) -> Equations:
    """The exact flow, or online limit.  Raises `UsageError` with the reason where it has no closed form."""
    declared: Declaration = parameters.declaration
    found = kernels(declared, numbers(parameters))
    missing = found.closed or (found.second if declared.limit == "online" else "")
    if missing:
        other = "sampled" if found.closed else "mixed (exact drift, second-order term sampled) or sampled"
        raise UsageError(f"tier exact: {missing}; take -p tier={other}")
    if found.pairs and any(found.pairs):
        require_unit(parameters)
    return Equations(
        about=Tier(
            name="exact",
            validity=validity(declared),
            neglects="nothing" if declared.limit == "flow" else "fluctuations of order 1/sqrt(d)",
        ),
        advance=Smooth(coupled=coupled(declared, numbers(parameters))),
        code=Code(
            structure=f"declared_{identity(declared, found)}",
            kernels=functools.partial(written, found),
            loops=LOOPS,
            roles={"loss": "loss", "watch": "watch"},
            arrays=functools.partial(arrays.build, declared, found),
            around=AROUND,
            common=(COMMON, *((tilt.LOOPS,) if found.tilts else ())),
            addressed=Addressed(COMMON, KIND, "given"),
        ),
        state=state(parameters),
        layout=rows(parameters).layout,
        arguments=functools.partial(arguments, found),
        crossings=crossings(declared, rows(parameters)),
        watched=(ERROR,),
        observables=Observables(
            observe=observe,
            constants=constants,
            invariants=invariants,
            summary=functools.partial(summarise, "exact"),
        ),
    )


def coupled(declared: Declaration, known: tuple[float, ...]) -> Callable[[Initial], Any] | None:
    """What is coupled in a gradient flow; None in the online limit, and where every overlap feels every other."""
    return None if declared.limit != "flow" or coupling.dense(declared, known) else coupling.labels


def validity(declared: Declaration) -> str:
    """Where the dynamics holds."""
    if declared.limit == "online":
        return "exact for Gaussian inputs in the limit of large d at step eta / d and a batch of any fixed size"
    return (
        "exact for Gaussian inputs at every d, in the limit of small step size (gradient flow on the population loss)"
    )


NONE = "def second(G, w, bias, starts, counts, numbers, series, means, tilts, both, noise, E):\n    E[:] = 0.0\n"
"""The second-order term of a flow, which has none."""
PLAIN = ("drift", "loss_parts")
"""What is written to be read, and run by the printed script: numba's drift is in lanes, and losses are arrays'."""


def written(derived: Kernels) -> dict[str, Written]:
    """The generated functions as they are compiled: for numba in lanes, for arrays those of all pairs at once."""
    texts = dict(derived.texts)
    if not derived.tilts:
        texts.setdefault("second", NONE)
    noisy = any(name.startswith("quad_") for name in texts)  # label noise adds means of pairs to those of quadruples

    def serves(name: str) -> Literal["loops", "arrays", "both"]:
        if name.startswith(("self_", "mean_")) or (name.startswith("pair_") and not noisy):
            return "arrays"
        return "loops" if name in ("second", "pairs") or name.startswith("lanes_") else "both"

    return {name: Written(text, serves(name)) for name, text in texts.items() if name not in PLAIN}


def state(parameters: Any) -> tuple[Component, ...]:
    """Overlaps that move, then readouts and scalars."""
    declared, found = parameters.declaration, rows(parameters)
    unbounded = (-np.inf, np.inf)
    blocks = [Component(b.name, b.dims, unbounded, b.name, b.meaning) for b in found.moving]
    for number, word, _ in found.scalars:
        group = declared.students[number]
        text = "readout a_i" if word == "a" else f"number {word} of unit i"
        blocks.append(Component(group.named(word), (group.named("unit"),), unbounded, word, f"{text}, of the student"))
    return tuple(blocks)


def require_unit(parameters: Any) -> None:
    """Raise `UsageError` where a series at unit variance is asked of vectors of other norms."""
    declared, found = parameters.declaration, rows(parameters)
    sizes = [getattr(parameters, name) for name, _ in declared.start.norms] if declared.weights == "sphere" else []
    if any(abs(size - 1) > 1e-9 for size in sizes) or (abs(np.diag(teacher_gram(parameters)) - 1) > 1e-9).any():
        raise UsageError(
            "tier exact: the means of a gate are series at unit variance, but student norms or the diagonal of the "
            f"teacher's Gram matrix ({found.teachers} vectors) are not 1; take -p tier=sampled"
        )


def arguments(found: Kernels, initial: Initial) -> tuple[Any, ...]:
    """The run-time arguments of `loops.flow`, in their order."""
    from derivations.declare.series import lookups, tables, tilts

    p = initial.parameters
    declared: Declaration = p.declaration
    at = rows(p)
    constant, places = known_places(initial)
    online = declared.limit == "online"
    rate = p.step if online else 1.0
    both = 0.0 if declared.loss == "correlation" else 1.0  # whether students meet each other in the loss
    rates = np.array([rate, p.decay, p.step**2 / p.batch if online else 0.0, KINDS[declared.weights], p.noise, both])
    series, means = tables(declared, found, numbers(p))
    looks, reach = lookups(declared, found, numbers(p))
    erf = np.repeat(tilts(declared, found, numbers(p)), at.sizes if found.tilts else 0, axis=1)
    starts = np.array(list(at.starts.values()), np.int64)
    counts = np.array(at.sizes, np.int64)
    cells, spans, *into = lane_tables.tables(found, at)
    return (
        constant, places["gram"], places["outs"], places["biases"], starts, counts, places["rows"], places["columns"],
        places["scalars"], places["moves"], places["moving"], rates, np.array(numbers(p), float), series, means,
        np.ascontiguousarray(erf), cells, spans, looks, reach, *into, *at.sizes,
    )  # fmt: skip


def constants(initial: Initial) -> Labelled:
    """Teacher overlaps and the readouts that do not move."""
    p = initial.parameters
    found = rows(p)
    labelled: dict[str, Any] = {b.name: (b.dims, initial.constants[b.name], b.meaning) for b in found.fixed}
    for number, group in enumerate(p.declaration.groups):
        student = found.is_student(number)
        name = group.named("a" if student else "a_star")
        if name in initial.constants:
            who = "student" if student else "teacher"
            labelled[name] = ((found.dimension(number),), initial.constants[name], f"readout of {who} unit i")
    return labelled


def crossings(declared: Declaration, found: Rows) -> tuple[Crossing, ...]:
    """The declared events.  Raises `UsageError` for one that watches no order parameter."""
    known = [b.name for b in found.moving] + [declared.students[g].named(word) for g, word, _ in found.scalars]
    for event in declared.events:
        if event.of not in known:
            raise UsageError(f"event {event.name} watches {event.of!r}; what moves is {', '.join(known)}")
    return tuple(
        Crossing(e.name, e.of, e.threshold, e.direction, e.absolute,
                 meaning=f"first time {f'|{e.of}|' if e.absolute else e.of} passes {e.threshold:g}")
        for e in declared.events
    )  # fmt: skip


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The least eigenvalue of the Gram matrix along the run, and the largest rise of a flow's loss without decay."""
    p = initial.parameters
    found = rows(p)
    gram = found.gram({**{b.name: initial.constants[b.name] for b in found.fixed}, **state})
    kept = {"gram_min_eigenvalue": float(np.linalg.eigvalsh(gram).min()) if np.isfinite(gram).all() else float("nan")}
    if "loss" in state and p.declaration.limit == "flow" and p.decay == 0:
        kept["loss_increase"] = float(np.diff(state["loss"]).max(initial=0.0))
    return kept
