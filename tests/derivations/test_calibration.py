"""Error rates of the laws on synthetic data of the designs in use, compared with the documentation."""

import dataclasses
import pathlib

import pytest

from derivations.laws import calibration

DESIGNS = {design.name: design for design in calibration.designs()}
TABLE = pathlib.Path(__file__).parents[2] / "docs" / "verdicts.md"


@pytest.fixture(scope="module")
def printed():
    """The rows of the table in the documentation: design -> shares in percent."""
    rows = [line.split("|")[1:-1] for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return {
        row[0].strip(): [float(cell.strip(" %")) for cell in row[1:]]
        for row in rows
        if all(cell.endswith(" % ") for cell in row[1:])
    }


@pytest.mark.parametrize("name", DESIGNS)
def test_a_law_seldom_holds_what_is_wrong_and_hardly_ever_refutes_what_is_true(name, printed):
    found = calibration.rates(DESIGNS[name])
    assert found.held_one <= 0.05
    assert found.held_two <= 0.01
    assert found.refuted_true <= 0.01
    shares = [100 * share for share in dataclasses.astuple(found)]
    assert shares == pytest.approx(printed[name], abs=0.51)  # two of 400 data sets may fall otherwise by rounding
