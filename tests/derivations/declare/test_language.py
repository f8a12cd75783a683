"""Words of the field that are not those of the language: each has the word, the formula or the reason that helps."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError, synonyms
from derivations.declare import grammar, inputs, reading, sums

NAMES = {
    "sigmoid(w)": "logistic", "swish(w)": "silu", "Sigmoid(w)": "logistic", "heaviside(w)": "step", "ln(w)": "log",
    "sgn(w)": "sign", "normcdf(w)": "probit", "hermite(3, w)": "He",
}  # fmt: skip
FORMULAS = {
    "max(0, w)": (lambda w: np.maximum(0, w), "relu(w)"),
    "min(0, w)": (lambda w: np.minimum(0, w), "-relu(-w)"),
    "leaky_relu(w)": (lambda w: np.where(w > 0, w, 0.01 * w), "relu(w) - 0.01*relu(-w)"),
    "relu6(w)": (lambda w: np.clip(w, 0, 6), "relu(w) - relu(w - 6)"),
    "hardtanh(w)": (lambda w: np.clip(w, -1, 1), "relu(w + 1) - relu(w - 1) - 1"),
    "cosh(w)": (np.cosh, "(exp(w) + exp(-w))/2"),
    "mish(w)": (lambda w: w * np.tanh(np.log1p(np.exp(w))), "w*tanh(softplus(w))"),
}
KEYS = {
    ("training", "weight_decay"): "did you mean 'decay'?",
    ("training", "lr"): "did you mean 'step'?",
    ("training", "learning_rate"): "did you mean 'step'?",
    ("training", "batch_size"): "did you mean 'batch'?",
    ("training", "adam"): "training is SGD; the nearest are step, batch, decay and momentum in [training]",
    ("training", "schedule"): "a step that changes is an expression in t, or pairs of a time and a value",
    ("student", "hidden"): "did you mean 'units'?",
    ("student", "width"): "did you mean 'units'?",
    ("student", "activation"): "did you mean 'unit'?",
    ("student", "lr"): "it is 'step', a key of [training]",
    ("student", "bias"): "a bias is a scalar of each unit",
    ("teacher", "input_noise"): "the nearest is noise in [teacher]",
    ("", "activation"): "it is 'unit', a key of [student] and [teacher]",
    ("", "data"): "it is 'data', a key of [inputs]",
    ("", "dataset"): "inputs are x ~ N(0, I_d) without a table [inputs], which takes blocks",
    ("", "optimizer"): "training is SGD",
    ("", "qqqq"): "docs/own-model.md says what a declaration covers",
}


def tables(**changes):
    """Tables of a small model with some entries added to a table ("" is the root)."""
    made = {"student": {"unit": "erf(w)"}, "teacher": {}, "training": {}, "start": {}}
    for name, entries in changes.items():
        made.setdefault(name, {}).update(entries)
    return made


def refusal(made):
    with pytest.raises(UsageError) as refused:
        reading.declaration(made)
    return str(refused.value)


@pytest.mark.parametrize("text", NAMES)
def test_a_function_by_its_other_name_is_answered_by_its_name_here(text):
    assert f"did you mean {NAMES[text]!r}?" in refusal(tables(student={"unit": text}))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_that_is_advised_is_the_function(text):
    function, formula = FORMULAS[text]
    assert refusal(tables(student={"unit": text})).endswith(f"as {formula}" if "(0, w)" in text else f"write {formula}")
    tree = grammar.read(formula)
    for w in (-7.3, -0.4, 0.0, 0.9, 6.5):
        assert grammar.number(tree, {"w": w}) == pytest.approx(float(function(w)), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("place", KEYS)
def test_an_unknown_key_names_the_nearest_thing_there_is(place):
    table, key = place
    made = tables(**{table: {key: 0.1}}) if table else {**tables(), key: 0.1}
    assert KEYS[place] in refusal(made)


@pytest.mark.parametrize(("value", "meant"), [("mse", "squared"), ("MSE", "squared"), ("bce", "logistic")])
def test_a_loss_by_its_other_name(value, meant):
    assert refusal(tables(training={"loss": value})).endswith(f"did you mean {meant!r}?")


def test_every_synonym_leads_to_a_word_of_the_language_or_an_option():
    words = {word for known in synonyms.WORDS.values() for word in known}
    language = {*grammar.FUNCTIONS, *reading.TABLES, *reading.STUDENT, *reading.TEACHER, *reading.TRAINING}
    language |= {*reading.LOSSES, "trained", "sum", "mean", "free", "sphere", "normalised", "flow", "online", "f", "y"}
    options = {"d", "seed", "seeds", "rtol", "atol", "norm", "Q_ww", "M_ww", "step_size", "save_at", "save_points"}
    assert words - language == options
    assert set(synonyms.TABLES) <= {
        *reading.STUDENT,
        *reading.TEACHER,
        *reading.TRAINING,
        *inputs.KEYS,
        "norm",
        "overlap",
    }


def test_a_parameter_of_a_run_has_synonyms_too():
    system = odesim.declare(student={"unit": "erf(w)"}, teacher={})
    with pytest.raises(UsageError, match="did you mean 'step'"):
        odesim.integrate(system, lr=0.1)
    with pytest.raises(UsageError, match="did you mean 'decay'"):
        odesim.integrate(system, weight_decay=0.1)
    with pytest.raises(UsageError, match="did you mean 'save_at'"):
        odesim.integrate(system, times=[1, 2])


def test_x_is_the_input_and_no_slot():
    said = refusal(tables(student={"unit": "erf(w*x/sqrt(2))"}))
    assert said.startswith("an expression does not contain the input x") and "without x" in said


@pytest.mark.parametrize(
    ("name", "write"), [("κ", "kappa"), ("γ", "gamma"), ("λ", "lam"), ("σ2", "sigma2"), ("größe", "große")]
)
def test_a_name_in_other_letters_is_refused_for_that_reason(name, write):
    said = refusal({**tables(), "parameters": {name: 1.0}})
    assert said.startswith(f"{name!r} is not written in the letters a to z") and ("write" in said) == write.isascii()
    assert not write.isascii() or said.endswith(f"write {write}")


def test_a_greek_letter_in_a_unit_and_a_word_of_python_have_their_own_reasons():
    assert refusal(tables(student={"unit": "erf(κ*w)"})).endswith("write kappa")
    assert "is a word of Python" in refusal({**tables(), "parameters": {"lambda": 1.0}})


def test_a_greek_title_stays():
    assert reading.declaration({**tables(), "title": "γ = 0.5, κ → ∞: Größe"}).title == "γ = 0.5, κ → ∞: Größe"


@pytest.mark.parametrize(
    ("encoding", "said"), [("utf-16", "is text in UTF-16"), ("utf-16-be", "UTF-16"), ("latin-1", "'ö' in line 1")]
)
def test_a_file_of_another_encoding_is_named_as_such(tmp_path, encoding, said):
    path = tmp_path / "model.toml"
    raw = 'title = "größe"\n[student]\nunit = "erf(w)"\n[teacher]\n'.replace("g", "G").encode(encoding)
    path.write_bytes(b"\xfe\xff" + raw if encoding == "utf-16-be" else raw)
    with pytest.raises(UsageError, match=said) as refused:
        reading.from_file(path)
    assert "save it in UTF-8" in str(refused.value)
    with pytest.raises(UsageError, match=said):
        odesim.integrate("liao", config=path)


def test_bytes_that_are_no_text_are_not_called_latin(tmp_path):
    path = tmp_path / "model.toml"
    path.write_bytes(b"\x89PNG\x00\x01\xff")
    with pytest.raises(UsageError, match="is not a text file"):
        reading.from_file(path)


@pytest.mark.parametrize(
    "unit",
    [
        "relu(w + b)",
        "erf((w + b)/sqrt(2))",
        "w + b",
        "relu(2*w - b)*step(w - 0.5*b)",
        "scale*relu(w + scale*b) + w + scale*b",
    ],
)
def test_slots_that_enter_only_through_their_sum_are_refused_with_a_bias(unit):
    said = refusal({**tables(student={"unit": unit}), "parameters": {"scale": 1.0}})
    assert "only through their sum" in said and 'b = {default = 0.0, per = "unit"}' in said


@pytest.mark.parametrize(
    ("unit", "slots"),
    [("v*erf(w + v)", "vw"), ("relu(w + b) + b", "wb"), ("u + u*He(3, v)", "uv"), ("softmax(v)*w", "vw"),
     ("relu(w + b)*relu(w - b)", "wb"), ("wick(2, w) + v", "wv"), ("relu(w + s*b)", "wb")],
)  # fmt: skip
def test_slots_that_enter_apart_are_two(unit, slots):
    assert sums.together(grammar.read(unit), list(slots), ["s"]) is None


def test_a_bias_as_it_is_advised_is_one(tmp_path):
    made = reading.declaration(
        {
            **tables(student={"unit": "relu(w + b)"}, teacher={"unit": "relu(w)"}),
            "parameters": {"b": {"default": 0.0, "per": "unit"}},
        }
    )
    assert made.students[0].slots == ("w",) and made.students[0].scalars == ("b",)


def test_a_batch_has_one_limit_in_a_declaration_and_as_a_parameter():
    assert reading.declaration(tables(training={"batch": 10**15})).batch == 10**15
    assert "10000000000000" in refusal(tables(training={"batch": 10**15 + 1}))
