"""Inputs with eigenvalues: numbers of an independent engine, identities, the loss of samples, and spectra."""

import math

import numpy as np
import pytest
from scipy import stats

import odesim
from derivations.declare import initial, parameter_class, reading, spectra, system
from tests.derivations.declare import judged
from tests.derivations.declare.closed import EXACT, ON_BLOCKS
from tests.derivations.declare.closed import made as closed_system

ERF = "erf(w/sqrt(2))"
PLATEAU = {
    "student": {"unit": ERF, "units": 2},
    "teacher": {"units": 2},
    "inputs": {"blocks": [["2/(1 + low)", 0.5], ["2*low/(1 + low)", 0.5]]},
    "parameters": {"low": 1.0},
    "training": {"limit": "online", "step": 0.5},
    "start": {
        "Q_ww": [[[0.125, 0.00625], [0.00625, 0.125]]] * 2,
        "M_ww": [[[0.0005, 0.0001], [-0.00015, 0.0004]]] * 2,
    },
}
LINEAR = {
    "student": {"unit": "w"},
    "teacher": {"spread": "j^(-0.3)", "noise": 0.3},
    "inputs": {"spectrum": "j^(-1.5)", "bins": 200},
    "training": {"limit": "online", "step": 40.0},
    "start": {"norm": 0.3, "overlap": 0.0},
}
PHASE = {
    "student": {"unit": "w^2"},
    "teacher": {"noise": 0.3},
    "inputs": {"blocks": [[1.6, 0.5], [0.4, 0.5]]},
    "training": {"weights": "sphere", "limit": "online", "step": 0.04},
    "start": {"overlap": 0.15},
}


def parameters_of(tables, **numbers):
    return system.system(reading.declaration(tables)).parameters(**numbers)


# -- numbers of another engine (NumPy, means by closed forms of its own, or the matrix exponential)


def test_a_committee_on_two_eigenvalues_goes_the_way_of_another_engine():
    # Yoshida & Okada 2019: the plateau of two soft committees.
    run = odesim.integrate(odesim.declare(**PLATEAU), low=0.25, until=100, save_points=2, rtol=1e-10)
    assert run["error"][0] == pytest.approx(0.934407187077, abs=1e-12)
    assert run["error"][-1] == pytest.approx(0.0294079249, abs=2e-10)
    assert run["M_ww"][-1, :, 0, 0] == pytest.approx([0.21860731, 0.21247421], abs=1e-8)


@pytest.mark.parametrize(("low", "time"), [(1.0, 237.949), (0.25, 183.573), (0.1, 148.197)])
def test_a_smaller_second_eigenvalue_shortens_the_plateau(low, time):
    run = odesim.integrate(odesim.declare(**PLATEAU), low=low, save_at=[time - 1e-3, time + 1e-3], rtol=1e-10)
    assert run["error"][0] > 0.0147 > run["error"][1]


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_least_squares_is_a_matrix_exponential(backend):
    run = odesim.integrate(odesim.declare(**LINEAR), d=200, save_at=[0, 0.05, 0.2, 1, 4], rtol=1e-12, backend=backend)
    wanted = [0.083600635404, 0.035900363081, 0.028727492142, 0.027618588046, 0.028333740023]
    assert run["error"] == pytest.approx(wanted, abs=2e-11)


def test_the_flow_of_least_squares_is_a_sum_of_exponentials():
    tables = {**LINEAR, "training": {}, "teacher": {"spread": "j^(-0.3)"}}
    run = odesim.integrate(odesim.declare(**tables), d=200, save_at=[1, 10, 100, 1000], rtol=1e-10)
    assert run["error"] == pytest.approx([0.027941558159, 0.004990062941, 0.000842941219, 6.955953e-5], rel=3e-7)


