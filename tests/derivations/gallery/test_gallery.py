"""Every declaration that is shipped: it has a name, runs in each of its ways, and gives the published number."""

import numpy as np
import pytest

import derivations
import odesim
from derivations import outside
from derivations.declare.claims import stated
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify

NAMES = sorted(outside.gallery())
SLOW = ("liao_declared", "kawata_neuron", "softmax_mixture", "top1_mixture", "tanh_network", "relu_committee")
"""What states no number: numba and JAX take seconds to compile each."""


def names(slow=SLOW):
    return [pytest.param(name, marks=pytest.mark.slow) if name in slow else name for name in NAMES]


def test_the_gallery_is_listed_and_has_names_of_its_own():
    assert len(NAMES) >= 14
    assert not set(NAMES) & set(derivations.names())
    assert derivations.reference(derivations.system("saad_solla_1995")) == "saad_solla_1995"


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
    online = derivations.system(name).parameters.declaration.limit == "online"
    size = {} if online else {"step_size": 2e-3}
    run = odesim.simulate(name, method="explicit", d=100, until=0.2, seeds=2, **size)
    moving = [np.asarray(run[variable]) for variable in run.state if "M_" in variable]
    assert moving and all(np.isfinite(path).all() for path in moving)
    assert max(np.abs(path[:, -1] - path[:, 0]).max() for path in moving) > 1e-3


@pytest.mark.parametrize("name", [name for name in NAMES if stated.claims(derivations.system(name))])
def test_what_is_published_comes_out(name):
    system = derivations.system(name)
    for claim in stated.claims(system):
        (variant,) = claim.variants
        assert verify(Laboratory(system), claim, variant).answer == variant.expected, claim.id


def test_many_teachers_are_found_at_times_inversely_proportional_to_their_weights():
    # Ren et al. 2025: sharp transitions at 1/a_j, a_j = j^(-beta).
    for beta in (0.5, 1.0):
        run = odesim.integrate("ren_2025", until=20.0, beta=beta, rtol=1e-10)
        times = np.diag(np.asarray(run["T"]).reshape(6, 6))
        assert times * np.arange(1, 7.0) ** -beta == pytest.approx(np.full(6, times[0]), rel=1e-6)
