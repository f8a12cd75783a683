"""A file that states no model, or none that has a mean, is answered by one sentence; nothing is run or left behind."""

import json
import os
import time

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from odesim.cli import _run as command


@pytest.fixture
def answer(tmp_path, monkeypatch, capsys):
    """The message of `odesim integrate` about a file; asserts exit code 2, one sentence, no folder, little time."""
    from odesim.flow import problem

    def run(*_):
        raise AssertionError("it ran")

    monkeypatch.setattr(problem, "compile_functions", run)
    monkeypatch.chdir(tmp_path)

    def ask(content, *words, name="m.toml"):
        if content is not None:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        before, started = sorted(tmp_path.iterdir()), time.perf_counter()
        code = command(["integrate", "--system", str(tmp_path / name), "--until", "1", "--out", "run", *words])
        said = capsys.readouterr().err.strip()
        assert (code, said.count("\n")) == (2, 0), said
        assert said.startswith("odesim: ") and "Traceback" not in said and len(said) < 900
        assert sorted(tmp_path.iterdir()) == before
        assert time.perf_counter() - started < 10  # the first derivation of a process imports SymPy
        return said

    return ask


def stated(unit="erf(w)", teacher="", training="", start="", rest=""):
    """A declaration: the unit stands in line 2, teacher 4, training 6, start 8, and the rest from 9 on."""
    lines = ["[student]", f"unit = {json.dumps(unit)}", "[teacher]", teacher, "[training]", training, "[start]", start]
    return "\n".join([*lines, rest, ""])


EXPRESSIONS = {
    "exp(w^2)": "exp of a nonl", "exp(w*v)": "exp of a nonl",
    "1/w": "can be 0", "log(w)": "log of a field is not defined", "sqrt(w)": "sqrt of a field is not defined",
    "w^0.5": "number of at least 0", "w^(-1)": "number of at least 0", "exp(abs(w)^3)": "exp of a nonl",
    "softplus(exp(w^2))": "exp of a nonl", "exp(exp(w))": "exp of a nonl", "exp(tanh(w)*w^2)": "exp of a nonl",
    "exp(relu(w)^2)": "exp of a nonl", "He(2, exp(w^2))": "exp of a nonl", "cos(log(w))": "log of a field",
    "w/(w-w)": "can be 0", "w/0": "can be 0", "log(0)*w": "cannot be computed", "sqrt(1-2)*w": "cannot be computed",
    "0^(-1)*w": "cannot be computed", "w*exp(1000)": "cannot be computed",
    "((((w+1)^12+1)^12+1)^12)": "degree 12 at most", "(((w+1)^12)+1)^2": "degree 12 at most, '(((w+1)^12)+1)^2' has 24",
    "exp(w)^12*exp(w)": "degree 12 at most", "__import__('os')": "unknown function '__import__'",
    "eval(1)": "unknown function 'eval'", "w.__class__": "column 2", "lambda x: x": "column 8",
    "He(99999, w)": "whole number k from 0 to 12", "He(3.5, w)": "whole number k from 0 to 12",
    "10^10^10*w": "between -12 and 12", "w^(w)": "an exponent must be a number", "2^w": "an exponent must be a number",
    "1e999*w": "a number between", "1e-320*w": "a number between", 
    "wick(3, w+1)": "one weight vector", "é*w": "column 1", "ω": "column 1", "w²": "column 2", "w" * 500: "400",
    "a" * 390: "a name of at most 40", "b" * 30: "short name", "(" * 100 + "w" + ")" * 100: "nested brackets",
    "-" * 300 + "w": "nested brackets", "": "unit is an expression", "w+": "found the end", "w)": "found ')'",
    "3": "no weight vector", "erf()": "column 5", "erf(w, w)": "takes 1 argument", "relo(w)": "did you mean 'relu'",
    "f*w": "'f' cannot be", "nan*w": "'nan' cannot be", "v*w*u*t*s": "at most 4 weight vectors", "w\0": "column 2",
    "softmax(softmax(v))*w": "must not contain another one", "w = 1": "found '='",
    "2w^2": "a product is written with *", "np.tanh(w)": "without a module", "erf(w, v)": "1 argument,",
    "w[0]": "found '['", "w;w": "found ';'",
}  # fmt: skip