def test_phase_retrieval_on_two_eigenvalues():
    run = odesim.integrate(odesim.declare(**PHASE), save_at=[10, 20, 40], rtol=1e-10)
    wanted = [[0.26815614, 0.17544666], [0.45895403, 0.31185407], [0.49826601, 0.47334770]]
    assert run["M_ww"][:, :, 0, 0] == pytest.approx(np.array(wanted), abs=1e-8)
    assert run["Q_ww"][:, 0, 0, 0] == pytest.approx([0.27500780, 0.45746344, 0.50195611], abs=1e-8)
    assert run["loss"] == pytest.approx([1.1159029799, 0.4708245674, 0.1030831518], abs=1e-9)
    flow = odesim.integrate(odesim.declare(**{**PHASE, "training": {"weights": "sphere"}}), save_at=[0.4, 0.8, 1.6])
    wanted = [[0.31464128, 0.19173519], [0.48732624, 0.33558024], [0.50127972, 0.48184472]]
    assert flow["M_ww"][:, :, 0, 0] == pytest.approx(np.array(wanted), abs=1e-7)


# -- identities


def rates(tables, state=None, **numbers):
    """The rates of change by name at a start, and the start.

    Of array functions: numba takes seconds for each statement, and `test_population` compares it with them.
    """
    from odesim.flow.problem import compile_functions

    p = parameters_of(tables, **numbers)
    found = initial.enter(p, None, np.random.default_rng(3))
    found = found if state is None else initial.enter(p, state, np.random.default_rng(3))
    from derivations.declare.tiers import equations

    made = equations(p, None)
    flow = compile_functions(made, "numpy")["flow"]
    y = made.start(found)
    return made.unpack(flow(0.0, y, *made.arguments(found))), found


CONSTRAINED = [("free", "flow"), ("free", "online"), ("sphere", "online"), ("normalised", "online")]


@pytest.mark.parametrize(("weights", "limit"), CONSTRAINED)
def test_one_block_of_eigenvalue_one_is_the_isotropic_model(weights, limit):
    tables = {"student": {"unit": ERF, "units": 3}, "teacher": {"units": 2, "noise": 0.2},
              "training": {"weights": weights, "limit": limit}}  # fmt: skip
    plain, start = rates(tables)
    block, other = rates({**tables, "inputs": {"blocks": [[1.0, 1.0]]}})
    for name, value in plain.items():
        assert np.array_equal(start.state[name], other.state[name])
        assert np.abs(value - block[name]).max() < 2e-15 * max(1.0, np.abs(value).max()), name


@pytest.mark.parametrize(("weights", "limit"), CONSTRAINED)
def test_blocks_of_one_eigenvalue_add_up_to_the_isotropic_model(weights, limit):
    tables = {"student": {"unit": ERF, "units": 2}, "teacher": {"units": 2, "noise": 0.2},
              "training": {"weights": weights, "limit": limit}}  # fmt: skip
    shares = np.array([0.1, 0.3, 0.6])
    plain, start = rates(tables)
    state = {name: shares[:, None, None] * start.state[name] for name in ("Q_ww", "M_ww")}
    blocks, _ = rates({**tables, "inputs": {"blocks": [[1.0, f] for f in shares]}}, state)
    for name in ("Q_ww", "M_ww"):
        assert blocks[name].sum(0) == pytest.approx(plain[name], abs=1e-13), name
        assert blocks[name] == pytest.approx(shares[:, None, None] * plain[name], abs=1e-13), name


@pytest.mark.parametrize(("weights", "limit"), [("free", "flow"), ("free", "online"), ("sphere", "flow")])
def test_one_eigenvalue_is_a_scale_of_the_fields(weights, limit):
    training = {"weights": weights, "limit": limit, "step": 0.3}
    block = {"student": {"unit": ERF, "units": 2}, "teacher": {"units": 2, "unit": ERF}, "training": training,
             "inputs": {"blocks": [[2.25, "rest"]]}}  # fmt: skip
    scaled = {"student": {"unit": "erf(1.5*w/sqrt(2))", "units": 2},
              "teacher": {"units": 2, "unit": "erf(1.5*w/sqrt(2))"}, "training": training}  # fmt: skip
    one, two = rates(block)[0], rates(scaled)[0]
    for name in one:
        assert one[name] == pytest.approx(two[name], abs=1e-13), name


