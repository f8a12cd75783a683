"""Every declaration that is shipped: it has a name, runs in each of its ways, and gives the published number."""

import numpy as np
import pytest

import derivations
import odesim
from derivations import outside
from derivations.declare.claims import stated
from odesim.evidence.grade import NUMBER, printed_at, reproduces
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify

NAMES = sorted(outside.gallery())
SLOW = ("liao_declared", "kawata_neuron", "softmax_mixture", "top1_mixture", "tanh_network", "relu_committee")
"""What states no number: numba and JAX take seconds to compile each."""


def names(slow=SLOW):
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in NAMES]


def test_the_gallery_is_listed_and_has_names_of_its_own():
    assert len(NAMES) >= 49
    assert not set(NAMES) & set(derivations.names())
    assert derivations.reference(derivations.system("saad_solla_1995")) == "saad_solla_1995"


def test_fifteen_entries_state_a_published_number():
    # That each comes out is test_what_is_published_comes_out.
    systems = {name: derivations.system(name) for name in NAMES}
    numbers = {
        name
        for name, system in systems.items()
        for claim in stated.claims(system)
        if reproduces(claim.law) == NUMBER and printed_at(claim, claim.variants[0])
    }
    assert len(numbers) >= 15 and all(stated.claims(system) for system in systems.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_has_a_title_and_a_source_with_a_year(name):
    system = derivations.system(name)
    declared = system.parameters.declaration
    assert declared.title and declared.source[-4:].isdigit()
    assert system.parameters() == system.parameters()


@pytest.mark.parametrize("name", names())
def test_every_entry_learns_by_its_flow(name):
    run = odesim.integrate(name, until=2.0, save_points=5)
    error = np.asarray(run["error"])
    assert np.isfinite(error).all() and error[-1] < error[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_trains(name):
    declared = derivations.system(name).parameters.declaration
    size = {"step_size": 2e-3} if declared.limit == "flow" else {}
    until = 1.0 if declared.limit == "batch" else 0.2
    run = odesim.simulate(name, method="explicit", d=100, until=until, seeds=2, **size)
    overlaps = [variable for variable in run.state if "M_" in variable]
    numbers = [group.named(word) for group in declared.students for word in group.own]
    moved = {key: np.abs(np.asarray(run[key])[:, -1] - np.asarray(run[key])[:, 0]).max() for key in overlaps + numbers}
    assert overlaps and all(np.isfinite(np.asarray(run[key])).all() for key in moved)
    if any(declared.moves(group, slot) for group in declared.students for slot in group.slots):
        assert max(moved[key] for key in overlaps) > 1e-4
    else:  # random features: vectors stay where they are, and readouts alone are trained
        assert max(moved[key] for key in overlaps) == 0.0 and max(moved[key] for key in numbers) > 1e-3


LONG = ("ben_arous_2021", "ben_arous_2022", "hebb_rule")
"""Entries whose published numbers need thousands of steps or many runs: above twenty seconds each."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in NAMES
        if stated.claims(derivations.system(name))
    ],
)
def test_what_is_published_comes_out(name):
    system = derivations.system(name)
    lab = Laboratory(system)
    for claim in stated.claims(system):
        (variant,) = claim.variants
        assert verify(lab, claim, variant).answer == variant.expected, claim.id
        broken = claim.control(claim)
        assert verify(lab, broken, *broken.variants).answer == "refuted", claim.id


def test_many_teachers_are_found_at_times_inversely_proportional_to_their_weights():
    # Ren et al. 2025: sharp transitions at 1/a_j, a_j = j^(-beta).
    for beta in (0.5, 1.0):
        run = odesim.integrate("ren_2025", until=20.0, beta=beta, rtol=1e-10)
        times = np.diag(np.asarray(run["T"]).reshape(6, 6))
        assert times * np.arange(1, 7.0) ** -beta == pytest.approx(np.full(6, times[0]), rel=1e-6)


def test_what_a_superfluous_quadratic_unit_leaves():
    # Martin et al. 2024: dW/dt = 4 (T - W W') W; a squared norm s outside the teachers obeys s' = -8 s^2.
    for units, until in ((4, 300.0), (6, 300.0)):
        run = odesim.integrate("martin_2024", units=units, until=until, rtol=1e-10, save_points=3)
        assert run["error"][-1] == pytest.approx((units - 3) * 2 / (8 * until) ** 2, rel=1e-2)
    run = odesim.integrate("martin_2024", units=1, teachers=1, overlap=0.0, norm=0.5, until=5.0, rtol=1e-10, d=50)
    assert np.asarray(run["Q_ww"])[:, 0, 0] == pytest.approx(0.25 / (1 + 8 * 0.25 * run.time), rel=1e-6)


def test_streaming_least_squares_is_the_solution_of_its_equation():
    # Collins-Woodfin et al. 2023, covariance 1: E' = -eta (2 - eta) E + eta^2 noise^2.
    for eta, noise in ((0.5, 0.5), (1.9, 0.2), (2.1, 0.0)):
        run = odesim.integrate("collins_woodfin_2023", step=eta, noise=noise, until=8.0, rtol=1e-10)
        floor = eta * noise**2 / (2 - eta)
        expected = floor + (2.0 - floor) * np.exp(-eta * (2 - eta) * run.time)
        assert np.asarray(run["error"]) == pytest.approx(expected, rel=1e-7)


def test_streaming_least_squares_in_many_dimensions_follows_it():
    sgd = odesim.simulate("collins_woodfin_2023", method="explicit", d=2000, noise=0.0, seeds=5, until=3.0)
    error = 2 * np.asarray(sgd["loss"]).mean(axis=0)
    assert np.abs(np.log(error / (2 * np.exp(-0.75 * sgd.time)))).max() < 0.15


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_says_what_to_change(name):
    system = derivations.system(name)
    assert len(system.presets) >= 3 and system.about
    for preset in system.parameters.declaration.presets:
        assert preset.meaning and derivations.system(name).parameters(**dict(preset.parameters)) != system.parameters()