@pytest.mark.parametrize(("unit", "words"), EXPRESSIONS.items(), ids=[repr(e)[:30] for e in EXPRESSIONS])
def test_an_expression_without_a_mean_or_a_meaning_is_refused_in_its_line(answer, unit, words):
    said = answer(stated(unit))
    assert ", line 2: " in said and words in said, said


GOOD = ("exp(w/2)", "exp(-w)", "exp(-w^2)", "exp(-abs(w))*w", "softplus(exp(w))", "1/(1 + w^2)", "log(1 + exp(w))")


@pytest.mark.parametrize("unit", [*GOOD, "sqrt(1 + He(3, w)^2)", "tanh(w)^3", "w^12", "softmax(v^2)*w", "w^(4/2)"])
def test_what_has_a_mean_is_taken(unit):
    assert odesim.declare(student={"unit": unit}).check is not None


@pytest.mark.parametrize("unit", GOOD)
def test_a_nested_function_has_no_closed_form_and_says_so(unit):
    from derivations.declare.kernels import derive

    declared = odesim.declare(student={"unit": unit}).parameters.declaration
    assert isinstance(derive(declared, ()).closed, str)


LINES = [
    ("not a trainable quantity; known are w", {"training": 'trained = ["v"]'}, 6),
    ("known are w", {"start": "norm = {z = 1}"}, None),
    ("not a trainable quantity", {"training": 'trained = ["a"]'}, 6),
    ("not symmetric", {"teacher": "units = 2\ngram = [[1.0, 0.5], [0.4, 1.0]]"}, 5),
    ("least eigenvalue is -1", {"teacher": "units = 2\ngram = [[1.0, 2.0], [2.0, 1.0]]"}, 5),
    ("must be 2 x 2", {"teacher": "units = 2\ngram = [[1.0]]"}, 5),
    ("zero on its diagonal", {"teacher": "gram = [[0.0]]"}, 4),
    ("take at least -0.25", {"teacher": "gram = -0.9\nunits = 5"}, 4),
    ("finite number", {"teacher": "gram = [[nan]]"}, 4), ("finite number", {"teacher": "gram = [[inf]]"}, 4),
    ("a matrix such as", {"teacher": "gram = [[1, 0], [1]]"}, 4),
    ("was given", {"teacher": 'gram = "/dev/zero"'}, 4), ("was given", {"teacher": 'gram = "nowhere.npy"'}, 4),
    ("unknown name 'x'", {"teacher": 'noise = "x"'}, 4), ("finite number", {"teacher": "noise = true"}, 4),
    ("did you mean 'noise'?", {"teacher": "nosie = 1"}, 4), ("whole number", {"teacher": "units = -1"}, 4),
    ("whole number", {"teacher": "units = 1e9"}, 4), ("whole number", {"teacher": "units = true"}, 4),
    ("cannot be computed", {"teacher": 'output = "1/(j-1)"'}, 4), ("'mean'", {"teacher": 'output = "meam"'}, 4),
    ("not trained", {"teacher": 'output = "trained"'}, 4), ("is an expression", {"teacher": "unit = 3"}, 4),
    ("did you mean 'squared'?", {"training": 'loss = "sqared"'}, 6), ("not 3", {"training": "loss = 3"}, 6),
    ("exp of a nonl", {"unit": "w", "training": 'loss = "exp(f^2)"'}, 6),
    ("exp of a nonl", {"unit": "w", "training": 'loss = "exp(-f*y)"'}, 6),
    ("can be 0", {"training": 'loss = "1/f"'}, 6), ("log of a field", {"training": 'loss = "log(f)"'}, 6),
    ("does not depend on f", {"training": 'loss = "y^2"'}, 6),
    ("did you mean 'sphere'?", {"training": 'weights = "spehre"'}, 6),
    ("one of flow, online", {"training": "limit = {a = 1}"}, 6), ("above 0", {"training": "step = 0"}, 6),
    ("finite number", {"training": "step = nan"}, 6), ("finite number", {"training": "step = 1e400"}, 6),
    ("above 0", {"start": "norm = 0"}, 8), ("at most 1,", {"start": "overlap = 2"}, 8),
    ("start lacks M_ww", {"start": "Q_ww = [[1.0]]"}, 8), ("unknown key 'Q_zz'", {"start": "Q_zz = [[1.0]]"}, 8),
    ("does not belong to any vectors", {"start": "Q_ww = [[1.0]]\nM_ww = [[2.0]]"}, 8),
    ("is zero", {"start": "Q_ww = [[0.0]]\nM_ww = [[0.0]]"}, 8),
    ("no output is 'trained'", {"start": "a = 1.0"}, 8),
    ("decades is true or false, but 'yes' was given", {"training": "decades = 'yes'"}, 6),
    ("name of something else", {"rest": "[parameters]\nd = 1"}, 10),
    ("name of something else", {"rest": "[parameters]\ncounts = 1"}, 10),
    ("default in [parameters]", {"unit": "relu(w + b)", "teacher": 'unit = "relu(w)"', "start": "b = 0.3",
                                 "rest": "[parameters]\nb = {default = 0, per = 'unit'}"}, 8),
    ("give [teacher] a unit of its own", {"unit": "relu(w + b)",
                                          "rest": "[parameters]\nb = {default = 0, per = 'unit'}"}, 3),
    ("is not a name", {"rest": "[parameters]\n'x y' = 1"}, 10), ("no weight", {"rest": "[parameters]\nerff = 1",
                                                                               "unit": "erff"}, 2),
    ("at least 2", {"rest": "[parameters]\nbeta = {default = 1, minimum = 2}"}, 10),
    ("is already the name", {"rest": "[parameters]\nM_ww = 1"}, 10),
    ("did you mean 'M_ww'?", {"rest": "[[event]]\nof = 'M_w'"}, 10),
    ("needs of", {"rest": "[[event]]\nof = 3"}, 10), ("write [[event]]", {"rest": "[event]\nof = 'M_ww'"}, 9),
    ("'T' of an event already exists", {"rest": "[[event]]\nof='M_ww'\nname='T'\n[[event]]\nof='M_ww'\nname='T'"}, 14),
    ("did you mean 'threshold'?", {"rest": "[[event]]\nof = 'M_ww'\ntreshold = 1"}, 11),
    ("unknown key 'studnet'", {"rest": "[studnet]\nunit = 'w'"}, 9),
    ("a preset needs a name", {"rest": "[[preset]]\nparameters = {d = 2}"}, 9),
    ("a preset needs parameters", {"rest": "[[preset]]\nname = 'a'"}, 9),
    ("takes a number or a word", {"rest": "[[preset]]\nname = 'a'\nparameters = {d = true}"}, 11),
    ("did you mean 'parameters'?", {"rest": "[[preset]]\nname = 'a'\nparameter = {d = 2}"}, 11),
    ("two presets are called a", {"rest": "[[preset]]\nname='a'\nparameters={d=2}\n[[preset]]\nname='a'\n"
                                  "parameters={d=3}"}, 13),
    ("did you mean 'overlap'?", {"rest": "[[preset]]\nname = 'a'\nparameters = {overlp = 0.1}"}, 11),
]  # fmt: skip


