"""Band of SGD around the flow in a comparison, for the same d, step and batch."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import BY_PARTS, PARTS
from odesim.errors import NumericalError, UsageError
from odesim.machine.device import in_double
from odesim.request.trajectory import Variable
from odesim.sgd.simulation import Simulation
from odesim.study import band_question, band_solution, panels, quantities, rebuild
from odesim.study.bands import Band
from odesim.study.quantities import Quantity
from odesim.study.replicas import with_replicas

if TYPE_CHECKING:
    from odesim.flow.problem import Problem
    from odesim.study.comparison import Comparison

LEVEL = 0.9
ENTRIES = 20
"""Largest number of entries of a state with a band by default: 15 take 1 to 3 s, 40 take 30 s."""
POINTS, ACCURACY = 13, 1e-3
"""Number of Sobol points as a power of two, and accuracy of J and D. At a third of the cost of `odesim bands` the
widths agree to 1 % (committees of erf units) and, at the end of a plateau, to 4 %.
"""
TIMES = 101
"""Largest number of times at which the band is evaluated and replicas are counted."""
MEASURED = ("error", "loss")
"""Quantities in whose band replicas are counted: the first that a model has."""


@dataclasses.dataclass(frozen=True, eq=False)
class Entry(Quantity):
    """Linear quantity weights . y of the flat state y (P,), plus constant entries."""

    weights: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))

    def gradient(self, y: np.ndarray) -> np.ndarray:
        """Return the weights (P,)."""
        return self.weights

    def curvature(self, y: np.ndarray, sigma: np.ndarray) -> float:
        """Return 0: a linear quantity has no second derivatives."""
        return 0.0


@dataclasses.dataclass(frozen=True)
class FlowBand:
    """90 % band of the flow of a comparison at the size, step and batch of its SGD.

    Attributes:
        quantity: Quantity whose band the replicas are counted in.
        inside: Share of the times at which a replica is inside that band (replica,).
        until: Last time with a band. After it the distribution is a mixture, which was not requested.
        mixed: True if the band ends before the comparison.
        setting: Dimension, step size and batch in words.
        arrays: Ends of bands at the times of the comparison, by the names of the data set.
    """

    quantity: str
    inside: np.ndarray
    until: float
    mixed: bool
    setting: str
    arrays: Mapping[str, Variable]

    def summary(self) -> dict[str, Any]:
        """Return the share of pairs (replica, time) inside the band, its expectation and standard error, in words too.

        The standard error is over replicas, because the times of a replica depend on each other.
        """
        count = len(self.inside)
        error = float(self.inside.std(ddof=1) / np.sqrt(count)) if count > 1 else None
        return {
            "inside_90": float(self.inside.mean()), "inside_90_expected": LEVEL, "inside_90_standard_error": error,
            "band": self.sentence,
        }  # fmt: skip

    @property
    def sentence(self) -> str:
        """Sentence on the band: its quantity and setting, and its end if that is before the end of the run."""
        text = f"{LEVEL:.0%} band of the {self.quantity} at {self.setting}"
        if not self.mixed:
            return text
        return f"{text}, until t = {self.until:.4g}; later the distribution is a mixture of flows, which --band adds"


@in_double
def behind(simulation: Simulation, comparison: "Comparison", band_choice: bool | None = None) -> FlowBand | str:
    """Return the band of SGD around the flow in a comparison, or a sentence with the reason why there is none.

    Arguments:
        simulation: The SGD of the comparison.
        comparison: Flow and SGD at common times, from the start.
        asked: True for a band of any size with the mixture after a saddle; False for none; None for the band of a
            declared model with compiled equations and at most `ENTRIES` entries, up to that saddle.

    The centre is the mean of SGD at finite d. For a gradient flow, the centre solves the equations that keep the size
    of a step (`odesim.study.band_question`), and differs from the flow.
    """
    if band_choice is False:
        return "no band: --no-band was given"
    if band_choice is None and not simulation.system.declaration:
        return "no band: by default only declared models have one; --band tries to compute it"
    try:
        ready = band_question.prepared(simulation, POINTS)
        problem, tier = ready.setting.problem, ready.setting.problem.equations.about.name
        size = problem.start.size
        if not ready.setting.shifted:  # checked early, because these equations are slow
            return f"no band: tier {tier} is not exact, so the centre of a band is not known"
        if band_choice is None and problem.derivative is None:
            return f"no band: tier {tier} is not compiled, so a band would take long; --band computes it"
        if band_choice is None and size > ENTRIES:
            return (
                f"no band: the state has {size} entries, and with more than {ENTRIES} a band takes long; --band "
                "computes it"
            )
        return _solved(simulation, comparison, ready, bool(band_choice))
    except (UsageError, NumericalError) as error:
        text = str(error)
        return text if "band" in text else f"no band: {text}"


def _solved(
    simulation: Simulation, comparison: "Comparison", ready: band_question.Asked, mixed: bool
) -> FlowBand | str:  # fmt: skip
    """Return the band of a prepared question, with the mixture after a saddle if `mixed`."""
    setting = ready.setting
    chosen = np.unique(np.linspace(0, len(comparison.times) - 1, TIMES).round().astype(int))
    times = comparison.times[chosen] / ready.scale
    solution = band_solution.solve(
        setting, times, lambda finished_part, total: None, accuracy=ACCURACY, mixed=mixed
    )  # fmt: skip
    if not solution.setting.shifted:
        return (
            f"no band: the mean step of SGD is not that of the flow ({solution.course.bias:.2g} standard errors off); "
            "leave --step-size to the model"
        )
    if solution.rare:
        return band_solution.rare_sentence(solution)
    curves = {name: solution.band(quantity, LEVEL) for name, quantity in _scalars(setting.problem).items()}
    measured = next((name for name in MEASURED if name in curves and name in comparison.second.state), None)
    if measured is None:
        return "no band: the flow and SGD share neither error nor loss"
    last = len(curves[measured].low)
    covered = _inside(curves[measured], with_replicas(comparison.second.state[measured])[:, chosen[:last]])
    entry_bands = [solution.band(entry, LEVEL) for entry in _shown(setting.problem, comparison)]
    arrays = {}
    for end in ("low", "high"):
        meaning = f"{'lower' if end == 'low' else 'upper'} end of the {LEVEL:.0%} band of SGD around the flow"
        for name, band in curves.items():
            values = _along(comparison.times, chosen, getattr(band, end))
            arrays[f"{name}_{end}"] = Variable(("time",), values, f"{name}: {meaning}")
        rows = [_along(comparison.times, chosen, getattr(band, end)) for band in entry_bands]
        arrays[f"shown_{end}"] = Variable(("shown", "time"), np.array(rows), meaning)
    words = f"d = {setting.clock.d:g}, step {simulation.step_size:.4g}, batch {simulation.batch}"
    until = float(comparison.times[chosen[last - 1]])
    return FlowBand(measured, covered, until, last < len(chosen), words, arrays)


def _scalars(problem: "Problem") -> dict[str, Quantity]:
    """Error and loss of a flow, those that it has."""
    available = quantities.names(problem)
    return {
        name: quantities.of_measure(problem, quantities.read(f"final {name}")) for name in MEASURED if name in available
    }


def _shown(problem: "Problem", comparison: "Comparison") -> list[Entry]:
    """The entries that the picture shows, as linear quantities of the flat state.

    Raises `UsageError` where the equations of the band do not have their component.
    """
    chosen = panels.chosen_of(comparison.first, comparison.reference)
    components = {component.name: component for component in problem.equations.state}
    if chosen.name not in components:
        raise UsageError(f"no band: its equations have no component {chosen.name}")
    size, dims = problem.start.size, components[chosen.name].dims
    place = rebuild.places(problem.equations, size)[chosen.name]
    weights = (place[..., None] == np.arange(size)).astype(float)
    constants = np.where(place >= 0, 0.0, np.asarray(problem.equations.unpack(problem.start)[chosen.name], float))
    if PARTS in dims:
        weights, constants = weights.sum(axis=dims.index(PARTS)), constants.sum(axis=dims.index(PARTS))
    measure, meaning = quantities.read(f"final {chosen.name}"), components[chosen.name].meaning.replace(BY_PARTS, "")
    return [_entry(chosen.name, meaning, measure, weights[index], float(constants[index])) for index in chosen.indices]


def _entry(name: str, meaning: str, measure: Any, weights: np.ndarray, constant: float) -> Entry:
    """The linear quantity weights . y + still."""
    return Entry(name, meaning, measure, lambda y: float(weights @ y) + constant, weights)


def _inside(band: Band, values: np.ndarray) -> np.ndarray:
    """Share of the times (replica,) at which values (replica, time) are in a band, without the start, which is fixed.

    Raises `UsageError` if nothing fluctuates.
    """
    fluctuating = band.high > band.low
    if not fluctuating.any():
        raise UsageError("no band: no order parameter fluctuates")
    covered = (values >= band.low) & (values <= band.high)
    return covered[:, fluctuating].mean(axis=1)


def _along(times: np.ndarray, chosen: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return values at the first of the chosen times on all times, with linear interpolation; later ones are NaN."""
    known_times = times[chosen[: len(values)]]
    return np.interp(times, known_times, values, right=np.nan)
