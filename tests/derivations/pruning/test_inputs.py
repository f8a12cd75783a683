"""Every input enumerated, what is measured on them, the hinge over them, and the list of events of the flow."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import odesim
from derivations.contract import UsageError
from derivations.pruning import inputs
from derivations.pruning.parameters import Parameters

SIZES = {"iid": {"n": 5}, "distinct": {"n": 4}, "multi_copy": {"n": 9, "copies": 2}}


def every_tuple(data, N, n, copies, pi):
    """All ordered draws of irrelevant patterns with their chances, for both classes: (task, patterns, chance)."""
    drawn = copies if data == "multi_copy" else n - 1
    tuples = (
        itertools.permutations(range(N), drawn) if data == "distinct" else itertools.product(range(N), repeat=drawn)
    )
    for q in tuples:
        chance = 1 / math.perm(N, drawn) if data == "distinct" else float(np.prod(pi[list(q)]))
        for task in (0, 1):
            yield task, q, chance / 2


def output(h, u, a, tokens, l):
    """(f, gates of the token at place 0) by sorting."""
    f, gates = 0.0, []
    for s in range(len(a)):
        kept = np.argsort(-h[s, tokens], kind="stable")[:l]
        gate = np.exp(h[s, tokens[kept]]) / np.exp(h[s, tokens[kept]]).sum()
        f += a[s] * (gate * np.maximum(u[s][:, tokens[kept]], 0).sum(axis=0)).sum()
        gates.append(gate[kept == 0].sum())
    return f, np.array(gates)


def measured(data, h, u, a, pi, n, l, copies=1):
    """Error, least margin, p1, p2, selection and gate by class, from every tuple."""
    error, margin, weight = 0.0, np.inf, np.zeros(2)
    seen, selected, mean = (np.zeros((2, len(a))) for _ in range(3))
    for task, q, chance in every_tuple(data, h.shape[1] - 2, n, copies, pi):
        repeat = l if data == "multi_copy" else 1
        f, gate = output(h, u, a, np.array([task, *np.repeat(np.array(q) + 2, repeat)]), l)
        signed = f if task == 0 else -f
        error += chance * (signed <= 0)
        margin = min(margin, signed)
        weight[task] += chance
        seen[task] += chance * (gate >= (1 - 1e-12) / l)
        selected[task] += chance * (gate > 0)
        mean[task] += chance * gate
    found = [part / weight[:, None] for part in (seen, selected, mean)]
    return error, margin, *found


def instance(tools, seed=0, k=3, d=7):
    """Random experts, and a law of the patterns that is not uniform."""
    arrays = tools.random_arrays(seed, d=d, k=k, m=2)
    pi = np.arange(1.0, d - 1)
    return {**arrays, "pi": pi / pi.sum()}


@pytest.mark.parametrize("data", ["iid", "distinct", "multi_copy"])
def test_error_shares_and_gates_over_all_inputs_are_exact(tools, data):
    arrays = instance(tools)
    if data == "distinct":
        del arrays["pi"]
    request = {"data": data, "l": 3, "eta_e": 0.1, "eta_r": 0.1, "n_test": "all", **SIZES[data]}
    run = odesim.integrate("pruning", initial=arrays, until=3.0, save_points=4, **request)
    pi = arrays.get("pi", np.full(5, 0.2))
    for k in (0, 3):
        error, margin, seen, selected, gate = measured(
            data, run["h"][k], run["u"][k], arrays["a"], pi, request["n"], 3, request.get("copies", 1)
        )
        assert run["f_error"][k] == pytest.approx(error, abs=1e-13)
        assert run["margin"][k] == pytest.approx(margin, abs=1e-13)
        for name, values in (("p", seen), ("selected", selected), ("gate", gate)):
            for task in (0, 1):
                np.testing.assert_allclose(run[f"{name}{task + 1}"][k], values[task], atol=1e-13)
    assert 0 < run["f_error"][0] < 1


def test_selection_has_the_binomial_law_of_independent_tokens(tools):
    # Specification, 3.6: P1 = P(Bin(n - 1, v) <= l - 1), v the chance of the patterns above the task token.
    arrays = instance(tools, seed=3)
    run = odesim.integrate("pruning", initial=arrays, data="iid", n=6, l=3, n_test="all", until=1.0, save_points=2)
    v = (arrays["pi"] * (arrays["w"][:, 2:] > arrays["w"][:, :1])).sum(axis=1)
    np.testing.assert_allclose(run["selected1"][0], binom.cdf(2, 5, v), atol=1e-13)
    drawn = odesim.integrate("pruning", initial=arrays, data="iid", n=6, l=3, n_test=4000, until=1.0, save_points=2)
    exact = binom.cdf(2, 5, v)
    error = np.sqrt(exact * (1 - exact) / 2000) + 1e-12
    assert (np.abs(drawn["selected1"][0] - exact) < 4 * error).all()


def test_sgd_measures_the_same_on_the_same_inputs(tools):
    arrays = instance(tools)
    request = {"data": "iid", "n": 5, "l": 3, "n_test": "all", "initial": arrays, "save_points": 2}
    flow = odesim.integrate("pruning", eta_e=0.1, until=1.0, **request)
    sgd = odesim.simulate("pruning", method="compressed", step_size=0.1, batch=4, until=1.0, **request)
    for name in ("p1", "p2", "f_error", "margin", "selected1", "selected2", "gate1", "gate2"):
        np.testing.assert_allclose(sgd[name][0, 0], flow[name][0], atol=1e-13)


def test_too_many_inputs_are_refused_with_their_number():
    with pytest.raises(UsageError, match=r"would enumerate .* inputs \(99 irrelevant tokens of 98 patterns\)"):
        odesim.integrate("pruning", data="iid", n_test="all", until=1.0)
    rows, labels, chance = inputs.every_input(
        Parameters(d=12, n=30, l=3, data="multi_copy", copies=3), np.full(10, 0.1)
    )
    assert rows.shape == (2 * math.comb(12, 3), 10) and chance.sum() == pytest.approx(1.0, abs=1e-14)
    assert (labels == np.where(rows[:, 0] == 0, 1, -1)).all()


@pytest.mark.parametrize("data", ["iid", "distinct", "multi_copy"])
def test_one_step_under_the_hinge_is_that_of_every_unmasked_input(tools, data):
    arrays = instance(tools, seed=5, k=4)
    if data == "distinct":
        del arrays["pi"]
    arrays["W"] = 3 * arrays["W"]  # some inputs have y f >= 1
    request = {"data": data, "l": 3, "eta_e": 0.05, "eta_r": 0.02, "loss": "hinge", "n_test": "all", **SIZES[data]}
    run = odesim.integrate("pruning", initial=arrays, until=1.0, save_points=2, **request)
    h, u, a = arrays["w"], arrays["W"], arrays["a"]
    pi, dh, du, masked = arrays.get("pi", np.full(5, 0.2)), np.zeros_like(h), np.zeros_like(u), 0
    for task, q, chance in every_tuple(data, 5, request["n"], request.get("copies", 1), pi):
        tokens = np.array([task, *np.repeat(np.array(q) + 2, 3 if data == "multi_copy" else 1)])
        y = 1.0 if task == 0 else -1.0
        if y * output(h, u, a, tokens, 3)[0] >= 1:
            masked += 1
            continue
        for s in range(4):
            kept = tokens[np.argsort(-h[s, tokens], kind="stable")[:3]]
            gate = np.exp(h[s, kept]) / np.exp(h[s, kept]).sum()
            sigma = np.maximum(u[s], 0).sum(axis=0)[kept]
            np.add.at(dh[s], kept, chance * y * a[s] * gate * (sigma - (gate * sigma).sum()))
            for r in range(2):
                np.add.at(du[s, r], kept, chance * y * a[s] * gate * (u[s, r, kept] >= 0))
    assert masked > 0
    np.testing.assert_allclose(run["h"][1], h + 0.02 * dh, atol=1e-14)
    np.testing.assert_allclose(run["u"][1], u + 0.05 * du, atol=1e-14)


def test_the_hinge_over_a_table_of_all_inputs_is_that_of_the_single_pattern(tools):
    arrays = tools.random_arrays(2, d=6, k=4, m=2, size=2.0)
    rows = np.array([[task, *[q] * 5] for task in (0, 1) for q in range(2, 6)])
    table = {**arrays, "tokens": rows, "y": np.where(rows[:, 0] == 0, 1.0, -1.0)}
    shared = {"l": 3, "eta_e": 0.05, "eta_r": 0.05, "loss": "hinge", "until": 40.0, "save_points": 5}
    single = odesim.integrate("pruning", initial=arrays, n=6, **shared)
    listed = odesim.integrate("pruning", initial=table, data="empirical", **shared)
    for name in ("h", "u", "loss", "f_error"):
        np.testing.assert_allclose(listed[name], single[name], atol=1e-12)
    linear = odesim.integrate("pruning", initial=arrays, n=6, **{**shared, "loss": "linear"})
    assert np.abs(linear["h"][-1] - single["h"][-1]).max() > 1e-3


def test_the_hinge_over_fewer_inputs_than_patterns_is_their_mean(tools):
    # Their chances lie in arrays as long as the patterns, whose rest was added as it was found in memory.
    arrays = tools.random_arrays(2, d=40, k=4, m=2, size=1.0)
    rows, y = np.array([[0, 2, 3, 4, 5], [1, 6, 7, 8, 9], [0, 10, 11, 12, 13]]), np.array([1.0, -1.0, 1.0])
    table = {**arrays, "tokens": rows, "y": y}
    run = odesim.integrate("pruning", initial=table, data="empirical", l=3, loss="hinge", until=1.0, save_points=2)
    f = np.array([output(arrays["w"], arrays["W"], arrays["a"], tokens, 3)[0] for tokens in rows])
    assert run["loss"][0] == pytest.approx(np.maximum(1 - y * f, 0.0).mean(), abs=1e-14)


def test_the_flow_says_why_it_is_for_one_pattern():
    with pytest.raises(UsageError, match="the rule at such a tie is not known"):
        odesim.integrate("pruning", data="iid", tier="flow", until=1.0)
    with pytest.raises(UsageError, match="it is available in tier recursion"):
        odesim.integrate("pruning", loss="hinge", tier="flow", until=1.0)


def test_every_change_of_order_is_an_event(tools):
    found = set()
    for seed in range(12):
        run = odesim.integrate(
            "pruning", initial=tools.random_arrays(seed, d=6, k=2), tier="flow", n=8, l=3, eta_e=0.02, eta_r=0.5,
            until=400.0, save_points=4001,
        )  # fmt: skip
        gap = run["h"][:, :, :2, None] - run["h"][:, :, None, 2:]
        side = np.where(np.abs(gap) < 1e-9, 0, np.sign(gap)).astype(int)
        events = {
            (int(s), int(task), int(q), float(t), int(kind))
            for t, s, task, q, kind in zip(
                *(run[f"event_{name}"] for name in ("time", "expert", "task", "pattern", "kind")), strict=True
            )
        }
        assert int(run["events_lost"]) == 0 and (np.diff(run["event_time"]) >= 0).all()
        for k, s, task, q in np.argwhere(side[1:] != side[:-1]):
            after = {1: (1,), -1: (0,), 0: (0, 1, 2)}[int(side[k + 1, s, task, q])]  # it may also rest at a tie
            inside = [
                e for e in events if e[:3] == (s, task, q) and run.time[k] - 1e-6 <= e[3] <= run.time[k + 1] + 1e-6
            ]
            assert inside, (seed, k, s, task, q)
            assert max(inside, key=lambda e: e[3])[4] in after
        for s, task, q, t, kind in events:  # and an event is at a tie
            k = int(np.searchsorted(run.time, t))
            assert np.abs(gap[max(k - 1, 0) : k + 1, s, task, q]).min() < 0.05
            later = [e[3] for e in events if e[:3] == (s, task, q) and e[3] > t]
            end = int(np.searchsorted(run.time, min(later, default=np.inf)))
            if kind == 2:  # both tokens move together until the tie is released
                assert np.abs(gap[k:end, s, task, q]).max(initial=0.0) < 1e-7
            found.add(kind)
    assert found == {0, 1, 2}


def test_events_are_stored_and_read_back(tools, tmp_path):
    from odesim import store
    from odesim.flow import solve
    from odesim.request.case import Case

    for seed in (0, 1):
        case = Case.build("pruning", {"tier": "flow", "n": 8, "l": 3, "eta_e": 0.02, "eta_r": 0.5 * seed},
                          initial=tools.random_arrays(seed, d=6, k=2), until=50.0, save_points=5)  # fmt: skip

        run = solve.solve(case)
        target = store.prepare(case, str(tmp_path / str(seed)))
        store.save(run, case, target.folder, {}, None)
        again = store.load(tmp_path / str(seed))
        assert np.array_equal(again["event_time"], run["event_time"])