@pytest.mark.parametrize(("words", "parts", "line"), LINES, ids=[str(parts)[:50] for _, parts, _ in LINES])
def test_a_wrong_entry_is_named_with_its_line(answer, words, parts, line):
    said = answer(stated(**parts))
    assert words in said and (line is None or f", line {line}: " in said), said


CLAIM = {"measure": "'first time max(abs(M_ww)) >= 0.5'", "law": "{power = 0.5}", "over": "{d = [1e3, 1e4, 1e5, 1e6]}"}
CLAIMS = [
    ({"measure": "'final M_xx'"}, "what a run holds is"), ({"measure": "'sometimes M_ww'"}, "cannot be read"),
    ({"measure": "3"}, "is a text"), ({"law": "{powr = 1}"}, "law is a table"), ({"law": "3"}, "law is a table"),
    ({"law": "{power = 'x'}"}, "finite number"), ({"law": "{power = 1, rivals = 3}"}, "list of exponents"),
    ({"over": "3"}, "over is a table"), ({"over": "{dd = [1, 2]}"}, "not a parameter of the model"),
    ({"over": "{d = [true]}"}, "numbers or words"), ({"over": "{seeds = 0}"}, "whole number"),
    ({"until": "'x'"}, "finite number"), ({"expected": "'confrmed'"}, "did you mean 'confirmed'?"),
    ({"engine": "'flwo'"}, "did you mean 'flow'?"), ({"measur": "1"}, "did you mean 'measure'?"),
    ({"over": "{}"}, "several values"), ({"measure": "'final M_ww >= 1e'"}, "cannot be read"),
    ({"parameters": "{z = 1}"}, "not a parameter"), ({"id": "'a/b'"}, "letters, digits"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), CLAIMS, ids=[str(c)[:40] for c, _ in CLAIMS])
