"""The table of conventions: SGD written by hand in other conventions, with its numbers, makes the same steps."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError

D, K, STEPS, BATCH = 30, 2, 40, 3
ROUNDING = 1e-11


def model(**training):
    return odesim.declare(
        student={"unit": "tanh(w)", "units": K, "output": training.pop("output", "sum")},
        teacher={"units": K, "noise": 0.2},
        training={"limit": "online", "step": 0.8, "batch": BATCH, **training},
        start={"norm": 0.7},
    )


def sgd(row, *, loss=1.0, mean=True, root=False, over=1.0, readouts=None, decayed=False):
    """A hand-written SGD of tanh units: `loss` (f - y)^2 / (2/loss), over a batch, fields w.x/sqrt(d) with `root`.

    Outputs are divided by `over`.  With `readouts` = (a, factor) the network is f = factor sum a_i tanh.
    Returns the vectors and readouts that the declaration speaks of.
    """
    rng = np.random.default_rng(5)
    teacher = np.eye(D)[:K]
    scale = np.sqrt(D) if root else 1.0
    w = row.weights["w"] * 0.7 * np.eye(D)[1 : K + 1]
    teacher = scale * teacher
    a = np.ones(K) if readouts is None else row.weights["a"] * readouts[0] * np.ones(K)
    path = []
    for _ in range(STEPS):
        x, xi = rng.normal(size=(BATCH, D)), rng.normal(size=BATCH)
        z, t = (np.tanh(x @ u.T / scale) for u in (w, teacher))
        inner = 1.0 if readouts is None else readouts[1]
        f = inner * (z @ a) / over
        y = t.sum(1) / over + row.noise * xi
        slope = loss * (f - y) / (BATCH if mean else 1)
        by_w = inner * (slope[:, None] * a * (1 - z**2)).T @ x / scale / over
        by_a = inner * (slope[:, None] * z).sum(0)
        w = w - row.rates["w"] * (by_w + (row.decay * w if decayed else 0.0))
        if readouts is not None:
            a = a - row.rates["a"] * by_a
        path.append(np.concatenate([(w / row.weights["w"]).ravel(), a / row.weights.get("a", 1.0)]))
    return np.array(path)


CODES = {
    "loss_without_half": {"loss": 2.0},
    "sum_over_batch": {"mean": False},
    "fields_over_sqrt_d": {"root": True},
    "outputs_over_units": {"over": float(K)},
    "outputs_over_sqrt_units": {"over": np.sqrt(K)},
}


@pytest.mark.parametrize("name", CODES)
def test_a_code_with_the_numbers_of_its_row_makes_the_declared_steps(name):
    table = odesim.conventions(model(), d=D)
    expected = sgd(table["declared"])
    assert np.abs(expected[-1] - expected[0]).max() > 0.05  # something is learned
    assert np.abs(sgd(table[name], **CODES[name]) - expected).max() < ROUNDING


@pytest.mark.parametrize("name", ["loss_without_half", "fields_over_sqrt_d"])
def test_a_code_with_the_declared_numbers_does_not(name):
    table = odesim.conventions(model(), d=D)
    declared = table["declared"]
    assert np.abs(sgd(declared, **CODES[name]) - sgd(declared)).max() > 0.01


@pytest.mark.parametrize("name", ["sum_over_batch", "fields_over_sqrt_d", "loss_without_half"])
def test_weight_decay_is_translated_with_the_rate(name):
    table = odesim.conventions(model(decay=0.3), d=D)
    found = sgd(table[name], decayed=True, **CODES[name])
    assert np.abs(found - sgd(table["declared"], decayed=True)).max() < ROUNDING
    assert table[name].factor is None  # it is then no constant factor of time


@pytest.mark.parametrize(("name", "factor"), [("readouts_over_units", 1 / K), ("readouts_over_sqrt_units", K**-0.5)])
def test_readouts_of_a_network_over_units_start_larger_and_learn_faster(name, factor):
    table = odesim.conventions(model(output="trained", trained=["w", "a"]), d=D)
    expected = sgd(table["declared"], readouts=(0.6, 1.0))
    assert np.abs(sgd(table[name], readouts=(0.6, factor)) - expected).max() < ROUNDING


def test_the_speed_of_an_untranslated_code_is_that_of_its_learning_rate():
    """Halved rates and a doubled loss are the same steps, so that the declared rate makes steps of twice the size."""
    table = odesim.conventions(model(), d=D)
    for row in table.rows:
        if row.kind == "rate" and row.name in CODES:
            scale = row.weights["w"] ** 2
            if row.name.startswith("outputs"):
                assert row.factor is None  # with label noise it is another model
            else:
                assert abs(row.factor - table["declared"].rates["w"] / row.rates["w"]) < 1e-12 * max(1, scale)


def test_the_numbers_of_a_run_are_its_steps_and_samples():
    table = odesim.conventions("saad_solla_1995_step", d=50, batch=4, until=3, step=0.5)
    assert table.run["steps"] == 150 and table.run["samples"] == 600
    assert table["declared"].rates == {"w": 0.01} and table["declared"].tick == 0.02
    assert table["time_times_rate"].factor == 2 and table["time_in_samples"].factor == 0.25
    assert table["rate_not_over_d"].factor == 50
    assert odesim.conventions("softmax_mixture", step=0.01)["time_in_steps"].factor == 0.01


def test_a_mean_field_output_has_the_number_of_units_as_a_factor():
    mean = odesim.declare(
        student={"unit": "erf(w)", "units": 5, "output": "mean"}, teacher={"units": 5, "output": "mean"}
    )
    table = odesim.conventions(mean)
    assert table["rate_times_units"].factor == 5 and abs(table["outputs_sums"].factor - 25) < 1e-12


def test_momentum_with_dampening_is_slower_by_what_it_forgets():
    table = odesim.conventions(model(momentum=0.75), d=D)
    row = table["damped_momentum"]
    assert row.factor == 0.25 and abs(row.rates["w"] / table["declared"].rates["w"] - 4) < 1e-12


def test_what_has_no_table_is_refused():
    for name, words in (("liao", "is not a declared model"), ("dandi_2024", "giant steps")):
        with pytest.raises(UsageError, match=words):
            odesim.conventions(name)


@pytest.mark.parametrize(
    ("rule", "scales"),
    [("dl*df", True), ("0.5*dl", True), ("-y", False), ("clip(dl, 1)*df", False), ("dl^2", False), ("grad - y", False)],
)
def test_a_factor_of_the_loss_is_one_of_the_rate_only_where_the_rule_scales_with_it(rule, scales):
    system = odesim.declare(
        student={"unit": "w", "units": K},
        teacher={"units": K},
        training={"limit": "online", "step": 0.8, "batch": BATCH, "rule": rule},
    )
    found = {row["name"]: row for row in odesim.conventions(system).summary()["conventions"]}
    assert ("loss_without_half" in found) == scales
    assert not any(name.startswith("outputs_") for name in found) and "time_in_steps" in found
    if scales:
        # c = dl is multiplied by 2 with the loss, so that half the rate makes the same step.
        assert found["loss_without_half"]["rates"]["w"] == pytest.approx(found["declared"]["rates"]["w"] / 2)


def test_the_table_is_printed_with_the_names_of_its_rows():
    found = odesim.conventions(model(), d=D)
    first, header, *lines = repr(found).splitlines()
    assert "end time" in first and header.split()[:2] == ["name", "convention"]
    assert [line.split()[0] for line in lines] == [row.name for row in found.rows]
    assert found[lines[1].split()[0]] is found.rows[1]
    assert found._repr_html_().count("<tr>") == len(found.rows) + 1
