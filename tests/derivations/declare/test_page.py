"""The page of a declared model says what is integrated: its formulas, taken literally, are the compiled derivative."""

import dataclasses
import re
import shutil
import subprocess

import numpy as np
import pytest
import sympy
from scipy.special import erf
from scipy.stats import multivariate_normal, norm

from derivations.declare import exact, grammar, initial, series
from derivations.declare.kernels import values
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.remembered import kernels
from derivations.declare.statements import closed, document, notation, statement
from hermite.correlation import Correlations
from odesim.flow.problem import compile_functions
from tests.derivations.declare.closed import EXACT, ISOTROPIC, made
from tests.derivations.declare.models import TABLES

SINGLE = [name for name in ISOTROPIC if name not in ("two groups", "relu with biases")]
"""A ramp beside another has no density with itself: its page holds for two units."""
TEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex here: texlive-latex-recommended has it")


class Literal:
    """The formulas of a page at a state: every symbol by its name, every sum as it is written."""

    def __init__(self, name):
        p = made(EXACT[name]).parameters(d=40)
        self.start = initial.enter(p, None, np.random.default_rng(3))
        self.p = dataclasses.replace(p, batch=10**15)
        self.start = dataclasses.replace(self.start, parameters=self.p)
        self.at, self.declared = rows(p), p.declaration
        self.found = kernels(self.declared, numbers(p))
        self.names = closed.Names(self.at)
        self.forms = closed.forms(self.declared, self.found, self.names)
        known = {**self.start.constants, **self.start.state}
        self.gram = self.at.gram(known)
        self.known = known
        self.size = np.sqrt(np.diag(self.gram))
        if self.declared.weights == "normalised":
            scale = np.concatenate([self.size[: self.at.students], np.ones(self.at.teachers)])
            self.inner = self.gram / scale[:, None] / scale
        else:
            self.inner = self.gram

    def readout(self, g):
        """The readouts of a group."""
        return np.asarray(self.known[self.declared.groups[g].named("a" if self.at.is_student(g) else "a_star")])

    def value(self, expression, letters, units):
        """A closed form at two units."""
        place = dict(zip(letters, units, strict=True))
        given = {}
        for symbol in expression.free_symbols:
            entry = re.fullmatch(r"(\w+)\[(\w),(\w)\]", symbol.name)
            if entry:
                block = next(b for b in self.at.blocks if b.name == entry[1])
                given[symbol] = self.inner[block.rows, block.columns][place[entry[2]], place[entry[3]]]
            elif symbol in self.names.series:
                given[symbol] = self.series(symbol, units)
            elif match := re.fullmatch(r"(\w+)\[(\w)\]", symbol.name):
                given[symbol] = self.known[match[1]][place[match[2]]]
            else:
                given[symbol] = getattr(self.p, symbol.name)
        return float(expression.subs(given))

    def series(self, symbol, units):
        """S_ab by its definition, at the correlation of the two vectors."""
        kind, slope, a, other, steep, b = self.names.series[symbol][2]
        known = values(self.declared, numbers(self.p))
        slopes = [grammar.number(grammar.read(s), known) for s in (slope, steep)]
        one, two = (series._expansion(k, s, 400) for k, s in zip((kind, other), slopes, strict=True))
        (g, h), slots = self.pair, self.names.series[symbol][3]
        rows_ = [self.at.of(n, s).start + u for n, s, u in zip((g, h), slots, units, strict=True)]
        rho = np.clip(self.inner[rows_[0], rows_[1]], -1.0, 1.0)  # a vector with itself, up to rounding
        return float(Correlations(one, two).evaluate(a, b, rho, 1e-11))

    def form(self, g, h):
        """The closed forms of two groups, and whether the page has them the other way round."""
        found = next(f for f in self.forms if {f.first, f.second} == {g, h})
        return found

    def gradient(self, g, s, i):
        """A^s_i[u] for all vectors u: sums over students and teachers as the page writes them."""
        total, own = np.zeros(self.at.total), self.readout(g)[i]
        for h in range(len(self.declared.groups)):
            if self.declared.loss == "correlation" and self.at.is_student(h):
                continue
            form, sign = self.form(g, h), 1 if self.at.is_student(h) else -1
            self.pair = (g, h)
            for k, weight in enumerate(self.readout(h)):
                for t in self.declared.groups[h].slots:
                    V = self.value(form.slopes[s, t], form.indices, (i, k))
                    total += sign * own * weight * V * self.inner[self.at.of(h, t).start + k]
                for r in self.declared.groups[g].slots:
                    W = self.value(form.bends[s, r], form.indices, (i, k))
                    total += sign * own * weight * W * self.inner[self.at.of(g, r).start + i]
        return total

    def drift(self, g, s, i):
        """D^s_i[u] for all raw vectors u."""
        A, row = self.gradient(g, s, i), self.at.of(g, s).start + i
        kind = self.declared.weights
        if kind == "sphere":
            return A - A[row] * self.gram[row] / self.gram[row, row]
        if kind == "normalised":
            scale = np.concatenate([self.size[: self.at.students], np.ones(self.at.teachers)])
            return scale * (A - A[row] * self.inner[row]) / self.size[row] + self.p.decay * self.gram[row]
        return A + self.p.decay * self.gram[row]

    def rates(self):
        """d/dt of all blocks."""
        D = np.zeros((self.at.students, self.at.total))
        for g, group in enumerate(self.declared.students):
            for s in group.slots:
                if self.declared.moves(group, s):
                    for i in range(self.at.sizes[g]):
                        D[self.at.of(g, s).start + i] = self.drift(g, s, i)
        whole = np.zeros_like(self.gram)
        whole[: self.at.students] = D
        eta = self.p.step if self.declared.limit == "online" else 1.0
        return self.at.components(-eta * (whole + whole.T))


