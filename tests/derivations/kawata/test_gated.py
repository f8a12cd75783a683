"""The exact flow behind a gate: against quadrature, the triple Hermite series, SGD, and the flow without a gate."""

import functools
import itertools
import math

import numpy as np
import pytest
import sympy as sp
from scipy import special

import odesim
from derivations.equations.interpreter import Evaluator
from derivations.kawata import gated_loops, parameters
from odesim.flow.problem import compile_functions, prepare
from odesim.machine import device
from odesim.request.case import Case

D, C = 16, 2
ACTIVATIONS = {
    "relu": lambda t: np.maximum(t, 0.0),
    "cos": np.cos,
    "exp": np.exp,
    "polynomial": lambda t: sum(c * orthonormal(n, t) for n, c in enumerate((0.0, 0.3, 0.5, 0.4, 0.2))),
}
LINK = "0,0,0,1,0.4;0,0,0.5,0.8,0;0,0,0,0.6,0.5"
SERIES = np.array([[0, 0, 0, 1, 0.4], [0, 0, 0.5, 0.8, 0], [0, 0, 0, 0.6, 0.5]])


def orthonormal(n, x):
    """h_n."""
    return np.polynomial.hermite_e.hermeval(x, [0] * n + [1]) / math.sqrt(math.factorial(n))


