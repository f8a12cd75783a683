"""Arguments of public functions: a wrong one is one sentence, and arrays, symbols and names work as elsewhere."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy
import xarray

import odesim
from odesim.errors import MissingError

TINY = {"m": 2, "m_star": 1, "d": 100, "until": 0.1}


@pytest.fixture(scope="module")
def run():
    return odesim.integrate("liao", **TINY, save_points=3)


@pytest.fixture
def calls(run, tmp_path, monkeypatch):
    """A good call of every public function, by the arguments that it needs."""
    monkeypatch.chdir(tmp_path)
    committee = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
    weights = {"w": np.ones((3, 2, 10)), "w_star": np.eye(10)[:1]}
    return {
        "atlas": {"system": "arnaboldi_2023", "starts": 4},
        "bands": {"system": "collins_woodfin_2023", "until": 0.1, "save_points": 3},
        "check": {"system": "liao", "claims": "eq-5-sol", "step_size": 1e-2, "batch": 4, "seeds": 2, **TINY},
        "compare": {"first": "liao", "step_size": 1e-2, "batch": 4, "seeds": 2, **TINY},
        "declare": {"student": {"unit": "erf(w)"}, "teacher": {}},
        "derivatives": {"system": "pruning", "tier": "homogeneous"},
        "conventions": {"system": "saad_solla_1995"},
        "export": {"system": "saad_solla_1995", "to": "numpy"},
        "derive": {"system": "pruning", "tier": "homogeneous"},
        "explore": {"what": run, "out": "page.html"},
        "exponents": {"system": committee},
        "figures": {"only": "nothing of that name"},
        "gradient": {"system": "arnaboldi_2023", "of": "final error", "to": ["step"], "until": 0.5},
        "integrate": {"system": "liao", **TINY},
        "linearise": {"source": run},
        "load": {"folder": "nowhere"},
        "observe": {"system": committee, "weights": weights},
        "optimise": {"system": "arnaboldi_2023", "until": 0.5, "knots": 2},
        "predict": {"run": run, "inputs": {}},
        "report": {"folders": ["nowhere"], "out": "report.html"},
        "save": {"result": run, "folder": "kept", "pictures": False},
        "simulate": {"system": "liao", "method": "compressed", "step_size": 1e-2, "batch": 4, **TINY},
        "sweep": {"system": "liao", "over": {"d": [100]}, "m": 2, "m_star": 1, "until": 0.1},
        "system": {"name": "liao"},
        "systems": {},
        "verify": {"system": "liao", "claims": "eq-5-sol"},
    }


FUNCTIONS = sorted(name for name in odesim.__all__ if inspect.isfunction(getattr(odesim, name)))


def answer(name, arguments):
    """Call a function; the sentence of its refusal, or "" where it worked.  Any other exception is an error."""
    try:
        getattr(odesim, name)(**arguments)
    except (odesim.UsageError, MissingError) as error:
        return str(error)
    return ""


def test_every_public_function_is_asked(calls):
    assert sorted(calls) == FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_missing_or_misspelt_argument_is_a_sentence(name, calls):
    good = calls[name]
    needed = [p.name for p in inspect.signature(getattr(odesim, name)).parameters.values() if p.default is p.empty]
    for argument in set(needed) & set(good):
        said = answer(name, {key: value for key, value in good.items() if key != argument})
        assert argument in said and name in said
    assert "misspelt_argument" in answer(name, {**good, "misspelt_argument": 1})


def test_an_argument_of_a_wrong_type_is_a_sentence(tmp_path):
    """In a process of its own: here beartype would refuse the call before the program does."""
    script = Path(__file__).with_name("wrong_types.py")
    found = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert found.returncode == 0, found.stderr[-2000:]
    told = json.loads(found.stdout.splitlines()[-1])
    assert told["asked"] > 300 and told["wrong"] == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: odesim.simulate("liao"), 'simulate needs method: give method="explicit" or "compressed"'),
        (lambda: odesim.sweep("liao", overlap=[0.1]), "sweep needs over"),
        (lambda: odesim.linearise("liao", m=2), "linearise has no argument 'm'"),
        (lambda: odesim.sweep("liao", {"d": 100}), "lists or arrays of values"),
        (lambda: odesim.sweep("liao", {"d": "100"}), "lists or arrays of values"),
        (lambda: odesim.sweep("liao", {"d": [100]}, m=2, m_star=1, scheduler=None), "scheduler= must be a name"),
        (lambda: odesim.system(), "system needs name"),
        (lambda: odesim.systems("all"), "systems: too many positional arguments"),
    ],
)
def test_ordinary_slips_have_their_sentence(call, words):
    with pytest.raises(odesim.UsageError, match=words.replace("(", r"\(")):
        call()


@pytest.mark.parametrize(
    "values",
    [np.logspace(2, 4, 3), np.array([100, 1000, 10000]), xarray.DataArray([100, 1000, 10000]), (100, 1000, 10000)],
    ids=["logspace", "integers", "xarray", "tuple"],
)
def test_arrays_are_values_of_a_sweep(values):
    data = odesim.sweep("liao", {"d": values}, m=2, m_star=1, tier="riccati", until=1.0)
    assert data["d"].values.tolist() == [100, 1000, 10000] and (data["outcome"] == "completed").all()


def test_symbols_are_keys_of_a_flow():
    m, a = sympy.symbols("m a")
    flow = odesim.Flow({m: -a * m})
    found = flow.integrate({m: 1.0, a: 2.0}, until=1.0, save_points=3)
    assert found["m"].values == pytest.approx([1.0, np.exp(-1), np.exp(-2)], rel=1e-8)
    assert flow.hitting_times({m: 1.0, a: 2.0}, m, 0.5, until=9.0, direction=-1) == pytest.approx(np.log(2) / 2)


def test_a_run_is_asked_for_its_variables_as_a_mapping_is(run, tmp_path):
    stored = odesim.load(run.save(tmp_path / "run", pictures=False))
    for one in (run, stored):
        assert "gamma1" in one and "time" in one and "M_ww" not in one and 3 not in one
        assert list(one) == one.keys() and all(one[name] is not None for name in one.keys())
        assert set(dict(one)) == set(one.keys())