def test_another_order_of_the_blocks_permutes_the_answer():
    tables = {"student": {"unit": ERF, "units": 2}, "teacher": {"units": 2}, "training": {"limit": "online"}}
    blocks = [[1.5, 0.2], [0.3, 0.5], [0.9, 0.3]]
    _, start = rates({**tables, "inputs": {"blocks": blocks}})
    order = [2, 0, 1]
    one, _ = rates({**tables, "inputs": {"blocks": blocks}}, dict(start.state))
    turned = {name: start.state[name][order] for name in ("Q_ww", "M_ww")}
    two, _ = rates({**tables, "inputs": {"blocks": [blocks[k] for k in order]}}, turned)
    for name in ("Q_ww", "M_ww"):
        assert two[name] == pytest.approx(one[name][order], abs=1e-14), name


# -- the loss of samples, differentiated by JAX


@pytest.mark.parametrize("name", [n if "sphere" in n else pytest.param(n, marks=pytest.mark.slow) for n in ON_BLOCKS])
def test_the_motion_is_that_of_the_loss_of_samples(name):
    from derivations.declare import exact
    from derivations.declare.claims import sample_gradient, states
    from odesim.flow.problem import compile_functions

    kind = closed_system(EXACT[name]).parameters
    start = states.start(kind, 1)
    moments, rates = sample_gradient.moments(start, 1), []
    for each in (states.quieted(start), start):
        made = exact.equations(each.parameters)
        y = made.start(each)
        rates.append(made.unpack(compile_functions(made, "numpy")["flow"](0.0, y, *made.arguments(each))))
    drift = sample_gradient.drift_of(moments, states.quieted(start))
    second = sample_gradient.second_of(moments, start) if kind().declaration.limit == "online" else {}
    for found, wanted in ((drift, rates[0]), (second, {k: rates[1][k] - rates[0][k] for k in second})):
        judged.assert_means_of(found, wanted)


# -- spectra in blocks


@pytest.mark.parametrize("alpha", [1.2, 2.0])
def test_blocks_keep_what_they_stand_for(alpha):
    d, tables = 4000, {"student": {"unit": "w"}, "teacher": {"spread": "j^(-0.3)"},
                       "inputs": {"spectrum": "j^(-alpha)", "bins": 64}, "parameters": {"alpha": alpha}}  # fmt: skip
    found = spectra.blocks(parameters_of(tables, d=d))
    j = np.arange(1, d + 1.0)
    lam, weight = j**-alpha, j**-0.6 / (j**-0.6).sum()
    assert len(found.share) <= 64 and found.dimension.sum() == d
    assert found.dimension @ found.eigenvalue == pytest.approx(lam.sum(), rel=1e-13)
    assert found.dimension @ found.eigenvalue**2 == pytest.approx((lam**2).sum(), rel=1e-13)
    assert found.content.sum() == pytest.approx(1.0, rel=1e-13)
    assert found.content @ found.eigenvalue == pytest.approx(weight @ lam, rel=1e-12)
    assert (np.diff(found.eigenvalue) < 0).all()


def test_sums_over_long_bins_are_integrals(monkeypatch):
    tables = {"student": {"unit": "w"}, "inputs": {"spectrum": "j^(-1.3)", "bins": 40}}
    direct = spectra.blocks(parameters_of(tables, d=90_000))
    monkeypatch.setattr(spectra, "WHOLE", 1000)
    spectra._blocks.cache_clear()
    integrals = spectra.blocks(parameters_of(tables, d=90_000))
    spectra._blocks.cache_clear()
    assert np.array_equal(direct.dimension, integrals.dimension)
    assert integrals.eigenvalue == pytest.approx(direct.eigenvalue, rel=1e-6)


