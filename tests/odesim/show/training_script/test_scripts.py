"""Training scripts of declared models, run and held against compressed SGD, which shares no code with them."""

import ast
import functools
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import odesim
from derivations import outside
from derivations.contract import UsageError
from odesim.request.case import Case, find_system
from odesim.show.training_script.printers import BACKENDS
from odesim.show.training_script.render import training_script
from tests.odesim.show.training_script.scripts import (
    CASES,
    FAULTS,
    LARGEST,
    final_overlaps,
    largest_z,
    module,
    reference,
    text_of,
)

reference = functools.cache(reference)
QUICK = ("online", "sphere", "relu", "softmax", "biases", "clusters")
"""Cases of the fast tests; all others are slow tests, as each of them compiles a model of SGD."""
torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed (the extra torch)"
)
LIBRARIES = [pytest.param(name, marks=torch if name == "torch" else ()) for name in BACKENDS]
LATER = [pytest.mark.slow]
NAMES = [pytest.param(name, marks=[] if name in QUICK else LATER) for name in CASES]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """One thread for PyTorch, whose threads wait for each other on a busy machine."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_a_script_has_the_law_of_compressed_sgd(name, backend):
    assert largest_z(final_overlaps(name, text_of(name, backend)), reference(name)) < LARGEST


FAULTY = [("numpy", name) for name in CASES] + [("jax", "online"), ("torch", "online")]


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        pytest.param(*pair, marks=[*([torch] if pair[0] == "torch" else []), *(LATER if pair[1] not in QUICK else [])])
        for pair in FAULTY
    ],
)
def test_a_learning_rate_twice_too_large_is_seen(name, backend):
    text = text_of(name, backend)
    wrong = text.replace(*FAULTS[backend])
    assert wrong != text
    assert largest_z(final_overlaps(name, wrong), reference(name)) > LARGEST


def exportable():
    """The models of the gallery that have a script."""
    found = []
    for name in outside.gallery():
        try:
            training_script(Case.build(name), "numpy")
        except UsageError:
            continue
        found.append(name)
    return found


def test_most_models_of_the_gallery_have_a_script():
    assert len(exportable()) >= 18


@pytest.mark.parametrize("name", [*CASES, "liao_declared", "logistic_two_clusters", "relu_committee", "ren_2025"])
def test_the_chain_rule_of_numpy_is_the_gradient_of_jax(name):
    """At random weights and samples: SymPy's derivatives against automatic differentiation of the same model."""
    import jax

    system, parameters = CASES[name][:2] if name in CASES else (name, {"d": 90})
    plain, traced = (
        module(training_script(Case.build(system, {**parameters, "batch": 7}, until=0.1), one))
        for one in ("numpy", "jax")
    )
    rng = np.random.default_rng(3)
    p = {k: v + 0.3 * rng.normal(size=v.shape) for k, v in plain.start(rng).items()}
    x, y = rng.normal(size=(7, plain.d)), rng.normal(size=7)
    found = plain.gradient(p, x, y)
    expected = jax.grad(lambda p: traced.loss(traced.student(p, x), y).mean())(p)
    assert found
    for one, values in found.items():
        assert np.abs(values - expected[one]).max() < 1e-12 * max(1.0, float(np.abs(expected[one]).max()))


STARTS = ("online", "sphere", "readouts", "softmax", "blocks", "gram", "weighted", "velocities")


@pytest.mark.parametrize("name", STARTS)
def test_a_start_by_construction_has_the_overlaps_of_the_declaration(name):
    system, parameters, until, _ = CASES[name]
    made = module(text_of(name, "numpy"))
    start = made.start(np.random.default_rng(0))
    arrays = {**{k: v[None] for k, v in start.items()}, **made.fixed}
    run = odesim.integrate(system, until=until, save_points=2, **parameters)
    seen = odesim.observe(system, arrays, **{k: v for k, v in parameters.items() if k not in ("d", "units")})
    for one in run.state:
        if one in seen.state:
            assert np.abs(np.asarray(run[one])[0] - np.asarray(seen[one])[0]).max() < 1e-7, one


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_script_names_its_conventions_and_does_not_import_odesim(backend):
    text = training_script(Case.build("saad_solla_1995_step"), backend)
    imported = [
        alias.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    assert not any("odesim" in one for one in imported)
    for words in ("(f - y)^2 / 2", "without 1/sqrt(d)", "steps / d", "eta / d", "odesim observe"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 120 and len(text.splitlines()) < 140


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_every_name_of_a_script_is_used_and_every_used_one_is_there(name, backend, tmp_path):
    """A constant that nothing reads would be one that a user changes in vain."""
    text = text_of(name, backend)
    assert unused(text) == []
    (tmp_path / "script.py").write_text(text)
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F,E9,I", "script.py"]
    done = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def unused(text):
    """The names that a script defines at its top and never reads."""
    tree = ast.parse(text)
    stored = {one.id for node in tree.body if isinstance(node, ast.Assign) for one in node.targets}
    loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return sorted(stored - loaded)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("liao", "is not a declared model"),
        ("clipped_sgd", "w is trained by a rule that is not a gradient"),
        ("patel_2023", "rule that is not a gradient"),
        ("lee_2021", "trained in several stages"),
        ("dandi_2024", "its steps are giant"),
        ("repetita_iuvant_2024", "uses a sample more than once"),
        ("collins_woodfin_2024_adagrad", "updates a memory"),
        ("optimal_step", "its step depends on the order parameters"),
        ("braun_2025", "its inputs have a spectrum"),
    ],
)
def test_what_has_no_script_is_one_sentence_that_names_the_feature(name, words):
    with pytest.raises(UsageError, match=words) as refused:
        training_script(Case.build(name), "torch")
    assert "\n" not in str(refused.value)


def test_names_that_a_script_needs_are_left_to_it():
    model = odesim.declare(
        student={"unit": "erf(scale*g + rows)"},
        teacher={},
        parameters={"scale": 0.5, "rows": 0.1},
        training={"limit": "online"},
    )
    made = module(training_script(Case.build(model, {"d": 20}, until=0.5), "numpy"))
    log = made.train(2)
    assert log["g"].shape == (11, 1, 20)
    assert (made.scale_, made.rows_) == (0.5, 0.1)


@pytest.mark.parametrize("backend", LIBRARIES)
def test_a_script_runs_alone_and_observe_reads_its_log(backend, tmp_path):
    text = training_script(Case.build("saad_solla_1995_step", {"d": 50}, until=2, save_points=9), backend)
    (tmp_path / "script.py").write_text(text)
    subprocess.run([sys.executable, "script.py"], cwd=tmp_path, check=True)
    run = odesim.observe("saad_solla_1995_step", tmp_path / "saad_solla_1995_step-log.npz")
    assert run["M_ww"].shape == (9, 1, 1) and np.allclose(run.time, np.linspace(0, 2, 9), atol=0.02)
    assert abs(float(np.asarray(run["Q_ww"])[0, 0, 0]) - 1) < 1e-12
    assert find_system("saad_solla_1995_step").name in text
