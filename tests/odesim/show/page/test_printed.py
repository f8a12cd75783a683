"""Printed pages: text, LaTeX that a TeX engine compiles, and a Python file that needs only NumPy and SciPy."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sympy as sp

import derivations
import odesim
from derivations.contract import load
from derivations.statement import Base, Definition, Equation, Named, Statement
from odesim.show.page import latex, python, text

from .tiers import MORE, scan

TIERS = list(scan())
NAMES = ["-".join(one) for one in TIERS]
MAPS = [
    (name, stage.name, stage.tiers[0])
    for name in derivations.names()
    for stage in derivations.system(name).stages
    if stage.kind == "map" and stage.statement
]
BARE = """
import runpy, sys
for name in ("sympy", "odesim", "derivations", "hermite", "numba", "jax", "xarray", "matplotlib"):
    sys.modules[name] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def statement(system, stage, tier):
    """The statement of a tier at its defaults, or at what the tier asks for."""
    found = derivations.system(system)
    given = {**MORE.get((system, tier), [{}])[-1]} if tier in ("linear", "R3", "group2") else {}
    given |= {"P": 4} if (system, tier) == ("chen", "full") else {}
    return load(found.stage(stage).statement)(found.parameters(**given, tier=tier), tier)


def run_alone(folder, code):
    """The output of a printed file, run where the project cannot be imported."""
    path = folder / "page.py"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", BARE, str(path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


QUICK = [("chen", "train", "explore"), ("kawata", "phase1", "R3"), ("liao", "tune", "linear"), ("pmoe", "joint", "L2"),
         ("pruning", "tune", "recursion")]  # fmt: skip


@pytest.mark.parametrize(("system", "stage", "tier"), QUICK, ids=["-".join(one) for one in QUICK])
def test_the_printed_file_runs_alone(system, stage, tier, tmp_path):
    assert "passes" in run_alone(tmp_path, python.page(statement(system, stage, tier)))


@pytest.mark.slow
@pytest.mark.parametrize(("system", "stage", "tier"), TIERS, ids=NAMES)
def test_every_printed_file_runs_alone(system, stage, tier, tmp_path):
    assert "passes" in run_alone(tmp_path, python.page(statement(system, stage, tier)))


def engine():
    """A TeX engine; without one the test is skipped."""
    for name in ("pdflatex", "lualatex", "xelatex"):
        if shutil.which(name):
            return name
    pytest.skip("no TeX engine here: install Debian's texlive-latex-base and texlive-latex-recommended")


@pytest.mark.slow
@pytest.mark.parametrize(("system", "stage", "tier"), [*TIERS, *MAPS], ids=["-".join(one) for one in [*TIERS, *MAPS]])
def test_every_page_is_set_by_tex_within_its_width(system, stage, tier, tmp_path):
    set_by_tex(latex.page(statement(system, stage, tier)), tmp_path)