QUICK = (
    "erf",
    "relu of a polynomial teacher",
    "tanh sphere",
    "two slots online",
    "biased polynomial",
    "erf with biases",
)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SINGLE]
)
def test_the_formulas_of_a_page_are_what_is_integrated(name):
    page = Literal(name)
    equations = exact.equations(page.p)
    flow = compile_functions(equations, "numpy")["flow"]
    found = equations.unpack(flow(0.0, equations.start(page.start), *equations.arguments(page.start)))
    expected = page.rates()
    for block in page.at.moving:
        scale = max(np.abs(found[block.name]).max(), 1e-3)
        # relu with itself is sqrt(Q_ii Q_ii - Q_ii^2) on a page, a root of what rounding leaves
        assert expected[block.name] == pytest.approx(found[block.name], rel=1e-7, abs=1e-7 * scale), block.name


def test_a_wrong_sign_on_a_page_would_be_seen():
    page = Literal("erf")
    right = page.rates()["M_ww"]
    first = page.forms[0]
    page.forms[0] = dataclasses.replace(first, bends={key: -value for key, value in first.bends.items()})
    assert np.abs(page.rates()["M_ww"] - right).max() > 1e-3


@pytest.mark.parametrize("moved", [False, True])
def test_the_mean_of_four_erf_units(moved):
    # The printed form against Gauss-Hermite in four dimensions.
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4)) / 2
    C = root @ root.T
    given = {f"C_{{{''.join(sorted(a + b))}}}": C[i, j] for i, a in enumerate("ikmn") for j, b in enumerate("ikmn")}
    found = {}
    mu = np.array([0.4, -0.7, 0.3, 0.9]) if moved else np.zeros(4)
    given |= {f"mu_{a}": value for a, value in zip("ikmn", mu, strict=True)}
    normal = {"Phi": norm.cdf, "Phi_2": lambda h, k, r: multivariate_normal.cdf([h, k], cov=[[1, r], [r, 1]])}
    for name, value in closed.tilted(moved):
        found[name] = float(
            sympy.lambdify(list(value.free_symbols), value, [normal, "numpy"])(
                *({**given, **found}[s.name] for s in value.free_symbols)
            )
        )
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    grid = np.array(np.meshgrid(*[nodes] * 4, indexing="ij")).reshape(4, -1)
    mass = np.prod(np.array(np.meshgrid(*[weights] * 4, indexing="ij")).reshape(4, -1), 0) / (2 * np.pi) ** 2
    z = np.linalg.cholesky(C) @ grid + mu[:, None]
    slope = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)
    mean = (mass * slope[0] * slope[1] * erf(z[2] / np.sqrt(2)) * erf(z[3] / np.sqrt(2))).sum()
    assert found["I"] == pytest.approx(mean, rel=1e-8)
    if moved:
        assert found["J"] == pytest.approx((mass * slope[0] * slope[1] * erf(z[2] / np.sqrt(2))).sum(), rel=1e-8)