@pytest.mark.parametrize("bins", [16, 32, 64])
def test_the_error_of_the_blocks_is_what_is_told(bins):
    d, tables = 2000, {"student": {"unit": "w"}, "inputs": {"spectrum": "j^(-1.5)", "bins": bins},
                       "start": {"norm": 1e-6, "overlap": 0.0}}  # fmt: skip
    times = np.geomspace(0.1, 1e4, 30)
    run = odesim.integrate(odesim.declare(**tables), d=d, save_at=list(times), rtol=1e-9)
    lam = np.arange(1, d + 1.0) ** -1.5
    exact = np.array([(lam * np.exp(-2 * lam * t)).sum() / d for t in times])
    worst = np.abs(run["error"] / exact - 1).max()
    assert 0.2 * run.summary["spectrum_error"] < worst < 1.05 * run.summary["spectrum_error"] + 1e-6


@pytest.mark.parametrize(("alpha", "beta", "d"), [(1.2, 0.0, 10**9), (2.0, 0.0, 10**12), (1.5, 0.25, 10**12)])
def test_the_law_of_least_squares_holds_at_any_dimension(alpha, beta, d):
    # w_j = j^-beta in place of a unit vector: E[(f - f*)^2] = Gamma(p)/alpha (2 t)^-p, p = (alpha + 2 beta - 1)/alpha.
    tables = {"student": {"unit": "w"}, "teacher": {"spread": "j^(-beta)"},
              "parameters": {"alpha": alpha, "beta": beta},
              "inputs": {"spectrum": "j^(-alpha)", "bins": 800}, "start": {"norm": 1e-9, "overlap": 0.0}}  # fmt: skip
    times = [30.0, 300.0]
    run = odesim.integrate(odesim.declare(**tables), d=d, save_at=times, rtol=1e-10)
    # The teacher is a unit vector: its coordinates are j^-beta over the root of their sum of squares.
    total = spectra._sum(0, d, lambda j: j ** (-2 * beta))
    p = (alpha + 2 * beta - 1) / alpha
    missing = (d + 0.5) ** (1 - alpha - 2 * beta) / (alpha + 2 * beta - 1)  # coordinates above d, not learned yet
    wanted = [(math.gamma(p) / alpha * (2 * t) ** -p - missing) / total for t in times]
    assert run["error"] == pytest.approx(wanted, rel=1e-5, abs=0)


def test_whole_dimensions_sum_to_d():
    rng = np.random.default_rng(0)
    for _ in range(200):
        share = rng.dirichlet(np.full(rng.integers(1, 12), 0.3))
        d = int(rng.integers(len(share), 300))
        found = spectra.whole_dimensions(share, d)
        assert found.sum() == d and found.min() >= 1


def test_the_trace_is_that_which_was_asked_for():
    tables = {"student": {"unit": "w"}, "inputs": {"spectrum": "j^(-alpha)", "trace": "2*half"},
              "parameters": {"alpha": 1.1, "half": 0.7}}  # fmt: skip
    p = parameters_of(tables, d=500)
    found = spectra.blocks(p)
    assert found.share @ found.eigenvalue == pytest.approx(1.4)
    assert spectra.variances(p).mean() == pytest.approx(1.4)


def test_a_drawn_start_is_made_of_vectors_in_every_block():
    tables = {"student": {"unit": "w", "units": 3}, "teacher": {"units": 2, "gram": 0.3, "spread": "random"},
              "inputs": {"blocks": [[2.0, "3/d"], [1.0, 0.2], [0.5, "rest"]]}, "start": {"norm": 0.7}}  # fmt: skip
    drawn = []
    for seed in range(400):
        p = parameters_of(tables, d=40)
        start = initial.enter(p, None, np.random.default_rng(seed))
        gram = parameter_class.rows(p).gram({**start.state, **start.constants})
        assert np.linalg.eigvalsh(gram).min() > -1e-12
        assert np.linalg.matrix_rank(gram[0], tol=1e-9) <= 3
        whole = gram.sum(0)
        assert np.diag(whole)[:3] == pytest.approx(0.49, abs=1e-12)
        assert whole[3:, 3:] == pytest.approx(np.array([[1.0, 0.3], [0.3, 1.0]]), abs=1e-12)
        drawn.append(np.diagonal(gram, axis1=1, axis2=2) / np.diag(whole))
    drawn = np.array(drawn)  # of a random direction the part in a block has the Beta law of its dimension
    for block, m in enumerate((3, 8, 29)):
        for row in (0, 3, 4):
            assert stats.kstest(drawn[:, block, row], stats.beta(m / 2, (40 - m) / 2).cdf).pvalue > 1e-4


