"""A user's own JAX and environment are the same after odesim has computed; odesim computes in float64 all the same."""

import json
import os
import subprocess
import sys

import pytest

PREAMBLE = """
import json, os, sys
import jax, jax.numpy as jnp, numpy as np
before = dict(os.environ)  # JAX itself sets two variables when it is imported
if len(sys.argv) > 1:
    jax.config.update("jax_enable_x64", sys.argv[1] == "on")
setting = jax.config.jax_enable_x64
dtypes = [str(jnp.ones(3).dtype)]
import odesim
ASK = dict(m=2, m_star=1, d=100, until=1.0, seed=0)
off = 0.0
"""
CALLS = {
    "integrate": """
for solver in (None, "euler"):
    step = {} if solver is None else {"solver": solver, "step": 0.01}
    runs = [odesim.integrate("liao", backend=name, **step, **ASK) for name in ("jax", "numba")]
    off = max(off, *(float(np.abs(runs[0][k] - runs[1][k]).max()) for k in runs[0].state))
kept = runs[0]
""",
    "stages": """
ask = dict(stage="train,prune", m=4, m_star=2, d=100, until=40.0, seed=0)
pairs = zip(*(odesim.integrate("liao", backend=name, **ask) for name in ("jax", "numba")))
off = max(float(np.abs(a[k] - b[k]).max()) for a, b in pairs for k in a.state)
""",
    "simulate": """
run = odesim.simulate("liao", method="explicit", step_size=1e-3, batch=4, **(ASK | {"until": 0.01}))
assert run.origin.precision == "float64"
again = odesim.simulate("liao", method="explicit", step_size=1e-3, batch=4, device="cpu", **(ASK | {"until": 0.01}))
off = max(float(np.abs(run[k] - again[k]).max()) for k in run.state)
""",
    "compare": """
ask = ASK | {"until": 0.1}
found = [odesim.compare("liao", method="explicit", step_size=1e-2, batch=4, backend=name, **ask).overall
         for name in ("jax", "jax")]
off = float(np.abs(found[0] - found[1]).max())
""",
    "linearise": """
run = odesim.integrate("liao", **ASK)
traced, plain = (odesim.linearise(run, method=name).jacobian for name in ("forward mode", "differences"))
off = float(np.abs(traced - plain).max())
""",
}
END = """
dtypes.append(str(jnp.ones(3).dtype))
print(json.dumps({"dtypes": dtypes, "kept": jax.config.jax_enable_x64 == setting,
                  "environment": dict(os.environ) == before, "off": off}))
"""


@pytest.mark.parametrize(
    ("call", "setting"), [*((call, "unset") for call in CALLS), ("integrate", "off"), ("integrate", "on")]
)
def test_a_users_jax_and_environment_stay_as_they_are_and_numbers_are_those_of_float64(call, setting):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "TF_CPP"))}
    words = [] if setting == "unset" else [setting]
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + CALLS[call] + END, *words], env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    expected = "float64" if setting == "on" else "float32"
    assert told["dtypes"] == [expected, expected] and told["kept"] and told["environment"]
    assert told["off"] < 1e-7


def test_jax_that_odesim_imports_first_is_the_users_too():
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "TF_CPP"))}
    code = (
        "import os; before = dict(os.environ)\nimport odesim\n"
        "odesim.integrate('liao', m=2, m_star=1, d=100, until=1.0, backend='jax')\n"
        "import jax.numpy as jnp; print(jnp.ones(3).dtype, *sorted(set(os.environ) - set(before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    dtype, *names = done.stdout.split()
    assert dtype == "float32" and set(names) <= {"TF_CPP_MIN_LOG_LEVEL", "TPU_SKIP_MDS_QUERY"}  # those of JAX itself


def test_where_float64_was_forgotten_arrays_are_refused():
    import jax

    from odesim.code.traced import split

    with jax.enable_x64(False), pytest.raises(RuntimeError, match=r"device\.double"):
        split((1.0,))
