"""The user scripts run and, in strict mode, satisfy pyright; wrong arguments are one sentence each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WRONG = {
    "odesim.verify('liao', 'lem-999')": "liao has no claim 'lem-999'; did you mean",
    "odesim.verify('liao', ['eq-5-sol'], effort='x')": "effort= must be one of quick, full, gpu, but 'x' was given.",
    "odesim.verify('liao', ['eq-5-sol'], workers='x')": "workers= must be a whole number",
    "odesim.simulate('liao', method='compressed', step_size=.1, batch=1.5)": "batch= must be a whole number",
    "odesim.simulate('liao', method='x', step_size=.1, batch=1)": "method= must be one of explicit, compressed, but",
    "odesim.integrate('liao', initial=[1, 2])": "initial= must be a run, an .npz file, or a mapping of arrays",
    "odesim.integrate(None)": "a system is missing: give its name",
    "odesim.integrate(5)": "a system is expected, but 5 was given",
    "odesim.integrate('liao', untill=3)": "integrate has no argument 'untill'; did you mean 'until'?",
    "odesim.integrate('liao', until=-1)": "until= must be above 0",
    "odesim.integrate('liao', until='soon')": "until= must be a finite number such as 0.5, or an expression",
    "odesim.integrate('liao', solver=5)": "solver= must be a name, but 5 was given",
    "odesim.integrate('liao', preset=['x'])": "preset= must be a name, but ['x'] was given",
    "odesim.integrate('liao', config=5)": "config= must be the path of a TOML file",
    "odesim.integrate(after=5)": "after=run needs a run or the folder of one, but got int",
    "odesim.compare('liao')": "step_size= is missing; give it, for example step_size=1e-3, batch=256",
    "odesim.compare(1, 2)": "compare takes two runs",
    "odesim.sweep('liao', 5)": "over= maps names to lists or arrays of values",
    "odesim.sweep('liao', {'d': [100, 464.2]})": (
        "over['d'] must be a whole number such as 25 or 1e6, but 464.2 was given. The nearest is 464."
    ),
    "odesim.declare(student={'unit': 'w'}, event={'of': 'M_ww'})": "in Python event is a list of mappings",
    "odesim.load(5)": "folder= must be a path, but 5 was given",
    "odesim.save(5, 'x')": "save takes a run",
    "odesim.derive('liao', 'x')": "format= must be one of",
}
TRIED = """
import json, odesim
said = {}
for text in json.loads(input()):
    try:
        eval(text)
    except odesim.UsageError as error:
        said[text] = str(error)
print(json.dumps(said))
"""


def test_every_wrong_argument_is_one_sentence():
    # In a process of its own: the type checks of the tests would answer first.
    done = subprocess.run(
        [sys.executable, "-c", TRIED], input=json.dumps(list(WRONG)), capture_output=True, text=True, timeout=120,
        check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for text, sentence in WRONG.items():
        assert sentence in said[text], text
        assert "\n" not in said[text] and "--" not in said[text], text


@pytest.mark.slow
def test_the_scripts_of_users_run(tmp_path):
    from tests.users import scripts

    assert abs(scripts.a_flow(100)) < 1
    assert scripts.going_on(2.0)[-1] == 2.0
    assert scripts.flow_against_sgd(2) == 2
    assert scripts.kept(tmp_path / "run") == "completed"
    assert scripts.answers("liao", "eq-5-sol") == ["refuted", "confirmed"]
    assert scripts.parameters("liao") == ["train", "prune", "tune"]
    assert scripts.grid() == (2, 3)
    assert "did you mean 'until'?" in scripts.mistake()


def test_what_dir_shows_is_public():
    import odesim

    assert dir(odesim) == sorted(odesim.__all__)
    for package in ("odesim", "derivations", "hermite"):
        assert (ROOT / package / "py.typed").is_file()


@pytest.mark.slow
def test_pyright_in_strict_mode_is_content_with_the_scripts():
    found = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(HERE / "scripts.py")],
        capture_output=True, text=True, timeout=300, check=False, cwd=ROOT,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