def test_a_claim_that_cannot_be_read_is_refused_before_anything_runs(answer, changes, words):
    entries = "\n".join(f"{key} = {value}" for key, value in {**CLAIM, **changes}.items())
    said = answer(stated(rest=f"[[claim]]\n{entries}"))
    assert ", line " in said and words in said, said


def test_two_claims_of_one_name_are_refused(answer):
    entry = "[[claim]]\nid = 'x'\nmeasure = 'final loss'\nlaw = {equals = 1}\n"
    said = answer(stated(rest=entry * 2))
    assert ", line 14: claim x: another claim has this name" in said


FILES = {
    "empty": ("", "needs a table [student]"), "binary": (bytes(range(256)), "not a text file"),
    "10 MB": (b"# x\n" * 2_500_000, "has 10000000 bytes"), "latin-1": ('title = "é"'.encode("latin-1"), "Latin-1"),
    "brackets": ("x = " + "[" * 50_000, "too deeply"), "dots": ("a" + ".a" * 20_000 + " = 1", "line 1: a name of"),
    "no quotes": ("[student]\nunit = relu(w)", 'write an expression or a word in quotes, unit = "relu(w)"'),
    "no TOML": ("student", "not valid TOML"), "number": ("student = 3", "line 1: a model needs"),
    "digits": ("[student]\nunits = " + "1" * 5000, "not valid TOML"), 
    "path": ("name = '../x'\n[student]\nunit = 'w'", "line 1: name"),
    "lost noise": ("[student]\nunit='w'\n[[teacher]]\nname='a'\nunit='w'\nnoise=3", "line 6: unknown key 'noise'"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_declaration_is_refused(answer, name):
    content, words = FILES[name]
    assert words in answer(content)


def test_what_is_no_file_is_refused_and_not_read_for_ever(answer, tmp_path):
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.toml")
    for name in ("folder.toml", "loop.toml", "zero.toml", "pipe.toml", "missing.toml", "a" * 300 + ".toml", "\0.toml"):
        said = answer(None, name=name)
        assert "cannot read" in said or "no file" in said or "not the name of a file" in said, said


OPTIONS = [
    ("norm=0", "above 0"), ("norm=-1", "above 0"), ("norm=1e-300", "at least"), ("norm=1e300", "at most"),
    ("units=0", "at least 1"), ("units=1e9", "at most"), ("units=1e5", "vectors"), ("d=2", "d must be at least"),
    ("step=nan", "finite number"), ("step=0", "above 0"), ("overlap=2", "at most 1"), ("tier=foo", "one of auto"),
    ("tier=mixed", "use -p tier=exact"), ("tier=leading", "use -p tier="), ("gram=-0.9", "take at least -0.25"),
    ("gram=2", "at most 1"), ("noise=-1", "at least 0"), ("noise=1e300", "at most"), ("points=1000", "power of two"),
    ("points=1", "at least 64"), ("points=1e9", "at most"), ("nois=1", "did you mean 'noise'?"), ("unit=3", "'units'"),
    ("d=1e400", "below 1e300"), ("decay=-1", "at least 0"), ("sample_seed=-1", "at least 0"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "words"), OPTIONS)
def test_a_parameter_out_of_its_domain_is_refused(answer, option, words):
    said = answer(stated(teacher="units = 5"), "-p", option)
    assert words in said, said


@pytest.mark.parametrize(
    ("unit", "training", "tier", "words"),
    [
        ("tanh(w)", "", "exact", "use -p tier=sampled"),
        ("softmax(v)*w", "", "exact", "use -p tier=sampled"),
        ("softmax(v)*w", 'weights = "sphere"', "leading", "use -p tier=auto"),
        ("step(w)", "", "exact", "use -p tier=sampled"),
        ("relu(w)", 'limit = "online"', "exact", "use -p tier=mixed"),
        ("tanh(w)", 'loss = "log(1 + (f - y)^2)"', "exact", "use -p tier=sampled"),
        ("tanh(w)", 'loss = "hinge"', "mixed", "use -p tier=sampled"),
    ],
)
def test_a_tier_that_does_not_exist_names_the_reason_and_the_one_to_take(answer, unit, training, tier, words):
    assert words in answer(stated(unit, training=training), "-p", f"tier={tier}")


def test_numbers_that_break_an_expression_are_refused_where_they_are_given(answer):
    for unit, option, words in (
        ("w^kk", "kk=0.5", "whole number"), ("w^kk", "kk=13", "between -12 and 12"), ("w/kk", "kk=0", "can be 0"),
        ("w*log(kk)", "kk=0", "cannot be computed"), ("exp(-kk*w^2)", "kk=-1", "exp of a nonl"),
    ):  # fmt: skip
        assert words in answer(stated(unit, rest="[parameters]\nkk = 2"), "-p", option)


W, S = np.random.default_rng(0).normal(size=(2, 10)), np.random.default_rng(1).normal(size=(3, 10))
Q, M, P = W @ W.T, W @ S.T, S @ S.T
ARRAYS = [
    ({"w": W * [[0], [1]], "w_star": S}, "row 0 of Q_ww"), ({"w": W, "w_star": 0 * S}, "row 0 of P_ww"),
    ({"w": W * np.nan, "w_star": S}, "not finite"), ({"w": W, "w_star": S + np.inf}, "not finite"),
    ({"w": W}, "lacks w_star"), ({"w_star": S}, "lacks w;"), ({"Q_ww": Q}, "lacks M_ww"), ({}, "lacks Q_ww, M_ww"),
    ({"w": W, "w_star": S, "z": S}, "unknown arrays z"), ({"w": W[0], "w_star": S}, "must be a matrix"),
    ({"w": W, "w_star": S[0]}, "must be a matrix"), ({"w": W[None], "w_star": S}, "must be a matrix"),
    ({"w": W, "w_star": S[:, :5]}, "in dimension 5"), ({"w": W[:0], "w_star": S}, "is empty"),
    ({"w": W[:, :0], "w_star": S[:, :0]}, "is empty"), ({"Q_ww": Q[0], "M_ww": M, "P_ww": P}, "must be a matrix"),
    ({"Q_ww": Q, "M_ww": M.T, "P_ww": P}, "M_ww must have shape (2, 3)"),
    ({"Q_ww": Q, "M_ww": M[0], "P_ww": P}, "M_ww must have shape"), ({"Q_ww": -Q, "M_ww": M, "P_ww": P}, "any vectors"),
    ({"Q_ww": Q + [[0, 1], [0, 0]], "M_ww": M, "P_ww": P}, "not symmetric"),
    ({"w": 1e200 * W, "w_star": S}, "not symmetric and finite|not finite"),
    ({"w": W + 0j, "w_star": S}, "real numbers"),
    ({"w": W, "w_star": S, "a": np.ones(5)}, "there are 2 units"), ({"w": W, "w_star": S, "a": np.nan}, "not finite"),
    ({"w": np.array([["x"]]), "w_star": S}, "real numbers"), ({"w": np.array([[None]]), "w_star": S}, "not a valid"),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "words"), ARRAYS, ids=[w for _, w in ARRAYS])
def test_an_initial_file_that_does_not_fit_is_refused(answer, tmp_path, arrays, words):
    np.savez(tmp_path / "start.npz", **arrays)
    text = '[student]\nunit = "erf(w)"\nunits = 2\noutput = "trained"\n[teacher]\nunits = 3\n'
    said = answer(text, "--initial", str(tmp_path / "start.npz"))
    assert any(word in said for word in words.split("|")), said


def test_more_vectors_than_dimensions_are_refused_for_sgd_too(answer, tmp_path, capsys):
    (tmp_path / "m.toml").write_text(stated(teacher="units = 5"))
    words = [
        "simulate",
        "--system",
        "m.toml",
        "--step-size",
        "0.1",
        "--batch",
        "1",
        "--until",
        "1",
        "--method",
        "explicit",
    ]
    assert command([*words, "-p", "d=3"]) == 2
    assert "d must be at least" in capsys.readouterr().err
    np.savez(tmp_path / "start.npz", Q_ww=np.eye(1), M_ww=np.zeros((1, 5)), P_ww=np.eye(5))
    assert command([*words, "-p", "d=3", "--initial", "start.npz"]) == 2
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_from_python_the_same_sentences_come_as_usage_errors():
    for tables in (
        {"student": "x"}, {}, {"student": {"unit": "w"}, "studnet": {}}, {"student": {"unit": 3}}, {"student": None},
        {"student": {"unit": "w"}, "teacher": {"gram": np.array([[1.0, 2.0], [2.0, 1.0]]), "units": 2}},
        {"student": {"unit": "w"}, "start": {"Q_ww": np.eye(2), "M_ww": np.eye(2)}}, {"student": {1: "w"}},
        {"student": {"unit": "w"}, "teacher": {"gram": np.nan}}, {"student": {"unit": object()}},
        {"student": {"unit": "w"}, "event": {"of": "M_ww"}}, {"student": {"unit": "w"}, "training": {"step": 10**400}},
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            odesim.declare(**tables)
        assert "\n" not in str(caught.value)


def test_sympy_and_numpy_are_read_as_text_and_lists_are():
    import sympy

    w, v = sympy.symbols("w v")
    gram = np.array([[1.0, 0.3], [0.3, 1.0]])
    start = {"Q_ww": np.eye(1), "M_ww": np.array([[0.1, 0.2]])}
    text = odesim.declare(
        student={"unit": "erf(w/sqrt(2))"}, teacher={"units": 2, "gram": gram.tolist()},
        start={name: value.tolist() for name, value in start.items()},
    )  # fmt: skip
    made = odesim.declare(
        student={"unit": sympy.erf(w / sympy.sqrt(2))}, teacher={"units": np.int64(2), "gram": gram}, start=start
    )
    from derivations.declare import kernels

    one, two = (kernels.derive(system.parameters.declaration, ()) for system in (text, made))
    assert one == two and not one.closed
    assert made.parameters.declaration.gram == text.parameters.declaration.gram
    for unit in (sympy.Abs(w), sympy.tanh(w) * v**2, sympy.exp(-w), sympy.Rational(1, 3) * w**3, sympy.cos(w) + 1):
        odesim.declare(student={"unit": unit})
    with pytest.raises(UsageError):
        odesim.declare(student={"unit": sympy.zeta(w)})
