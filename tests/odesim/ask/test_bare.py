"""A run that names no parameters takes what its system has for one; anything named leaves that out."""

import pytest

from odesim.ask import flow
from odesim.cli import main
from odesim.request.case import Case


def test_a_bare_run_of_kawata_recruits_neurons_and_one_with_parameters_is_at_the_defaults():
    assert flow.request("kawata", {}).parameters.M == 8
    assert flow.request("kawata", {"d": 500}).parameters.M == 1
    assert flow.request("kawata", {}, preset="vanilla").parameters.neurons == 1000
    assert flow.request("kawata", {}, stage="all").cases[0].parameters.M == 8


def test_what_is_given_stays_and_a_named_solver_brings_its_own_accuracy():
    assert flow.bare("chen", {}, {}) == {"preset": "quick", "rtol": 1e-5}
    assert flow.bare("chen", {}, {"rtol": 1e-9}) == {"preset": "quick"}
    assert flow.bare("chen", {}, {"solver": "euler", "step": 0.1}) == {"preset": "quick"}
    assert (
        flow.bare("chen", {"M": 2}, {})
        == flow.bare("chen", {}, {"initial": "x.npz"})
        == flow.bare("liao", {}, {})
        == {}
    )


def test_claims_and_cases_are_built_as_before():
    assert Case.build("kawata").parameters.M == 1 and Case.build("chen").rtol == 1e-8


def test_the_command_says_what_it_takes(capsys):
    with pytest.raises(SystemExit):
        main(["integrate", "--system", "kawata", "--dry-run"])
    assert "--preset phases" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["integrate", "--system", "kawata", "-p", "d=500", "--dry-run"])
    assert "no parameters" not in capsys.readouterr().err