def vectors(seed=0, neurons=4, gates=2, length=1.0):
    """Explicit unit neurons, an orthonormal frame, gates, and the arrays of a file with their overlaps."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(D, 2 * C + 1)))[0].T
    w = rng.normal(size=(neurons, D))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    theta = length * rng.normal(size=(gates, D))
    m = w @ frame.T
    far = w - m @ frame
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    return {
        "kappa": m[:, :C], "xi": m[:, C], "nu": m[:, C + 1 :], "a": np.ones(neurons), "b": rng.normal(size=neurons),
        "theta": theta @ frame.T, "gate_gram": theta @ theta.T, "gate_direction": theta @ far.T,
        "directions": far @ far.T,
    }, w, theta  # fmt: skip


def gates_of(arrays):
    """Overlaps of the directions of the gates with an orthonormal frame."""
    return arrays["theta"] / np.sqrt(np.diag(arrays["gate_gram"]))[:, None]


def problem(arrays, tier="gated", **parameters):
    """The compiled equations at given overlaps."""
    request = {"M": 2, "J": 2, "d": D, "rho": 1.5, "k_star": None, "link": LINK, "tier": tier, **parameters}
    request = {name: value for name, value in request.items() if value is not None}
    return prepare(Case.build("kawata", request, initial=arrays, stage="phase3"))


def potential(kappa, xi, nu, q, b, *, om, tau, s, rho, sigma):
    """sum_c E[1(v >= -tau_c) y_c sigma(z + rho nu_c + b)]: Legendre in z and v from the kinks, Hermite beyond."""
    x, wx = np.polynomial.legendre.leggauss(80)
    r, wr = np.polynomial.hermite_e.hermegauss(8)
    wr, total = wr / math.sqrt(2 * math.pi), 0.0
    for c in range(C):
        t = rho * nu[c] + b
        edges = [-9.0, *([-t] if abs(t) < 9 else []), 9.0]
        for lo, hi in itertools.pairwise(edges):
            z = (hi - lo) / 2 * x + (hi + lo) / 2
            wz = (hi - lo) / 2 * wx * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            low = -tau[c]
            v = (10.0 - low) / 2 * x + (10.0 + low) / 2
            Z, V = np.meshgrid(z, v, indexing="ij")
            density = np.exp(-((V - q * Z) ** 2) / (2 * (1 - q * q))) / math.sqrt(2 * math.pi * (1 - q * q))
            weight = np.outer(wz, (10.0 - low) / 2 * wx) * density * sigma(Z + t)
            for overlap, tilt, row in ((kappa[c], om[c], SERIES[c]), (xi, om[C], s[c] * SERIES[C])):
                along = np.linalg.solve([[1, q], [q, 1]], [overlap, tilt])
                rest = math.sqrt(1 - along @ [overlap, tilt])
                u = along[0] * Z[..., None] + along[1] * V[..., None] + rest * r
                y = sum(f * orthonormal(n, u) for n, f in enumerate(row))
                total += (weight * (y @ wr)).sum()
    return total


KINDS = ("relu", "polynomial", "erf", "exp", "cos", "probit")
SIGMA = (0.1, 0.3, -0.5, 0.4, 0.2)
WHOLE = {
    **ACTIVATIONS,
    "polynomial": lambda t: sum(c * orthonormal(n, t) for n, c in enumerate(SIGMA)),
    "erf": lambda t: special.erf(t / math.sqrt(2)),
    "probit": special.ndtr,
}


def pieces(low, high, kink):
    """Legendre nodes and weights on (low, high), cut at the kink of the activation."""
    x, w = np.polynomial.legendre.leggauss(64)
    ends = [low, *([kink] if low < kink < high else []), high]
    cut = [((b - a) / 2 * x + (a + b) / 2, (b - a) / 2 * w) for a, b in itertools.pairwise(ends)]
    return np.concatenate([y for y, _ in cut]), np.concatenate([v for _, v in cut])


@functools.cache
def slope_of_density(j, n):
    """(-1)^(j+n) d_u^j d_v^n of the normal density of u and v with correlation q, by SymPy."""
    u, v, q = sp.symbols("u v q")
    density = sp.exp(-(u**2 - 2 * q * u * v + v**2) / (2 * (1 - q**2))) / (2 * sp.pi * sp.sqrt(1 - q**2))
    return sp.lambdify((u, v, q), (-1) ** (j + n) * sp.diff(density, u, j, v, n), "numpy", cse=True)


def mean_of_derivatives(sigma, j, n, t, tau, q):
    """E[d^j sigma(u + t) d^n 1(v + tau >= 0)], all derivatives moved to the density of u and v."""
    u, wu = pieces(-13.0, 13.0, -t)
    v, wv = pieces(-tau, 13.0, math.inf)
    U, V = np.meshgrid(u, v, indexing="ij")
    return (wu * sigma(u + t)) @ slope_of_density(j, n)(U, V, q) @ wv


@pytest.mark.parametrize("activation", KINDS)
def test_every_kernel_behind_a_gate_is_the_mean_that_it_stands_for(activation):
    rng, top = np.random.default_rng(11), 4
    B, G = np.full((top, top), np.nan), np.zeros(top + 1)
    kind, sigma = parameters.ACTIVATIONS.index(activation), WHOLE[activation]
    for t, tau, q in zip(rng.normal(size=2), rng.normal(size=2), (0.8, -0.5), strict=True):
        gated_loops.decided(kind, np.array(SIGMA), t, tau, q, B, G)
        for j, n in itertools.product(range(top), range(top)):
            wanted = mean_of_derivatives(sigma, j, n, t, tau, q) if j + n <= top else 0.0
            # Derivatives of the density are large, (j + n)! / (1 - q^2)^((j + n) / 2), and so is their round-off.
            assert B[j, n] == pytest.approx(wanted, rel=1e-9, abs=1e-9), (j, n)


@pytest.mark.parametrize("activation", KINDS)
def test_smoothed_activations_are_means_over_their_width(activation):
    rng, top = np.random.default_rng(12), 5
    kind, G = parameters.ACTIVATIONS.index(activation), np.zeros(top + 1)
    for s, r in zip(rng.normal(size=4), rng.uniform(0.3, 1.0, 4), strict=True):
        gated_loops.smoothed(kind, s, r, np.array(SIGMA), top, G)
        z, weight = pieces(-13.0, 13.0, -s / r)
        weight = weight * np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * WHOLE[activation](r * z + s)
        for m in range(top + 1):
            wanted = (weight @ np.polynomial.hermite_e.hermeval(z, [0] * m + [1])) / r**m
            assert G[m] == pytest.approx(wanted, rel=1e-10, abs=1e-10), m


@pytest.mark.parametrize("activation", ["relu", "cos", "exp", "polynomial"])
def test_potential_and_flow_are_those_of_quadrature(activation):
    arrays, w, theta = vectors(seed=3)
    sigma = {"sigma": "0,0.3,0.5,0.4,0.2"} if activation == "polynomial" else {}
    p = problem(arrays, activation=activation, **sigma)
    th = theta / np.linalg.norm(theta, axis=1, keepdims=True)
    m = p.start.reshape(4, -1)
    np.testing.assert_allclose(m[:, -1], (w * th[[0, 0, 1, 1]]).sum(1), atol=1e-14)
    gates = gates_of(arrays)

    def of(k, y):
        gate = gates[k // 2]
        found = potential(
            y[:C], y[C], y[C + 1 : 2 * C + 1], y[-1], arrays["b"][k], om=gate[: C + 1],
            tau=1.5 * gate[C + 1 :], s=(1.0, -1.0), rho=1.5, sigma=ACTIVATIONS[activation],
        )  # fmt: skip
        return found / (2 * C)  # J C

    loss = -sum(of(k, m[k]) for k in range(4))
    assert abs(p.functions["loss"](p.start, *p.arguments) - loss) < 1e-10
    h, k = 1e-3, 1
    g = np.zeros(2 * C + 2)
    for i in range(len(g)):
        unit = np.eye(len(g))[i] * h
        g[i] = (8 * (of(k, m[k] + unit) - of(k, m[k] - unit)) - of(k, m[k] + 2 * unit) + of(k, m[k] - 2 * unit)) / (
            12 * h
        )
    frame = np.eye(2 * C + 2)
    frame[-1, :-1] = frame[:-1, -1] = gates[k // 2]
    expected = frame @ g - m[k] * (m[k] @ g)
    found = p.functions["flow"](0.0, p.start, *p.arguments).reshape(4, -1)[k]
    np.testing.assert_allclose(found, expected, atol=2e-9)


def test_the_triple_hermite_series_of_the_specification_gives_the_same_potential():
    arrays, _, _ = vectors(seed=5, neurons=2)
    p = problem(arrays, activation="polynomial", sigma="0,0.3,0.5,0.4,0.2", J=1)
    gates, sigma = gates_of(arrays), np.array([0, 0.3, 0.5, 0.4, 0.2])

    def tri(i, j, n, ut, ug, tg):
        powers = [(i + j - n) / 2, (i + n - j) / 2, (j + n - i) / 2]
        if any(x < 0 or x != int(x) for x in powers):
            return 0.0
        n1, n2, n3 = map(int, powers)
        scale = math.sqrt(math.factorial(i) * math.factorial(j) * math.factorial(n))
        return scale / math.prod(map(math.factorial, (n1, n2, n3))) * ut**n1 * ug**n2 * tg**n3

    def psi(n, tau):
        normal = math.exp(-tau * tau / 2) / math.sqrt(2 * math.pi)
        return (
            math.erfc(-tau / math.sqrt(2)) / 2
            if n == 0
            else (-1) ** (n - 1) * orthonormal(n - 1, tau) * normal / n**0.5
        )

    total = 0.0
    for k, m in enumerate(p.start.reshape(2, -1)):
        gate = gates[k]
        for c, s in ((0, 1.0), (1, -1.0)):
            t, tau = 1.5 * m[C + 1 + c] + arrays["b"][k], 1.5 * gate[C + 1 + c]
            alpha = [
                sum(
                    sigma[n] * math.sqrt(math.factorial(n) / math.factorial(j)) * t ** (n - j) / math.factorial(n - j)
                    for n in range(j, 5)
                )
                for j in range(5)
            ]
            for i, j in itertools.product(range(5), range(5)):
                for n in range(abs(i - j), i + j + 1):
                    both = SERIES[c][i] * tri(i, j, n, m[c], gate[c], m[-1])
                    both += s * SERIES[C][i] * tri(i, j, n, m[C], gate[C], m[-1])
                    total += alpha[j] * psi(n, tau) * both / C
    assert abs(p.functions["loss"](p.start, *p.arguments) + total) < 1e-12


@pytest.mark.parametrize(("activation", "signs"), [*((kind, False) for kind in KINDS), ("polynomial", True)])
def test_the_engine_arrays_and_interpreter_agree(activation, signs):
    arrays, _, _ = vectors(seed=1)
    given = {"sigma": SIGMA} if activation == "polynomial" else {}
    if signs:
        arrays["sigma"], given = np.array(SIGMA) * [[1], [-1], [1], [-1]] * [1, -1, 1, 1, -1], {"signs": True}
    p = problem(arrays, activation=activation, **given)
    stated = p.equations.code.statement()
    state = dict(p.equations.unpack(p.start))
    values = Evaluator(stated, {**stated.named(p.arguments), **state})
    wanted, loss = p.equations.layout.pack(values.rates()), values.loss()
    size = np.abs(wanted).max()
    for functions in (p.functions, compile_functions(p.equations, "numpy")):
        assert np.abs(functions["flow"](0.0, p.start, *p.arguments) - wanted).max() < 1e-13 * size
        assert functions["loss"](p.start, *p.arguments) == pytest.approx(loss, rel=1e-12, abs=1e-14)


def test_jax_has_the_flow_behind_a_gate():
    arrays, _, _ = vectors(seed=1)
    p = problem(arrays)
    with device.double():
        device.configure("cpu")
        found = np.asarray(compile_functions(p.equations, "jax")["flow"](0.0, p.start, *p.arguments))
    wanted = p.functions["flow"](0.0, p.start, *p.arguments)
    assert np.abs(found - wanted).max() < 1e-13 * np.abs(wanted).max()


def test_a_gate_that_sees_the_means_alone_and_no_neuron_has_the_flow_of_its_shares():
    arrays, _, _ = vectors(seed=2)
    arrays["theta"][:, : C + 1] = 0.0
    arrays["gate_gram"] = arrays["theta"] @ arrays["theta"].T
    arrays["gate_direction"] = np.zeros((2, 4))
    arrays["nu"] *= 0.0
    exact, shares = problem(arrays), problem(arrays, tier="exact")
    found = exact.functions["flow"](0.0, exact.start, *exact.arguments).reshape(4, -1)
    expected = shares.functions["flow"](0.0, shares.start, *shares.arguments).reshape(4, -1)
    assert np.abs(exact.start.reshape(4, -1)[:, -1]).max() < 1e-15
    np.testing.assert_allclose(found[:, : C + 1], expected[:, : C + 1], atol=1e-14)


def test_a_gate_of_zero_is_always_open():
    arrays, _, _ = vectors(seed=2, length=0.0)
    exact, shares = problem(arrays), problem(arrays, tier="exact")
    found = exact.functions["flow"](0.0, exact.start, *exact.arguments).reshape(4, -1)
    expected = shares.functions["flow"](0.0, shares.start, *shares.arguments).reshape(4, -1)
    np.testing.assert_allclose(found[:, :-1], expected, atol=1e-14)


def test_compressed_sgd_follows_this_flow_and_not_that_of_the_shares():
    arrays, _, _ = vectors(seed=7)
    request = {"M": 2, "J": 2, "d": D, "rho": 1.5, "link": LINK, "stage": "phase3", "save_points": 3, "initial": arrays}
    flows = {tier: odesim.integrate("kawata", tier=tier, until=1.0, **request) for tier in ("gated", "exact")}
    runs = odesim.simulate("kawata", method="compressed", step_size=0.02, batch=2000, seeds=40, until=1.0, **request)
    far = {}
    for name in ("kappa", "xi", "nu"):
        moved = runs[name][:, -1]
        error = moved.std(axis=0, ddof=1) / math.sqrt(40)
        # A step of 0.02 leaves first-order differences of the order of 1e-4 beside the noise.
        assert (np.abs(moved.mean(axis=0) - flows["gated"][name][-1]) < 4.5 * error + 3e-4).all()
        far[name] = np.abs(moved.mean(axis=0) - flows["exact"][name][-1]) / (error + 1e-4)
    assert max(values.max() for values in far.values()) > 20


def test_all_phases_run_with_the_exact_gate():
    from odesim.flow import pipeline

    request = dict(C=2, M=4, J=4, d=10**4, k_star=4, rho=6, bias="-0.5", width3=5, ridge_bias="-4,4", tier="gated")
    runs = pipeline.run(pipeline.build("kawata", request, "all", save_points=3, rtol=1e-5, until={"phase1": 2e5}))
    assert [run.origin.tier for run in runs] == ["gated"] * 4
    assert runs[2]["tilt"].shape == (3, 20) and 0 < runs[3].summary["relative_error"] < 1.5
    assert runs[2].invariants["ball_excess"] < 1e-6 and runs[2].invariants["tilt_excess"] == 0.0
