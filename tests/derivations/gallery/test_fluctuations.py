"""Fluctuations of SGD around the fixed point of an entry, by quadrature of an Ornstein-Uhlenbeck process."""

import numpy as np
import pytest
from scipy.optimize import brentq

import odesim
from derivations.declare.claims import stated as claims
from tests.derivations.gallery.test_closed_forms import NODES, WEIGHTS, corrected, stated

ETA, NOISE, D = 0.2, 0.1, 1e8


def unit(z):
    """The unit (z^3 - 3 z)/6 with its first and second derivative."""
    return (z**3 - 3 * z) / 6, (z**2 - 1) / 2, z


def test_the_overlap_fluctuates_as_an_ornstein_uhlenbeck_process():
    # A small overlap M moves the mean step by -eta M E[(f f')']: the label has no part of degree 1 or 2.
    q = brentq(corrected, 1e-6, 0.1, args=(ETA,), xtol=1e-15)
    f, slope, bend = unit(np.sqrt(q) * NODES)
    label = unit(NODES)[0]
    rate = ETA * (WEIGHTS @ (slope**2 + f * bend))
    around = (WEIGHTS @ (f * slope) ** 2) + (WEIGHTS @ (label * NODES) ** 2 + NOISE**2) * (WEIGHTS @ slope**2)
    assert np.sqrt(ETA**2 * around / (2 * rate * D)) == pytest.approx(
        stated("rangriz_2025", "overlap-fluctuates"), rel=1e-8
    )


def test_the_norm_fluctuates_as_an_ornstein_uhlenbeck_process():
    q = brentq(corrected, 1e-6, 0.1, args=(ETA,), xtol=1e-15)
    z = (np.sqrt(q) * NODES)[:, None, None]
    f, slope, _ = unit(z)
    c = (f - unit(NODES)[0][None, :, None] - NOISE * NODES[None, None, :]) * slope
    weights = WEIGHTS[:, None, None] * WEIGHTS[None, :, None] * WEIGHTS[None, None, :]
    step = -2 * ETA * c * z + ETA**2 * c**2
    rate = (corrected(q - 1e-6, ETA) - corrected(q + 1e-6, ETA)) / 2e-6
    width = np.sqrt((weights * step**2).sum() / (2 * rate * D))
    assert width == pytest.approx(stated("rangriz_2025", "norm-fluctuates"), rel=1e-6)


def test_a_standard_deviation_is_that_of_runs_of_sgd():
    tables = {
        "student": {"unit": "w"}, "teacher": {"noise": 0.5}, "training": {"limit": "online", "step": 0.5},
        "start": {"norm": 1.0, "overlap": 0.0},
    }  # fmt: skip
    claim = {"id": "x", "measure": "standard deviation of M_ww", "engine": "bands", "until": 6}
    system = odesim.declare(
        **tables, claim=[{**claim, "parameters": {"d": 500}, "law": {"equals": 0.02, "margin": 0.9}}]
    )
    (found,) = odesim.verify(system, ["x"])
    runs = np.asarray(odesim.simulate(system, method="compressed", d=500, until=6, seeds=400, save_points=2)["M_ww"])
    # A standard deviation of 400 runs has a standard error of 1/sqrt(800) of itself.
    assert runs[:, -1].std(ddof=1) == pytest.approx(found.estimate, rel=4 / np.sqrt(800))


def test_a_standard_deviation_is_a_measure_of_bands_alone():
    claim = {"id": "x", "measure": "standard deviation of M_ww", "law": {"equals": 0.1}}
    with pytest.raises(odesim.UsageError, match="a standard deviation needs engine"):
        claims.claims(odesim.declare(student={"unit": "w"}, claim=[claim]))
    with pytest.raises(odesim.UsageError, match="is a measure of claims with bands"):
        odesim.gradient("saad_solla_1995", of=["standard deviation of M_ww"], until=1.0)
