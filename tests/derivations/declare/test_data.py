"""Inputs, spectra and teachers from files: read or refused, rotated, and found again by their digests."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import array_files, data, initial, parameter_class, reading, spectra, system, written_systems
from odesim.cli import _run as command

LINEAR = {"student": {"unit": "w"}, "training": {"step": 0.01}}


@pytest.fixture
def samples():
    """Rows (60, 7) of no simple law, with a constant column (number 2), rotated and shifted."""
    rng = np.random.default_rng(5)
    rows = rng.exponential(size=(60, 6)) @ rng.normal(size=(6, 6)) + 3.0
    return np.insert(rows, 2, 4.5, axis=1)


@pytest.fixture(autouse=True)
def forgetful():
    """Every test begins in a process that holds no arrays."""
    array_files._recent.clear()
    array_files._given.clear()


def inputs_of(made):
    return made.parameters.declaration.inputs


def blocks_of(made, **numbers) -> Any:
    return spectra.blocks(made.parameters(**numbers))


def covariance(rows):
    return np.cov(np.delete(rows, 2, axis=1).T, ddof=0)


def declared(samples, **tables):
    given = {**LINEAR, "teacher": {}, "inputs": {"data": samples}, **tables}
    return odesim.declare(**given)


# -- samples


def test_theory_takes_the_eigenvalues_of_the_covariance(samples):
    run = odesim.integrate(declared(samples), until=1, save_points=2)
    assert run["eigenvalue"] == pytest.approx(np.linalg.eigvalsh(covariance(samples))[::-1], rel=1e-10)
    assert (run.summary["samples"], run.summary["constant_columns"], run.summary["blocks"]) == (60, 1, 6)
    assert run.parameters["d"] == 6


def test_the_trace_scales_samples_and_eigenvalues_alike(samples):
    p = declared(samples, inputs={"data": samples, "trace": 2.5}).parameters()
    rows = spectra.samples(p)
    assert spectra.variances(p).mean() == pytest.approx(2.5)
    assert rows.T @ rows / len(rows) == pytest.approx(np.diag(spectra.variances(p)), abs=1e-10)
    assert rows.mean(0) == pytest.approx(np.zeros(6), abs=1e-12)


def test_few_blocks_keep_the_trace_of_the_covariance(samples):
    blocks = blocks_of(declared(samples, inputs={"data": samples, "bins": 3}))
    assert len(blocks.share) <= 3
    assert blocks.eigenvalue @ blocks.dimension == pytest.approx(np.trace(covariance(samples)), rel=1e-12)


def test_eigenvectors_are_orthonormal_with_signs_of_their_own(samples):
    basis = data.eigenbasis(inputs_of(declared(samples)).data)
    assert basis.vectors.T @ basis.vectors == pytest.approx(np.eye(6), abs=1e-12)
    turned = covariance(samples) @ basis.vectors
    assert turned == pytest.approx(basis.vectors * basis.eigenvalue, abs=1e-9)
    largest = np.abs(basis.vectors).argmax(0)
    assert (basis.vectors[largest, np.arange(6)] > 0).all()


def test_fewer_samples_than_columns_have_eigenvalues_of_zero():
    rng = np.random.default_rng(0)
    made = declared(rng.normal(size=(5, 12)))
    run = odesim.integrate(made, until=2, save_points=3)
    assert (run["eigenvalue"] > 0).sum() == 4
    assert np.isfinite(run.summary["spectrum_error"]) and np.isfinite(run["error"]).all()


def test_a_file_in_every_format_is_the_same_declaration(samples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", samples)
    np.savez("X.npz", samples)
    np.savetxt("X.csv", samples, delimiter=",", fmt="%.18g")
    names = ",".join(f"column {k}" for k in range(7))
    (tmp_path / "named.csv").write_text(f"{names}\n" + (tmp_path / "X.csv").read_text())
    made = {system.system(reading.declaration({**LINEAR, "teacher": {}, "inputs": {"data": f"X.{kind}"}})).digest
            for kind in ("npy", "npz", "csv")}  # fmt: skip
    made |= {declared(samples).digest, declared("named.csv").digest}
    assert len(made) == 1


def test_a_table_of_pandas_is_an_array(samples):
    pandas = pytest.importorskip("pandas")
    assert declared(pandas.DataFrame(samples)).digest == declared(samples).digest
    table = pandas.DataFrame({"age": [1.0, 2.0, 4.0], "name": ["a", "b", "c"]})
    with pytest.raises(UsageError, match="row 1, column 'name' is 'a'"):
        declared(table)


# -- weights in the columns of the file


def test_weights_are_in_the_columns_of_the_file(samples):
    rng = np.random.default_rng(1)
    weights = {"w": rng.normal(size=(1, 7)), "w_star": rng.normal(size=(1, 7))}
    run = odesim.integrate(declared(samples), initial=weights, until=1, save_points=2)
    both = np.delete(np.vstack([weights["w"], weights["w_star"]]), 2, axis=1)
    assert run["Q_ww"][0].sum() == pytest.approx(both[0] @ both[0])
    assert run["M_ww"][0].sum() == pytest.approx(both[0] @ both[1])
    # E[(f - f*)^2] of linear units is a form of the covariance, in any coordinates.
    assert run["error"][0] == pytest.approx((both[0] - both[1]) @ covariance(samples) @ (both[0] - both[1]), rel=1e-10)
    seen = odesim.observe(declared(samples), {**weights, "w": weights["w"][None]})
    assert seen["M_ww"][0] == pytest.approx(run["M_ww"][0])
    with pytest.raises(UsageError, match="of which there are 7, but their length is 6"):
        odesim.integrate(declared(samples), initial={k: v[:, :6] for k, v in weights.items()}, until=1)


def test_a_teacher_of_a_file_is_in_the_columns_too(samples):
    rng = np.random.default_rng(2)
    teacher, w = rng.normal(size=(2, 7)), rng.normal(size=(1, 7))
    made = declared(samples, teacher={"units": 2, "spread": teacher})
    whole = np.delete(teacher, 2, axis=1)
    run = odesim.integrate(made, until=1, save_points=2)
    assert run["P_ww"].sum(0) == pytest.approx(whole @ whole.T)
    vectors = np.linalg.eigh(covariance(samples))[1][:, ::-1]
    parts = whole @ vectors
    assert run["P_ww"] == pytest.approx(np.einsum("il,jl->lij", parts, parts), abs=1e-10)
    alone = odesim.integrate(made, initial={"w": w}, until=1, save_points=2)  # the teacher is that of the file
    both = odesim.integrate(made, initial={"w": w, "w_star": teacher}, until=1, save_points=2)
    assert np.array_equal(alone["M_ww"], both["M_ww"])


def test_a_teacher_of_a_file_stands_in_the_order_of_the_eigenvalues(tmp_path):
    teacher = np.array([[0.5, -1.0, 2.0, 0.25], [1.0, 1.0, 0.0, 3.0]])
    np.save(tmp_path / "teacher.npy", teacher)
    tables = {
        **LINEAR,
        "teacher": {"units": 2, "spread": "teacher.npy"},
        "inputs": {"blocks": [[2.0, 0.25], [1.0, 0.75]]},
    }
    made = system.system(reading.declaration(tables, folder=tmp_path))
    start = initial.enter(made.parameters(), None, np.random.default_rng(0))
    assert made.parameters().d == 4
    assert start.constants["P_ww"] == pytest.approx(
        np.array([teacher[:, :1] @ teacher[:, :1].T, teacher[:, 1:] @ teacher[:, 1:].T])
    )
    spectrum = {**tables, "inputs": {"spectrum": "j^(-1)", "bins": 2}}
    found = blocks_of(system.system(reading.declaration(spectrum, folder=tmp_path)))
    assert found.dimension.sum() == 4 and found.content is None


# -- spectra


@pytest.mark.parametrize("name", ["spectrum.npy", "spectrum.txt"])
def test_a_file_of_eigenvalues_is_the_spectrum(name, tmp_path, monkeypatch):
    values = np.arange(1, 301) ** -1.5
    shuffled = np.random.default_rng(0).permutation(values)
    np.save(tmp_path / name, shuffled) if name.endswith("npy") else np.savetxt(tmp_path / name, shuffled)
    (tmp_path / "m.toml").write_text(
        f'[student]\nunit = "w"\n[teacher]\nspread = "j^(-0.3)"\n[inputs]\nspectrum = "{name}"\nbins = 20\n'
    )
    made = odesim.system(str(tmp_path / "m.toml"))  # from another folder: names are relative to the file
    other = odesim.declare(**LINEAR, teacher={"spread": "j^(-0.3)"}, inputs={"spectrum": "j^(-1.5)", "bins": 20})
    one, two = blocks_of(made), blocks_of(other, d=300)
    assert one.eigenvalue == pytest.approx(two.eigenvalue, rel=1e-12)
    assert one.content == pytest.approx(two.content, rel=1e-12) and one.error == pytest.approx(two.error, abs=1e-12)
    assert spectra.variances(made.parameters()) == pytest.approx(values)
    odesim.integrate(made, d=300, until=1, save_points=2)
    with pytest.raises(UsageError, match=f"d is 300, the dimension of {name}, but d = 200"):
        odesim.integrate(made, d=200, until=1)


def test_long_spectra_are_summed_term_by_term(monkeypatch):
    values = np.random.default_rng(1).pareto(3, size=3000)
    made = odesim.declare(**LINEAR, teacher={}, inputs={"spectrum": values, "bins": 50})
    monkeypatch.setattr(spectra, "WHOLE", 100)
    spectra._blocks.cache_clear()
    found = blocks_of(made)
    spectra._blocks.cache_clear()
    assert found.dimension @ found.eigenvalue == pytest.approx(values.sum(), rel=1e-12)
    assert found.dimension @ found.eigenvalue**2 == pytest.approx((values**2).sum(), rel=1e-12)


# -- stored runs, and files that change


def model_file(folder, rows):
    folder.mkdir(exist_ok=True)
    np.save(folder / "X.npy", rows)
    (folder / "m.toml").write_text('[student]\nunit = "w"\n[teacher]\n[inputs]\ndata = "X.npy"\n')
    return folder / "m.toml"


def test_a_stored_run_is_opened_without_its_file(samples, tmp_path):
    file = model_file(tmp_path / "model", samples)
    made = odesim.integrate(odesim.system(str(file)), until=1, save_points=2)
    made.save(tmp_path / "run", pictures=False)
    (tmp_path / "model" / "X.npy").unlink()
    forget()
    run = odesim.load(tmp_path / "run")
    assert np.array_equal(run["M_ww"], made["M_ww"])
    own = run.trajectory.origin.known
    with pytest.raises(UsageError, match=r"X\.npy.*No such file.*the declaration was made with this file"):
        odesim.integrate(own, until=1)
    np.save(tmp_path / "model" / "X.npy", samples + np.eye(60, 7))
    with pytest.raises(UsageError, match="has changed since the model was declared"):
        odesim.integrate(own, until=1)
    np.save(tmp_path / "model" / "X.npy", samples)
    again = odesim.integrate(own, until=1, save_points=2)
    assert np.array_equal(again["M_ww"], made["M_ww"])


def forget():
    """Let the process hold nothing, as a new one."""
    array_files._recent.clear()
    array_files._given.clear()
    for cached in (
        spectra._blocks,
        data.eigenbasis,
        written_systems.of_text,
        written_systems._of_file,
        parameter_class._parameters_of,
    ):
        cached.cache_clear()


def test_a_file_that_changes_is_read_anew(samples, tmp_path):
    file = model_file(tmp_path / "model", samples)
    first = odesim.system(str(file))
    np.save(tmp_path / "model" / "X.npy", 2 * samples)
    os.utime(tmp_path / "model" / "X.npy", ns=(1, 1))
    second = odesim.system(str(file))
    sums = [spectra.variances(made.parameters()).sum() for made in (first, second)]
    assert first.digest != second.digest and sums[1] == pytest.approx(4 * sums[0])


def test_two_files_of_one_name_are_two_models(samples, tmp_path):
    both = [odesim.system(str(model_file(tmp_path / name, factor * samples))) for name, factor in (("a", 1), ("b", 3))]
    sums = [spectra.variances(made.parameters()).sum() for made in both]
    assert sums[1] == pytest.approx(9 * sums[0])
    runs = [odesim.integrate(made, until=0.1, save_points=2) for made in both]
    assert runs[1]["error"][0] == pytest.approx(9 * runs[0]["error"][0])


def test_an_array_of_python_is_found_by_other_processes_through_the_cache(samples):
    made = declared(samples)
    forget()
    again = written_systems.of_text(made.declaration, "again")
    assert odesim.integrate(again, until=0.1, save_points=2).summary["samples"] == 60
    forget()
    Path(inputs_of(made).data.path).unlink()
    with pytest.raises(UsageError, match="from Python, which this process does not have"):
        odesim.integrate(written_systems.of_text(made.declaration, "again"), until=0.1)


# -- refusals

ROWS = np.random.default_rng(3).normal(size=(4, 3))
BAD_FILES = {
    "missing": ("inputs", "data", "nowhere.npy", None, "cannot read .*nowhere.npy"),
    "one sample": ("inputs", "data", "X.npy", ROWS[:1], "has 1 sample"),
    "one axis": ("inputs", "data", "X.npy", ROWS[0], r"shape \(samples, d\), but has \(3,\)"),
    "not a number": ("inputs", "data", "X.npy", np.where(ROWS > 0, ROWS, np.nan), "contains nan in row"),
    "infinite": ("inputs", "data", "X.npy", np.full((3, 3), np.inf), "contains inf in row 1, column 1"),
    "constant": ("inputs", "data", "X.npy", np.ones((5, 3)), "every column of X.npy is constant"),
    "complex": ("inputs", "data", "X.npy", 1j * ROWS, "complex"),
    "text": ("inputs", "data", "X.csv", "a,b\n1,2\n3,x\n", "line 3, column 2: expected a number, but got 'x'"),
    "empty cell": (
        "inputs",
        "data",
        "X.csv",
        "1,2\n3,\n",
        "line 2, column 2: expected a number, but the cell is empty",
    ),
    "short line": ("inputs", "data", "X.csv", "1,2\n3\n", "line 2: expected 2 numbers as before, but got 1"),
    "no table": ("inputs", "data", "X.csv", "", "empty"),
    "damaged": ("inputs", "data", "X.npy", "no array", "not a valid .npy file"),
    "damaged npz": ("inputs", "data", "X.npz", "no array", "not a valid .npz file"),
    "negative": ("inputs", "spectrum", "s.npy", np.array([1.0, -2.0]), "number 2 of s.npy is -2"),
    "zero": ("inputs", "spectrum", "s.npy", np.array([1.0, 0.0]), "eigenvalues must be above 0"),
    "matrix": ("inputs", "spectrum", "s.npy", ROWS**2, r"shape \(d,\), but has the shape \(4, 3\)"),
    "zero teacher": ("teacher", "spread", "t.npy", np.zeros((1, 3)), "row 1 of t.npy is zero"),
    "stack": ("teacher", "spread", "t.npy", np.ones((1, 1, 3)), r"shape \(teachers, d\)"),
    "covariance": ("inputs", "data", "C.npy", np.cov(ROWS.T), "a symmetric matrix, not a table of samples"),
}


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_files_are_refused_in_a_sentence(name, tmp_path):
    table, key, file, content, said = BAD_FILES[name]
    if isinstance(content, str):
        (tmp_path / file).write_text(content)
    elif content is not None:
        np.save(tmp_path / file, content)
    entries = {"inputs": "blocks = [[1.0, 1.0]]\n", "teacher": ""}
    entries[table] = f'{key} = "{file}"\n'
    (tmp_path / "m.toml").write_text(
        f'[student]\nunit = "w"\n[teacher]\n{entries["teacher"]}[inputs]\n{entries["inputs"]}'
    )
    with pytest.raises(UsageError, match=said) as error:
        odesim.system(str(tmp_path / "m.toml"))
    assert "\n" not in str(error.value) and "m.toml, line" in str(error.value)


def test_two_arrays_of_an_npz_file_are_refused(tmp_path):
    np.savez(tmp_path / "X.npz", a=ROWS, b=ROWS)
    with pytest.raises(UsageError, match="contains 2 arrays, a, b"):
        declared(str(tmp_path / "X.npz"))


def test_what_does_not_fit_together_is_refused(samples):
    for tables, said in (
        ({"inputs": {"data": samples, "spectrum": "j"}}, "one of the four"),
        ({"inputs": {"data": [[1.0, 2.0]]}}, "data is a file of samples"),
        ({"teacher": {"spread": np.ones((1, 5))}}, "vectors of 5 coordinates, but the inputs .* have 7"),
        ({"teacher": {"spread": np.ones((1, 7)), "gram": 0.1}}, "leave out gram"),
        ({"teacher": {"spread": np.eye(7)[:3]}}, "must be 1 x 1, but is 3 x 3"),
        ({"teacher": {"spread": np.eye(7)[2:3]}}, "zero on its diagonal"),  # along a constant column
        ({"teacher": {"spread": [0.5, 0.5]}}, "for a spectrum give"),
        ({"training": {"step": 0.01}, "inputs": {"data": {"sha256": "0"}}}, "name of a file"),
    ):
        with pytest.raises(UsageError, match=said):
            odesim.integrate(declared(samples, **tables), until=1)


def test_the_command_refuses_by_its_code_for_mistakes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model_file(tmp_path, ROWS[:1])
    assert command(["integrate", "--system", "m.toml", "--until", "1", "--dry-run"]) == 2
    assert "has 1 sample" in capsys.readouterr().err
