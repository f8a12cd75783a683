"""The table of a sweep: what is swept for comes first, and nothing is there twice."""

import json

import numpy as np
import pytest

import odesim
from odesim.cli import _run as command
from odesim.sweeps import swept

INDEX = {
    "student": {"unit": "He(3, w)"},
    "training": {"loss": "correlation", "weights": "sphere"},
    "event": [{"name": "T_half", "of": "M_ww", "threshold": 0.5}],
}


def test_the_hitting_time_comes_first_and_is_that_of_the_flow():
    system = odesim.declare(**INDEX)
    overlaps = [0.1, 0.03, 0.01]
    data = odesim.sweep(system, {"overlap": overlaps}, until=400.0)
    header, rows, _ = swept.table(data)
    assert header[:2] == ["overlap", "T_half"]
    # m' = 18 m^2 (1 - m^2), solved by -1/m + artanh(m)
    wanted = [(-2.0 + np.arctanh(0.5) + 1 / m - np.arctanh(m)) / 18 for m in overlaps]
    assert [row[1] for row in rows] == pytest.approx(wanted, rel=1e-6)


def test_no_quantity_is_there_twice():
    for data in (
        odesim.sweep("liao", {"d": [100, 1000]}, m=3, m_star=1, until=20.0),
        odesim.sweep("saad_solla_1995", {"overlap": [0.1, 0.2]}, until=5.0),
    ):
        header, rows, _ = swept.table(data)
        assert "final_loss" in header and "loss_final" not in header and "loss_initial" in header
        assert len(set(header)) == len(header)
        columns = np.array([[float(x) for x in row] for row in rows]).T
        times = [k for k, name in enumerate(header) if name.startswith(("first_", "T_"))]
        for k in times:
            same = [n for n, other in zip(header, columns, strict=True) if np.array_equal(other, columns[k])]
            assert same == [header[k]] or np.isinf(columns[k]).all()


def test_of_several_entries_the_first_is_shown_and_all_are_kept():
    data = odesim.sweep("liao", {"seed": [0, 1]}, m=4, m_star=2, d=100, init="orthogonal", until=40.0)
    shown = swept.headlines(data)["first_T_gamma2"]
    np.testing.assert_array_equal(shown, data["T_gamma2"].min(["expert", "teacher"]))
    assert data["T_gamma2"].dims == ("seed", "expert", "teacher")


def test_json_has_the_same_names(tmp_path, capsys):
    words = ["--over", "d=100,200", "-p", "m=3", "-p", "m_star=1", "--until", "20", "--json", "--quiet"]
    assert command(["sweep", "--system", "liao", *words, "--workers", "1", "--out", str(tmp_path / "s")]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert list(results[0])[:3] == ["d", "outcome", "first_T_gamma1"] and "loss_final" not in results[0]


def test_sgd_has_hitting_times_where_its_curves_are_saved():
    given = {"method": "compressed", "step_size": 0.02, "batch": 4, "seeds": 2, "m": 3, "m_star": 1, "until": 1.0}
    few = odesim.sweep("liao", {"d": [50]}, **given)
    many = odesim.sweep("liao", {"d": [50]}, **given, save_points=11)
    assert "first_T_I2" not in swept.headlines(few) and "first_T_I2" in swept.headlines(many)


def test_cells_that_never_reach_the_threshold_are_counted():
    data = odesim.sweep(odesim.declare(**INDEX), {"overlap": [0.1, 0.03, 0.001]}, until=5.0)
    assert swept.not_reached(data) == ["T_half is not reached in 1 of 3 cells"]
    assert swept.not_reached(data.isel(overlap=slice(2))) == []