def set_by_tex(page, tmp_path):
    (tmp_path / "page.tex").write_text(page, encoding="utf-8")
    command = [engine(), "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "page.log").read_text(errors="replace")
    wide = [float(found) for found in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert [excess for excess in wide if excess > 5] == []
    assert (tmp_path / "page.pdf").stat().st_size > 10_000


@pytest.mark.parametrize(("stage", "tier"), [("joint", "L0"), ("joint", "L2"), ("experts", "L1"), ("router", "L0")])
def test_pages_of_several_classes_run_alone(stage, tier, tmp_path):
    system = derivations.system("pmoe")
    found = load(system.stage(stage).statement)(system.parameters(classes=4, tier=tier), tier)
    assert "passes" in run_alone(tmp_path, python.page(found))
    assert all(len(line) <= 120 for line in text.page(found).splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "tier"), [("joint", "L0"), ("joint", "L1"), ("experts", "L2"), ("router", "L0")])
def test_pages_of_several_classes_are_set_by_tex(stage, tier, tmp_path):
    system = derivations.system("pmoe")
    found = load(system.stage(stage).statement)(system.parameters(classes=4, tier=tier), tier)
    set_by_tex(latex.page(found), tmp_path)


@pytest.mark.parametrize(("system", "stage", "tier"), TIERS, ids=NAMES)
def test_pages_define_what_they_use_and_keep_their_width(system, stage, tier):
    found = statement(system, stage, tier)
    page = text.page(found)
    assert all(len(line) <= 120 for line in page.splitlines())
    assert found.name.split(",")[0] == system
    for said in (found.source, found.clock, found.validity, found.neglects):
        assert said
    known = {n.target for n in (*found.state, *found.constants)} | {t for d in found.arrays for t in d.targets}
    names = {getattr(t, "base", t).name if isinstance(t, sp.Indexed) else t.name for t in known}
    values = [e.rate for e in found.equations] + [v for k in found.kernels for v in k.values.values()]
    values += [v for d in found.arrays for v in (d.value if isinstance(d.value, tuple) else (d.value,))]
    used = {a.base.name for v in values for a in sp.sympify(v).atoms(sp.Indexed)}
    assert used <= names


@pytest.mark.parametrize(("system", "stage", "tier"), TIERS, ids=NAMES)
def test_constants_of_pages_are_exact(system, stage, tier):
    found = statement(system, stage, tier)
    values = [e.rate for e in found.equations] + [v for k in found.kernels for v in k.values.values()]
    values += [
        v for d in found.arrays if d.rule is None for v in (d.value if isinstance(d.value, tuple) else (d.value,))
    ]
    assert not any(sp.sympify(v).atoms(sp.Float) for v in values)


def decay():
    """x_i' = -(1/tau) sum_j C_ij x_j, as a declared model might state it."""
    n, tau = sp.Symbol("n", integer=True), sp.Symbol("tau")
    i, j, C, x, y = sp.Idx("i", n), sp.Idx("j", n), Base("C"), Base("x"), Base("y")
    return Statement(
        name="decay", title="a linear decay", source="this test", clock="t", validity="always", neglects="nothing",
        indices=[((i, j), "units")], state=(Named(x[i], "size of a unit"),),
        constants=(Named(n, "units", 3), Named(tau, "time scale", 2.0), Named(C[i, j], "coupling", "np.eye(n)")),
        definitions=(Definition((y[i],), sp.Sum(C[i, j] * x[j], j), "what pulls a unit"),),
        equations=(Equation(x[i], -y[i] / tau, "by definition"),), bind=lambda initial: {},
    )  # fmt: skip


def test_a_model_that_is_no_system_has_pages_too():
    assert "dxᵢ/dt = −yᵢ/τ" in text.page(decay())
    assert r"\frac{\mathrm{d}x_{i}}{\mathrm{d}t} &= -\frac{y_{i}}{\tau}" in latex.page(decay())
    space = {"__name__": "page"}
    exec(python.page(decay()), space)
    found = space["rates"]({"x": np.array([1.0, 2.0, 3.0])}, space["parameters"](tau=4.0))["x"]
    np.testing.assert_allclose(found, [-0.25, -0.5, -0.75])


def test_an_index_may_not_have_the_name_of_a_quantity():
    n = sp.Symbol("n", integer=True)
    i = sp.Idx("x", n)
    with pytest.raises(ValueError, match="x is both an index and a name"):
        Statement(
            name="wrong", title="", source="", clock="", validity="", neglects="", indices=[((i,), "units")],
            state=(Named(Base("x")[i], ""),), constants=(), equations=(), bind=lambda initial: {},
        )  # fmt: skip


def test_derive_in_python_and_its_mistakes():
    assert odesim.derive("liao", m=3, m_star=2).startswith("liao, exact: gradient flow")
    assert odesim.derive("pruning", "latex", tier="flow").startswith(r"\documentclass")
    assert "def gate(" in odesim.derive("pruning", "kernels")
    with pytest.raises(odesim.UsageError, match="format= must be one of text, latex, latex-fragment, python, kernels"):
        odesim.derive("liao", "word")
    with pytest.raises(odesim.UsageError, match=r"stage score of pruning has no equations of motion.*tune, post-tune"):
        odesim.derive("pruning", stage="score")
    with pytest.raises(odesim.UsageError, match='give format="text" or latex'):
        odesim.derive("liao", "python", stage="prune")
    assert "independent draws" in odesim.derive("pruning", preset="paper-synthetic")
    assert "gammaln" in odesim.derive("liao", "python", temperature=3.0)  # float64 has no 692!
    assert "of the neuron's activation" in odesim.derive("kawata", activation="polynomial", signs=True)


def test_latex_of_liao_has_the_paper_s_symbols_and_exact_constants():
    page = odesim.derive("liao", "latex")
    assert r"\frac{\mathrm{d}\gamma^{(1)}_{ik}}{\mathrm{d}t} &= \frac{1}{a_{i}^{2}}" in page
    assert r"\hat\lambda^{(5)}_{il}" in page and r"\sinh(\pi w)" in page
    assert not re.search(r"\d\.\d{6}", page)
    kawata = odesim.derive("kawata", "latex")
    assert r"\sqrt{2 \pi}" in kawata and "1.414" not in kawata