ALL = {**{f"{name} (closed)": tables for name, tables in EXACT.items()}, **TABLES}
FEW = ("erf online (closed)", "liao (closed)", "two groups", "softmax of four", "own loss", "normalised wick")


@pytest.mark.parametrize("name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in ALL])
def test_braces_and_environments_of_a_page_are_closed(name):
    page = statement(made(ALL[name]).parameters(), "auto")
    bare = re.sub(r"\\[{}]", "", page.latex)
    depth = np.cumsum([(c == "{") - (c == "}") for c in bare])
    assert depth.min() == 0 and depth[-1] == 0
    opened = re.findall(r"\\(begin|end)\{(\w+\*?)\}", page.latex)
    stack = []
    for what, environment in opened:
        assert what == "begin" or stack.pop() == environment
        if what == "begin":
            stack.append(environment)
    assert not stack and len(re.findall(r"\\left[^a-z]", bare)) == len(re.findall(r"\\right[^a-z]", bare))
    assert all(len(line) <= 120 for line in page.text.splitlines())
    assert "\\" not in page.text and page.why.count("\n") >= 2


@TEX
@pytest.mark.parametrize("name", [n if n in FEW[:2] else pytest.param(n, marks=pytest.mark.slow) for n in ALL])
def test_a_page_is_set_by_tex_within_its_width(name, tmp_path):
    page = statement(made(ALL[name]).parameters(), "auto")
    (tmp_path / "page.tex").write_text(page.latex, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "page.log").read_text(errors="replace")
    wide = [float(found) for found in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert [excess for excess in wide if excess > 8] == []


def test_the_rate_of_a_bias_is_a_slope_of_the_kernels_of_the_page():
    page = Literal("erf with biases")
    equations = exact.equations(page.p)
    flow = compile_functions(equations, "numpy")["flow"]
    found = equations.unpack(flow(0.0, equations.start(page.start), *equations.arguments(page.start)))
    for i, a in enumerate(page.readout(0)):
        total = 0.0
        for g, sign in ((0, 1), (1, -1)):
            form, page.pair = page.form(0, g), (0, g)
            (b,) = (s for s in form.mean.free_symbols if s.name == "b[i]")
            for k, weight in enumerate(page.readout(g)):  # b_k is another symbol, also for k = i
                ends = [page.value(form.mean.subs(b, b + h), form.indices, (i, k)) for h in (1e-5, -1e-5)]
                total += sign * weight * (ends[0] - ends[1]) / 2e-5
        assert found["b"][i] == pytest.approx(-a * total, rel=1e-7)


def test_the_letters_of_a_page_are_said():
    text = statement(made(ALL["erf online (closed)"]).parameters(), "auto").text
    assert "Second-order term, eta the step, B the batch, g_m = a_m for a student and -b_m for a teacher" in text
    sampled = statement(made(ALL["softmax of four"]).parameters(), "auto").text
    assert " K_i" not in sampled and "d/dt a_i = -E[d_fl(f, y) phi_i]" in sampled


def test_long_formulas_are_broken():
    formula = "K = " + " + ".join(f"S_{{{k}}} (a_{k} + b_{k})" for k in range(40))
    lines = document.broken(formula)
    assert len(lines) > 3 and all(document.width(line) <= document.WIDE for line in lines)
    assert " ".join(lines) == formula


def test_a_users_text_cannot_break_out_of_a_page():
    nasty = r"\input{x} } $ % _ ^ & # ~ \end{document}"
    written = notation.escaped(nasty)
    assert r"\input" not in written and r"\end" not in written
    assert len(re.findall(r"(?<!\\)\$", written)) == 0
