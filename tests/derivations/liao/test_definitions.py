"""Start, recovery, removal and race, each against its explicit definition."""

import math

import numpy as np
import pytest
from scipy import stats

from derivations.contract import UsageError
from derivations.liao import initial, pruning, summary
from derivations.liao.gate import STEEPEST, gate_table
from derivations.liao.parameters import Parameters
from derivations.liao.race import capture_times, race


def test_a_random_start_has_the_law_of_rows_drawn_entry_by_entry():
    p, draws = Parameters(m=2, m_star=1, d=8), 4000
    rng = np.random.default_rng(0)
    ours = [initial.enter(p, None, rng) for _ in range(draws)]
    found = {name: np.array([one.state[name] for one in ours]) for name in ours[0].state}
    norms = {name: np.array([one.constants[name] for one in ours]) for name in ("norm_v", "norm_w")}
    assert np.abs(np.diagonal(found["I3"], axis1=1, axis2=2)).max() < 1e-12  # v_i is projected off w_i
    rows = np.random.default_rng(1).standard_normal((draws, 4, p.d)) / math.sqrt(p.d)
    v, w = rows[:, :2], rows[:, 2:]
    v = v - (v * w).sum(-1, keepdims=True) / (w * w).sum(-1, keepdims=True) * w
    plain = {"norm_v": np.linalg.norm(v, axis=-1), "norm_w": np.linalg.norm(w, axis=-1)}
    v, w = v / plain["norm_v"][..., None], w / plain["norm_w"][..., None]
    plain |= {"I1": (v[:, 0] * v[:, 1]).sum(-1), "I2": (w[:, 0] * w[:, 1]).sum(-1), "I3": (v[:, 0] * w[:, 1]).sum(-1)}
    plain |= {"gamma1": v[:, :, 0], "gamma2": w[:, :, 1]}
    mine = {**norms, **{name: found[name][:, 0, 1] for name in ("I1", "I2", "I3")}, "gamma1": found["gamma1"][..., 0]}
    mine["gamma2"] = found["gamma2"][..., 0]
    for name, values in plain.items():
        # Two samples of one law differ so much once in a thousand times; there are seven, and the seeds are fixed.
        assert stats.ks_2samp(np.ravel(mine[name]), np.ravel(values)).pvalue > 1e-3, name


def test_a_pair_is_recovered_with_its_second_half():
    inf = math.inf
    start = initial.enter(Parameters(m=3, m_star=2, d=10**4), None, np.random.default_rng(0))
    run = {
        "T_gamma2": np.array([[1.0, inf], [inf, 2.0], [5.0, inf]]),
        "T_gamma1": np.array([[4.0, inf], [inf, 1.5], [inf, 3.0]]),
    }
    told = summary.summarise(start, run)
    assert told["pair_recovery_times"] == [
        2.0,
        4.0,
    ]  # teacher 1 by expert 1, teacher 0 by expert 0; expert 2 has halves
    assert told["expert_recovery_times"] == [1.0, 2.0] and told["router_recovery_times"] == [1.5, 4.0]
    assert told["recovered"] == 2


def squared_error(matrix, kept, m):
    """E (f_S - f*)^2 of a set of experts, term by term."""
    signed = np.concatenate([[float(i in kept) for i in range(m)], -np.ones(len(matrix) - m)])
    return float(signed @ matrix @ signed)


@pytest.mark.parametrize("seed", range(8))
def test_experts_are_removed_while_the_loss_falls_and_no_longer(seed):
    rng = np.random.default_rng(seed)
    m, outputs = 5, rng.standard_normal((7, 9)) * 0.4
    matrix = outputs @ outputs.T
    found = pruning.greedy_prune(matrix, m)
    kept = list(range(m))
    for step, removed in enumerate(found.removed):
        errors = {i: squared_error(matrix, [k for k in kept if k != i], m) for i in kept}
        assert removed == min(errors, key=lambda i: errors[i])
        assert errors[removed] < found.losses[step]
        kept.remove(removed)
        assert found.losses[step + 1] == pytest.approx(errors[removed], abs=1e-12)
    assert sorted(found.kept) == kept
    assert all(squared_error(matrix, [k for k in kept if k != i], m) >= found.losses[-1] - 1e-12 for i in kept)


def test_the_race_takes_the_times_of_the_leading_order_flow():
    u = np.array([[2.0, -1.0], [0.5, 1.0], [1.5, 0.1]])
    z = np.zeros((3, 3))
    z[1, 0] = z[0, 1] = -0.3
    z[2, 1] = z[1, 2] = -0.9
    # Expert 0 takes teacher 0 at 1/9; 2 and 1 annihilate each other at 1/8.1, before 1 takes teacher 1 at 1/4.5.
    events = [(event.kind, event.first, event.second) for event in race(u, z)]
    assert events == [("capture", 0, 0), ("annihilate", 2, 1)]
    assert [event.time for event in race(u, z)] == pytest.approx([1 / 9, 1 / 8.1])
    assert capture_times(u, np.zeros((3, 3))) == pytest.approx([1 / 9, 1 / 4.5])


@pytest.mark.parametrize("gate", ["logistic", "probit"])
def test_a_gate_too_steep_for_its_series_is_refused_and_gentler_ones_are_not(gate):
    for degree in range(2, 7):
        assert gate_table(gate, float(STEEPEST), degree).series.size
    with pytest.raises(UsageError, match=f"too steep .* up to about {STEEPEST} "):
        gate_table(gate, 20.0, 3)
