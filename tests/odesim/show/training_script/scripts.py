"""Declarations whose training scripts are run, and what is measured of them."""

import types

import numpy as np

import odesim
from odesim.request.case import Case
from odesim.show.training_script.render import training_script

RUNS, REFERENCE = 60, 2000
"""Runs of a script, and replicas of compressed SGD, which has the law of the weights at any d."""
LARGEST = 5.0
"""Standard errors, set before any result: of 400 entries at 59 degrees of freedom one exceeds them with odds 1:200."""
FAULTS = {
    "numpy": ("- rate * ", "- 2 * rate * "),
    "jax": ("- rate * ", "- 2 * rate * "),
    "torch": ('"lr": ', '"lr": 2 * '),
}
"""A learning rate that is twice too large, planted in the text of a script."""


def case(system, until, fresh=False, **parameters):
    return system, parameters, until, fresh


ONLINE = {"limit": "online", "step": 1.0}
NEAR = {"norm": 0.6, "overlap": 0.3}
# Steps are small where gradients have heavy tails (polynomials), so that means of 60 runs are normal.
CASES = {
    "online": case("saad_solla_1995_step", 3, d=40, overlap=0.4, noise=0.3),
    "flow": case("saad_solla_1995", 6, fresh=True, d=60, units=2, teachers=2, step=0.05),
    "sphere": case("arnaboldi_2023", 2, d=60, overlap=0.5, step=0.05, batch=2),
    "correlation": case("ben_arous_2021", 0.03, d=30, overlap=0.5, step=2e-4, batch=2),
    "readouts": case("tanh_network", 3, d=30, units=2, step=0.03),
    "relu": case("relu_committee", 0.6, d=30, step=0.02, units=2, teachers=2),
    "softmax": case("softmax_mixture", 3, d=30, step=0.05),
    "top1": case("top1_mixture", 3, d=30, step=0.05),
    "labels": case("logistic_two_clusters", 5, fresh=True, d=30, step=0.1),
    "blocks": case("yoshida_okada_2019", 6, d=40),
    "clusters": case("refinetti_2021", 6, fresh=True, d=30, units=3, step=0.1),
    "velocities": case("momentum_committee", 4, d=40),
    "norms": case("quadratic_network", 0.15, fresh=True, d=30, units=2, teachers=2, step=0.001),
    "weighted": case("ren_2025", 0.01, d=30, units=3, teachers=3, step=5e-5, overlap=0.5, batch=4),
    "gram": case("simsek_2025", 0.1, d=30, teachers=3, step=0.002),
    "schedule": case(
        odesim.declare(
            student={"unit": "erf(w/sqrt(2))", "units": 2, "output": "trained"},
            teacher={"units": 2, "noise": 0.2},
            training={
                "limit": "online", "step": [[0, 1.5], [1, "0.8/(1 + t)"]], "decay": 0.1, "rates": {"a": 0.5},
                "batch": 2, "trained": ["w", "a"],
            },
            start={**NEAR, "a": 0.5},
        ),
        3, d=30,
    ),
    "biases": case(
        odesim.declare(
            student={"unit": "relu(w + b)", "units": 2, "output": "mean"},
            teacher={"unit": "relu(w - 0.5)"},
            parameters={"b": {"default": 0.1, "per": "unit"}},
            training={
                "limit": "online", "step": 0.5, "momentum": 0.6, "nesterov": True, "batch": 3, "trained": ["w", "b"],
            },
            start=NEAR,
        ),
        3, d=30,
    ),
    "hinge": case(
        odesim.declare(
            student={"unit": "tanh(w)", "units": 2, "output": "1/j"},
            teacher={"unit": "w", "noise": "-0.3*sign(xi)*log(2*probit(-abs(xi)))"},
            training={**ONLINE, "loss": "hinge"},
            start=NEAR,
        ),
        2, d=30,
    ),
    "own": case(
        odesim.declare(
            student={"unit": "gelu(w)", "units": 2, "output": "root"},
            teacher={"units": 2},
            training={**ONLINE, "loss": "sqrt(1 + (f - y)^2)"},
            start=NEAR,
        ),
        3, d=30,
    ),
    "normalised": case(
        odesim.declare(
            student={"unit": "logistic(v)*tanh(w)", "units": 2},
            teacher={},
            training={**ONLINE, "weights": "normalised"},
            start={"norm": 1.0, "overlap": 0.3},
        ),
        4, d=30,
    ),
}  # fmt: skip


def text_of(name, backend):
    """The script of a case with its first and last weights alone in the log."""
    system, parameters, until, _ = CASES[name]
    return training_script(Case.build(system, parameters, until=until, save_points=2), backend)


def module(text):
    """A script as a module, which trains when its `train` is called."""
    made = types.ModuleType("script")
    exec(compile(text, "script", "exec"), made.__dict__)
    return made


def final_overlaps(name, text, runs=RUNS):
    """The order parameters (run, ..) at the end of runs of a script."""
    made = module(text)
    logs = [made.train(seed) for seed in range(runs)]
    arrays = {
        k: v if k in made.fixed or k == "time" else np.array([log[k] for log in logs]) for k, v in logs[0].items()
    }
    system, parameters, _, _ = CASES[name]
    kept = {k: v for k, v in parameters.items() if k not in ("d", "overlap", "units", "teachers")}
    return ends(odesim.observe(system, arrays, **kept))


def reference(name):
    """The same of compressed SGD."""
    system, parameters, until, fresh = CASES[name]
    return ends(
        odesim.simulate(
            system, method="compressed", seeds=REFERENCE, until=until, fresh_initial=fresh, save_points=2, seed=7,
            **parameters,
        )
    )  # fmt: skip


def ends(run):
    """The last values (run, ..) of all order parameters."""
    return {name: v.values[:, -1] for name, v in run.state.items() if v.dims[:2] == ("seed", "time")}


def largest_z(found, expected):
    """The largest difference of means in standard errors; infinite where what has no spread differs."""
    worst = 0.0
    names = found.keys() & expected.keys()
    assert {name for name in expected if name[0] in "QMa"} - names <= {n for n in expected if n.endswith("_star")}
    for name in names:
        one, two = found[name], expected[name]
        difference = np.abs(one.mean(0) - two.mean(0))
        error = np.sqrt(one.var(0, ddof=1) / len(one) + two.var(0, ddof=1) / len(two))
        still = error < 1e-12  # norms on a sphere
        z = np.where(still, np.where(difference < 1e-9, 0.0, np.inf), difference / np.where(still, 1.0, error))
        worst = max(worst, float(z.max()))
    return worst