def test_an_event_watches_the_overlap_of_whole_vectors():
    tables = {**PHASE, "event": [{"name": "T_half", "of": "M_ww", "threshold": 0.5}]}
    run = odesim.integrate(odesim.declare(**tables), until=40, save_points=4001)
    assert run["T_half"].shape == (1, 1)
    whole = np.asarray(run["M_ww"])[:, :, 0, 0].sum(1)
    k = int(np.argmax(whole >= 0.5))
    assert run.time[k - 1] <= run["T_half"][0, 0] <= run.time[k]


def test_a_long_run_of_a_stiff_spectrum_is_implicit_by_itself():
    tables = {"student": {"unit": "w"}, "inputs": {"spectrum": "j^(-2)"}, "start": {"norm": 0.3, "overlap": 0.0}}
    run = odesim.integrate(odesim.declare(**tables), d=10**5, until=1e5, save_points=10)
    assert "NDF" in run.statistics["solver"]
    assert run.statistics["evaluations"] < 2000  # DOP853 takes 376,000


def test_the_picture_of_clusters_has_the_mean_of_their_eigenvalues():
    from odesim.show.plot import figures

    clusters = [{"p": 0.25}, {"p": 0.75, "scale": 0.5}]
    tables = {"student": {"unit": "w"}, "inputs": {"blocks": [[1.0, 0.5], [0.1, 0.5]], "cluster": clusters}}
    run = odesim.integrate(odesim.declare(**tables), until=2, save_points=5)
    found, _, spectrum = figures(run)["blocks"].axes
    assert [line.get_label() for line in found.lines[:2]] == ["eigenvalue 0.625", "eigenvalue 0.0625"]
    assert [line.get_ydata()[0] for line in spectrum.lines] == pytest.approx([0.625, 0.0625])


def test_the_picture_has_a_curve_for_every_block():
    from derivations.declare import picture, spectrum_picture

    run = odesim.integrate(odesim.declare(**PLATEAU), low=0.25, until=300, save_points=31)
    data = run.dataset()
    drawn = picture.draw(data)
    assert set(drawn) == {"order_parameters", "blocks"}
    found, alignment, spectrum = drawn["blocks"].axes
    assert [line.get_label() for line in found.lines[:2]] == ["eigenvalue 1.6", "eigenvalue 0.4"]
    curves = spectrum_picture.parts(data)
    assert curves.shape == (31, 2) and (curves[-1] > 0.8).all() and curves[-1, 0] > curves[-1, 1]
    assert found.lines[0].get_ydata() == pytest.approx(curves[:, 0])
    assert [line.get_xdata()[-1] for line in spectrum.lines] == [500, 1000]
    lines = {name: [line for line in alignment.lines if line.get_linestyle() == style and len(line.get_xdata())]
             for name, style in (("best_correlation", "-"), ("best_cosine", "--"))}  # fmt: skip
    for name, drawn_lines in lines.items():
        assert np.array([line.get_ydata() for line in drawn_lines]).T == pytest.approx(data[name].values)
    # Cosine and correlation of unit 1 and teacher 1, by hand: the small eigenvalue counts less in the fields.
    m, q = (data[name].values[-1, :, 0, 0] for name in ("M_ww", "Q_ww"))
    weight = np.array([1.6, 0.4])
    assert data["best_cosine"].values[-1, 0] == pytest.approx(m.sum() / np.sqrt(q.sum()), rel=1e-9)
    assert data["best_correlation"].values[-1, 0] == pytest.approx(m @ weight / np.sqrt(q @ weight), rel=1e-9)
