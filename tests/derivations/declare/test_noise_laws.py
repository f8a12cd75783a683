"""The noise of labels as any law: in the equations, in SGD, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import odesim
from derivations.declare import noise

LAPLACE = "-0.3*sign(xi)*log(2*probit(-abs(xi)))"
STUDENT = "0.5*(2*probit(xi) - 1)/sqrt(2*probit(xi)*probit(-xi))"
"""Half of Student's t of two degrees of freedom, whose variance is infinite."""
CLIPPED = {
    "name": "clipped",
    "student": {"unit": "w"},
    "teacher": {"noise": STUDENT},
    "training": {"limit": "online", "step": 0.6, "rule": "clip(dl, 1)*df", "until": 10},
    "start": {"norm": 0.5, "overlap": 0.0},
}
TIMES = [0, 1, 2, 5, 10]
DIGITS = {"M_ww": [0.289104, 0.514585, 0.866732, 0.986359], "Q_ww": [0.365429, 0.532851, 0.945320, 1.141479]}
"""By integrals over the law of the error, in other code."""


def test_laws_have_the_moments_of_their_names():
    laplace = noise.law({"noise": LAPLACE}, {})
    assert noise.moment(laplace, {}, 2) == pytest.approx(2 * 0.3**2, rel=1e-6)
    student = noise.law({"noise": STUDENT}, {})
    assert noise.moment(student, {}, 2) == np.inf
    assert noise.moment(student, {}, 1) == pytest.approx(0.5 * stats.t(2).expect(np.abs), rel=1e-3)
    cauchy = noise.law({"noise": "sign(xi)/probit(-abs(xi))"}, {})  # tails of Cauchy's law
    assert noise.moment(cauchy, {}, 1) == np.inf


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_clipped_sgd_under_noise_without_variance(backend):
    run = odesim.integrate(odesim.declare(**CLIPPED), d=10**6, save_at=TIMES, points=2**18, backend=backend)
    for name, digits in DIGITS.items():
        # Two to the eighteen points have an error of some 1e-4.
        assert np.asarray(run[name])[1:, 0, 0] == pytest.approx(digits, abs=2e-4)
    assert np.isfinite(np.asarray(run["loss"])).all() and "without a variance" in run.summary["conventions"]["noise"]


@pytest.mark.parametrize(
    ("method", "backend", "count"),
    [
        ("compressed", "numba", 96),
        ("compressed", "jax", 96),
        pytest.param("explicit", "jax", 48, marks=pytest.mark.slow),
    ],
)
def test_clipped_sgd_follows_its_limit(method, backend, count):
    run = odesim.simulate(
        odesim.declare(**CLIPPED), method=method, backend=backend, d=1000, seeds=count, save_at=TIMES
    )  # fmt: skip
    found = []
    for name, digits in DIGITS.items():
        values = np.asarray(run[name])[:, 1:, 0, 0]
        found.append((values.mean(0) - digits) / (values.std(0, ddof=1) / np.sqrt(count)))
    z = np.concatenate(found)
    assert np.sqrt((z**2).mean()) < 1.6 and np.abs(z).max() < 4.5


def test_closed_forms_take_the_variance_of_a_law():
    tables = {"student": {"unit": "erf(w)", "units": 2}, "training": {"limit": "online", "step": 0.7}}
    law = odesim.declare(name="law", teacher={"noise": LAPLACE}, **tables)
    normal = odesim.declare(name="law", teacher={"noise": 0.3 * 2**0.5}, **tables)
    assert law.digest != normal.digest
    one, two = (odesim.integrate(model, d=1000, until=4, save_points=5) for model in (law, normal))
    assert one.summary["tier"] == "exact"
    assert np.asarray(one["Q_ww"]) == pytest.approx(np.asarray(two["Q_ww"]), abs=1e-6)
    # A number by -p is normal noise of that standard deviation.
    number = odesim.integrate(law, d=1000, until=4, save_points=5, noise=0.3 * 2**0.5)
    assert np.asarray(number["Q_ww"]) == pytest.approx(np.asarray(two["Q_ww"]), abs=1e-12)


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_sgd_draws_the_law(backend):
    # A student that does not move but by noise: u gains h n x at every step, |u|^2 gains h^2 n^2 |x|^2.
    model = odesim.declare(
        name="drawn", student={"unit": "0*w + 1"}, teacher={"unit": "0*w + 1", "noise": LAPLACE},
        training={"limit": "online", "step": 1.0, "rule": "dl"},
    )  # fmt: skip
    run = odesim.simulate(model, method="compressed", backend=backend, d=400, until=2.0, seeds=64, save_points=2)
    gained = np.diff(np.asarray(run["Q_ww"])[:, :, 0, 0], axis=1).ravel()
    error = gained.std(ddof=1) / 8
    assert abs(gained.mean() - 2.0 * 2 * 0.3**2) < 4.5 * error and error < 0.02


REFUSED = [
    ("xi^2", "has the mean 1"),
    ("xi*t", "or a time-dependent standard deviation"),
    ("1/xi", "is not a number at xi = 0"),
    ("xi*zeta", "unknown name 'zeta'"),
    ("softmax(xi)", "softmax has no meaning in a law of noise"),
]


@pytest.mark.parametrize(("law", "said"), REFUSED)
def test_laws_that_are_refused(law, said):
    with pytest.raises(odesim.UsageError, match=said):
        odesim.declare(student={"unit": "w"}, teacher={"noise": law})


def test_noise_without_a_variance_needs_a_bounded_rule():
    tables = {"student": {"unit": "w"}, "teacher": {"noise": STUDENT}}
    for training in ({}, {"rule": "dl*df"}, {"rule": "clip(dl, 1)*df + 0.01*dl"}):
        with pytest.raises(odesim.UsageError, match="has no variance: clip the error"):
            odesim.declare(training={"limit": "online", **training}, **tables)
    odesim.declare(training={"limit": "online", "rule": "tanh(dl)*df"}, **tables)
    with pytest.raises(odesim.UsageError, match="the loss has no mean"):
        odesim.declare(training={"limit": "online", "rule": "tanh(dl)*df", "loss": "(f - y)^4"}, **tables)
    odesim.declare(**tables)  # a flow takes the mean of the noise alone
