"""A run is of its own model: everything that comes after it computes with the declaration that it carries."""

import copy
import functools
import json
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import xarray

import derivations
import odesim
from derivations.declare import reading
from derivations.declare.written_systems import stated
from odesim.cli import _run as command
from odesim.errors import ChangedDeclaration, UsageError
from odesim.store.files import MANIFEST
from odesim.store.folder import manifest_of, write_manifest
from odesim.store.manifest import file_hashes

ERF, RELU = "erf(w/sqrt(2))", "relu(w)"
ACCURACY = 1e-7
"""Ten times the tolerance of the integrations: a run in two parts takes other steps than one in a single part."""


def declared(unit, **more):
    return odesim.declare(student={"unit": unit, "units": 2}, teacher={"units": 2}, start={"overlap": 0.3}, **more)


def overlap(run):
    return float(run["M_ww"][-1, 0, 0])


def text_of(unit, more=""):
    return f'{more}[student]\nunits = 2\nunit = "{unit}"\n[teacher]\nunits = 2\n[start]\noverlap = 0.3\n'


@pytest.fixture(scope="module")
def whole():
    """The overlap at time 2 of one run of each model."""
    return {unit: overlap(odesim.integrate(declared(unit), until=2, save_points=3)) for unit in (ERF, RELU)}


def test_two_models_without_a_name_do_not_change_each_other(whole):
    models = {unit: declared(unit) for unit in (ERF, RELU)}
    runs = {unit: odesim.integrate(model, until=1, save_points=3) for unit, model in models.items()}
    assert abs(whole[ERF] - whole[RELU]) > 0.1
    for unit, run in runs.items():
        assert overlap(run.continue_(until=2)) == pytest.approx(whole[unit], abs=ACCURACY)
        assert overlap(odesim.integrate(initial=run, until=1)) == pytest.approx(whole[unit], abs=ACCURACY)
        assert overlap(odesim.integrate(models[unit], initial=run, until=1)) == pytest.approx(whole[unit], abs=ACCURACY)
        swept = odesim.sweep(models[unit], {"step": [0.001]}, until=2)
        assert float(swept["final_M_ww"].values[0, 0, 0]) == pytest.approx(whole[unit], abs=ACCURACY)


def test_a_variable_that_is_bound_again_stands_for_nothing(whole):
    for unit in (ERF, RELU):
        model = declared(unit)
        later = odesim.integrate(model, until=1, save_points=3).continue_(until=2)
        assert overlap(later) == pytest.approx(whole[unit], abs=ACCURACY)


@pytest.fixture
def edited(tmp_path):
    """A stored run of a file that states another model by now, and the run as it was made."""
    file = tmp_path / "committee.toml"
    file.write_text(text_of(ERF))
    run = odesim.integrate(str(file), until=1, save_points=3)
    run.save(tmp_path / "run", pictures=False)
    file.write_text(text_of(RELU))
    return file, run


def test_an_edited_file_leaves_its_runs_alone(edited, whole, tmp_path):
    file, run = edited
    stored = odesim.load(tmp_path / "run")
    for one in (run, stored):
        with pytest.warns(ChangedDeclaration, match="committee.toml has changed since this run"):
            later = one.continue_(until=2)
        assert overlap(later) == pytest.approx(whole[ERF], abs=ACCURACY)
        with pytest.warns(ChangedDeclaration):
            anew = odesim.integrate(initial=one, until=1)
        assert overlap(anew) == pytest.approx(whole[ERF], abs=ACCURACY)
    assert overlap(odesim.integrate(str(file), until=2, save_points=3)) == pytest.approx(whole[RELU], abs=ACCURACY)
    with pytest.raises(UsageError, match="has changed since the run: leave out system="):
        odesim.integrate(str(file), initial=run, until=1)
    again = odesim.integrate(str(file), until=1, save_points=3)
    with pytest.raises(UsageError, match="their models are both called committee but differ"):
        odesim.compare(run, again)


