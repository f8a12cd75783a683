"""SGD approaches the flow as its noise and its step size vanish, at the predicted rates."""

import numpy as np
import pytest

UNTIL = 0.5


def run(step, batch, replicas, *, backend="numba", until=UNTIL, **parameters):
    """SGD at d = 50, m = 3, m_star = 1, and the flow at its times."""
    from odesim.request.case import Case
    from odesim.sgd.simulation import Simulation, simulate

    given = {"m": 3, "m_star": 1, "d": 50, "init": "orthogonal", **parameters}
    case = Case.build("liao", given, until=until, save_points=6, seed=2, backend=backend)
    return simulate(Simulation.build(case, method="compressed", step_size=step, batch=batch, seeds=replicas))


def flow(until=UNTIL, **parameters):
    """The flow of the same case."""
    from odesim.flow.solve import solve
    from odesim.request.case import Case

    given = {"m": 3, "m_star": 1, "d": 50, "init": "orthogonal", **parameters}
    return solve(Case.build("liao", given, until=until, save_points=6, seed=2))


def distances(simulated, reference):
    """max |G_sgd - G_flow| over entries and times, per replica."""
    names = ("gamma1", "gamma2", "zeta1", "zeta2", "I1", "I2", "I3")
    return np.max([np.abs(simulated[n] - reference[n]).max(axis=(1, 2, 3)) for n in names], axis=0)


def fitted_slope(levels, samples, rng):
    """The least-squares slope of log median distance against log level, and its 95 % bootstrap interval."""

    def slope(drawn):
        return np.polyfit(np.log(levels), [np.log(np.median(s)) for s in drawn], 1)[0]

    made = [slope([rng.choice(s, s.size) for s in samples]) for _ in range(400)]
    return slope(samples), np.quantile(made, [0.025, 0.975])


def test_the_distance_to_the_flow_falls_with_the_root_of_step_over_batch():
    # Two decades in step/B, 1.25e-5 to 1.25e-7; the distances, 0.12 to 0.014, stay below the size at which
    # the path itself changes.
    reference = flow()
    settings = [(0.01, 800), (0.01, 4000), (0.005, 8000), (0.005, 40000)]
    samples = [distances(run(step, batch, 6), reference) for step, batch in settings]
    levels = [step / batch for step, batch in settings]
    slope, interval = fitted_slope(levels, samples, np.random.default_rng(0))
    assert 0.4 < slope < 0.6
    assert interval[0] - 0.1 < 0.5 < interval[1] + 0.1


def test_norms_grow_by_the_squared_tangent_gradient():
    # |v'|^2 = |v|^2 + step^2 |g|^2 is an identity, its mean the growth (step/B) var d t / |w|^2 for small growth: var
    # the second moment per coordinate of one expert's gradient at the start, measured here on explicit samples.
    grown = run(0.001, 64, 24, until=0.1)
    rng = np.random.default_rng(0)
    from conftest import liao_step

    from derivations.liao.model import MODEL
    from odesim.request.case import Case
    from odesim.sgd.simulation import Simulation, explicit_rows, initial_conditions

    case = Case.build("liao", {"m": 3, "m_star": 1, "d": 50, "init": "orthogonal"}, until=0.1, seed=2)
    gram = MODEL.place(initial_conditions(Simulation.build(case, method="explicit", step_size=0.01, batch=1))[0])
    rows = explicit_rows(MODEL, None, gram[None], 50, 6)[0]
    count = 20_000
    V, W = (np.tile(part, (count, 1, 1)) for part in (rows[:3], rows[3:6]))
    moved = liao_step(V, W, rows[6:7], rows[7:8], rng.standard_normal((count, 1, 50)), 1.0)[1]
    square = ((moved - W) ** 2).sum(2)
    predicted = 0.001 / 64 * 0.1 * square.mean()
    growth = (grown["norm_w"][:, -1] ** 2 - 1).mean()
    # The tails of degree twelve leave some ten per cent of error in both means.
    assert growth == pytest.approx(predicted, rel=0.25)


def test_norms_stay_when_they_are_restored():
    restored = run(0.01, 4, 4, renormalise=True)
    assert np.abs(restored["norm_w"] - 1).max() < 1e-13 and np.abs(restored["norm_v"] - 1).max() < 1e-13


@pytest.mark.slow
def test_without_noise_the_distance_is_linear_in_the_step():
    # One expert on its way (overlaps 0.5 and 0.3 with the teacher), where paths move by 0.5 within the time: the mean
    # over 8 replicas of B = 1e5 has a noise of sqrt(step var t / 8e5), about 1e-3, below the error of every step here.
    from odesim.flow.solve import solve
    from odesim.request.case import Case
    from odesim.sgd.simulation import Simulation, simulate

    rng = np.random.default_rng(0)
    teacher = np.eye(2, 12)
    V = 0.3 * teacher[:1] + np.append(np.zeros(2), rng.normal(size=10) / 4)
    W = 0.5 * teacher[1:] + np.append(np.zeros(2), rng.normal(size=10) / 4)
    arrays = {"V": V, "W": W, "V_star": teacher[:1], "W_star": teacher[1:]}
    errors, steps = [], (0.08, 0.04, 0.02)
    for step in steps:
        case = Case.build("liao", {}, initial=arrays, until=0.48, save_points=7)
        reference = solve(case)
        simulated = simulate(Simulation.build(case, method="compressed", step_size=step, batch=100_000, seeds=8))
        errors.append(max(np.abs(simulated[n].mean(0) - reference[n]).max() for n in ("gamma2", "gamma1")))
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.25), errors