def test_the_command_says_that_the_file_has_changed(edited, whole, tmp_path):
    file, _ = edited
    call = [sys.executable, "-m", "odesim", "integrate", "--from", "run", "--until", "2", "--out", "later", "--quiet"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and overlap(odesim.load(tmp_path / "later")) == pytest.approx(whole[ERF], abs=ACCURACY)
    said = "odesim: committee.toml has changed since this run: the declaration stored with the run is used.\n"
    assert done.stderr == said
    file.unlink()
    assert overlap(odesim.load(tmp_path / "run").continue_(until=2)) == pytest.approx(whole[ERF], abs=ACCURACY)


def test_the_declaration_is_stored_and_states_the_same_model(edited, tmp_path):
    _, run = edited
    text = odesim.load(tmp_path / "run").manifest["declaration"]
    assert text == run.origin.declaration
    (tmp_path / "copy.toml").write_text(text)
    assert odesim.system(str(tmp_path / "copy.toml")).digest == run.origin.model.digest


@pytest.mark.parametrize("name", sorted(derivations.outside.gallery()))
def test_every_declaration_of_the_gallery_is_read_again_from_its_text(name):
    first = reading.from_file(Path(derivations.outside.gallery()[name]))
    again = stated(first.text)
    assert again == first and again.claims == first.claims and again.text == first.text and again.name == name


def test_a_gram_matrix_of_a_file_is_part_of_the_text(tmp_path):
    np.save(tmp_path / "gram.npy", np.array([[1.0, 0.25], [0.25, 4.0]]))
    (tmp_path / "model.toml").write_text(text_of(ERF).replace("[start]", 'gram = "gram.npy"\n[start]'))
    first = reading.from_file(tmp_path / "model.toml")
    (tmp_path / "gram.npy").unlink()
    assert stated(first.text) == first and first.gram == ((1.0, 0.25), (0.25, 4.0))


def test_a_run_of_an_earlier_version_is_of_its_file_as_long_as_that_is_the_same(edited, tmp_path):
    file, _ = edited
    manifest = {key: value for key, value in manifest_of(tmp_path / "run").items() if key != "declaration"}
    write_manifest(tmp_path / "run" / "manifest.json", manifest)
    with pytest.raises(UsageError, match="stored by an earlier version of odesim, without its declaration"):
        odesim.load(tmp_path / "run").continue_(until=2)
    file.write_text(text_of(ERF))
    assert odesim.load(tmp_path / "run").continue_(until=2).origin.name == "committee"


def test_other_processes_get_the_declaration_itself(whole):
    model = declared(ERF)
    swept = odesim.sweep(model, {"step": [0.001, 0.002]}, until=2, workers=2)
    assert swept["final_M_ww"].values[:, 0, 0] == pytest.approx([whole[ERF]] * 2, abs=ACCURACY)
    assert [verdict.answer for verdict in odesim.verify(model, ["drift", "gradient"], workers=2)] == ["confirmed"] * 2


SCRIPT = """
import numpy as np
import odesim
from odesim.errors import UsageError

print("top level")
model = odesim.declare(student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"units": 2}, start={"overlap": 0.3})
run = odesim.integrate(model, until=1, save_points=11)
run.continue_(until=2)
odesim.integrate(initial=run, until=1)
odesim.integrate(after=run, until=2)
run.save("run", pictures=False)
odesim.load("run").continue_(until=2)
trained = odesim.simulate(model, method="compressed", initial=run, d=50, until=1, save_points=3)
odesim.compare(run, odesim.simulate(model, method="compressed", d=1000, until=1, save_points=3))
odesim.observe(model, {"w": np.ones((2, 2, 9)), "w_star": np.eye(9)[:2]})
odesim.sweep(model, {"step": [0.1, 0.2]}, until=1)
odesim.linearise(run)
odesim.predict
run.pictures(), repr(run), run._repr_html_(), odesim.derive(model)
print("end")
"""


def test_a_script_runs_once_whatever_it_is_called(tmp_path):
    script = tmp_path / "01_train.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "top level\nend\n"


def test_a_system_written_in_python_is_not_imported_again_either(tmp_path):
    script = tmp_path / "02_own.py"
    teacher = Path(__file__).parents[2] / "outside" / "teacher"
    script.write_text(
        textwrap.dedent(f"""
        import sys, dataclasses
        sys.path.insert(0, {str(teacher.parent)!r})
        import odesim
        import teacher
        print("top level")
        SECOND = dataclasses.replace(teacher.SYSTEM, name="second")
        run = odesim.integrate(SECOND, d=9, until=1.0, save_points=3)
        later = run.continue_(until=2.0)
        assert later.origin.name == "second"
        """)
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0 and done.stdout == "top level\n", done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results of every kind: flows, SGD, stages, a comparison, a stored run, verdicts, a system."""
    file = tmp_path_factory.mktemp("pickled") / "committee.toml"
    file.write_text(text_of(ERF))
    small = {"m": 2, "m_star": 1, "d": 100, "until": 1}
    runs = {
        "liao": odesim.integrate("liao", save_points=3, **small),
        "gallery": odesim.integrate("saad_solla_1995", until=1, save_points=3),
        "file": odesim.integrate(str(file), until=1, save_points=3),
        "declared": odesim.integrate(declared(ERF), until=1, save_points=3),
        "sgd": odesim.simulate(str(file), method="compressed", d=50, until=1, save_points=3),
    }
    odesim.save(runs["file"], file.with_name("run"), pictures=False)
    return runs | {
        "stages": odesim.integrate("liao", stage="train,prune", **small),
        "comparison": odesim.compare("liao", step_size=0.01, batch=16, seeds=2, **small),
        "stored": odesim.load(file.with_name("run")),
        "verdicts": odesim.verify("liao", ["eq-5-sol"]),
        "system": odesim.system(str(file)),
    }


COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("way", COPIES)
def test_results_can_be_copied_and_pickled(results, way):
    for name, result in results.items():
        again = COPIES[way](result)
        assert type(again) is type(result) and repr(again) == repr(result), name
    again = COPIES[way](results["declared"])
    assert overlap(again.continue_(until=2)) == overlap(results["declared"].continue_(until=2))
    assert again.asked.parameters == results["declared"].asked.parameters


def test_a_process_of_a_pool_returns_a_run(tmp_path):
    (tmp_path / "committee.toml").write_text(text_of(ERF))
    call = functools.partial(odesim.integrate, str(tmp_path / "committee.toml"), until=1)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(call).result().time[-1] == 1.0


PLANTED = """
from pathlib import Path
Path(__file__).with_name("planted.txt").write_text("this ran")
SYSTEM = None
"""


@pytest.fixture(params=["{folder}/planted.py:SYSTEM", "planted:SYSTEM"])
def planted(request, tmp_path, monkeypatch):
    """Folders of a run, another run, a sweep and verdicts whose manifests name a module that writes a file."""
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted.py").write_text(PLANTED)
    reference = request.param.format(folder=tmp_path)
    run = odesim.integrate("liao", m=3, m_star=1, d=100, until=1.0, save_points=11)
    for name in ("run", "other"):
        run.save(name, pictures=False)
        manifest = manifest_of(name)
        manifest["request"]["system"] = manifest["origin"]["system"] = reference
        write_manifest(Path(name, MANIFEST), manifest)
    odesim.sweep("liao", {"d": [100, 200]}, m=3, m_star=1, until=1.0, save_points=11, folder="sweep")
    manifest = manifest_of("sweep")
    data = xarray.load_dataset("sweep/sweep.nc", engine="h5netcdf").assign_attrs(system=reference)
    data.to_netcdf("sweep/sweep.nc", engine="h5netcdf")
    write_manifest(Path("sweep", MANIFEST), {**manifest, "files": file_hashes(Path("sweep"))})
    odesim.verify("liao", "eq-5-sol").save("verdicts")
    manifest, answers = manifest_of("verdicts"), json.loads(Path("verdicts/verdicts.json").read_text())
    Path("verdicts/verdicts.json").write_text(json.dumps({**answers, "system": reference}))
    write_manifest(Path("verdicts", MANIFEST), {**manifest, "files": file_hashes(Path("verdicts"))})
    return reference


def test_opening_a_folder_runs_no_code(planted, capsys):
    for words in (
        ["show", "run"], ["show", "sweep"], ["show", "verdicts"], ["plot", "run"],
        ["report", "run", "sweep", "verdicts", "--out", "page.html"],
        ["explore", "run", "other", "--out", "runs.html"], ["explore", "sweep", "--out", "sweep.html"],
        ["compare", "run", "other", "--out", "both"],
    ):  # fmt: skip
        assert command(words) == 0, words
    assert Path("run/components.png").is_file() and Path("both/comparison.png").is_file()
    loaded = odesim.load("run")
    assert loaded.trajectory.origin.name == "planted"
    assert odesim.load("sweep").attrs["system"] == planted and odesim.load("verdicts")
    assert loaded.pictures() and loaded._repr_html_() and len(loaded.to_pandas()) == 11 and repr(loaded)
    odesim.explore([loaded, odesim.load("other")], "again.html")
    capsys.readouterr()
    for words in (["--until", "2"], ["--stage", "prune"]):
        assert command(["integrate", "--from", "run", *words]) == 2
        said = capsys.readouterr().err
        assert "odesim never imports code only because a run names it" in said and f"--system {planted}" in said
    for act in (
        lambda: loaded.continue_(until=2),
        lambda: odesim.integrate(initial=loaded, until=1),
        lambda: odesim.linearise(loaded),
        lambda: odesim.predict(loaded, {}),
    ):
        with pytest.raises(UsageError, match="never imports code only because a run names it"):
            act()
    assert not Path("planted.txt").exists()


def test_a_system_that_the_user_names_is_imported(planted):
    assert command(["integrate", "--from", "run", "--until", "2", "--system", planted]) == 2  # it holds no system
    assert Path("planted.txt").exists()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A model with a name of its own in a file, and its runs in folders."""
    place = tmp_path / "secret-folder"
    place.mkdir()
    monkeypatch.chdir(place)
    file = place / "committee.toml"
    file.write_text(text_of(ERF, 'name = "mine"\n'))
    run = odesim.integrate(str(file), until=1, save_points=11)
    run.save(place / "run")
    odesim.sweep(str(file), {"step": [0.1, 0.2]}, until=1, save_points=11, folder=place / "sweep")
    odesim.verify(str(file), "drift").save(place / "verdicts")
    return file, run


def test_a_name_is_honoured_and_no_path_is_shown(mine):
    file, run = mine
    place = str(file.parent)
    stored, data = odesim.load(file.parent / "run"), odesim.load(file.parent / "sweep")
    again = odesim.compare(run, odesim.simulate(str(file), method="compressed", d=100, seeds=3, until=1, save_points=5))
    shown = [repr(run), repr(stored), run._repr_html_(), stored._repr_html_(), repr(again), repr(odesim.linearise(run))]
    shown += [text.get_text() for figure in run.pictures().values() for text in figure.texts + [figure._suptitle]]
    odesim.report([file.parent / name for name in ("run", "sweep", "verdicts")], "page.html")
    odesim.explore([stored], "runs.html")
    odesim.explore(data, "sweep.html")
    pages = [Path(name).read_text(encoding="utf-8") for name in ("page.html", "runs.html", "sweep.html")]
    for text in [*shown, *pages]:
        assert place not in text and "secret-folder" not in text
    for text in (repr(run), repr(again), *pages):
        assert "mine" in text
    images = [path.read_bytes() for path in (file.parent / "run").glob("*.png")]
    assert images and all(b"secret-folder" not in image and b"mine" in image for image in images)
