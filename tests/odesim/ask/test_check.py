"""The request of a check: SGD beside the flow at steps and batches that show something."""

import dataclasses

import pytest

import derivations
import odesim
from odesim.ask import check as ask
from odesim.evidence.check import Request

UNIT = {"student": {"unit": "He(2, w)"}, "teacher": {}}


def pair(system, **options):
    found = ask.request(system, **options)
    assert found.pair is not None, found.missing
    return found.pair


def test_a_flow_is_followed_in_two_thousand_steps_of_little_noise():
    made = odesim.declare(**UNIT, training={"until": 4.0})
    found = pair(made, parameters={"d": 500})
    assert found.simulation.steps == ask.STEPS and found.case.until == 4.0
    assert found.step_size * 500 / found.batch == pytest.approx(ask.NOISE, rel=1e-2)


def test_what_takes_too_many_samples_ends_earlier_or_is_left_out():
    made = odesim.declare(**UNIT, training={"until": 4.0})
    found = pair(made, parameters={"d": 40_000})
    assert 0.02 * 4.0 < found.case.until < 4.0
    assert found.simulation.steps * found.batch == pytest.approx(ask.SAMPLES, rel=0.02)
    with pytest.raises(odesim.UsageError, match="samples per step"):
        ask.request(made, parameters={"d": 10**7})


def test_a_model_with_steps_of_its_own_keeps_them():
    made = odesim.declare(**UNIT, training={"limit": "online", "step": 0.05, "until": 1.0})
    found = pair(made, parameters={"d": 100})
    assert (found.step_size, found.batch) == (pytest.approx(0.05 / 100), 1)


@pytest.mark.parametrize("name", derivations.folders())
def test_the_papers_bring_a_setting(name):
    system = derivations.system(name)
    found = pair(system)
    assert (found.step_size, found.batch) == (system.beside["step_size"], system.beside["batch"])
    assert found.simulation.replicas == 5


def test_options_take_the_place_of_the_setting():
    found = pair(derivations.system("liao"), step_size=0.02, batch=50, seeds=3, until=1.0, parameters={"d": 60})
    assert (found.step_size, found.batch, found.simulation.replicas) == (0.02, 50, 3)
    assert found.case.until == 1.0 and found.case.parameters.d == 60 and found.case.parameters.m != 2


def test_a_system_that_cannot_be_compared_says_why():
    liao = derivations.system("liao")
    bare = dataclasses.replace(liao, beside={"stage": "prune"})
    found = ask.request(bare, "lem-1")
    assert found.pair is None and "has no finite-sample model" in found.missing


def test_the_digest_knows_what_decides_the_answer():
    system = derivations.system("saad_solla_1995")
    first = ask.request(system, "plateau")
    again = ask.request(system, ["plateau"])
    others = [
        ask.request(system),
        ask.request(system, "plateau", seed=1),
        ask.request(system, "plateau", effort="full"),
        ask.request(system, "plateau", seeds=3),
        ask.request(system, "plateau", compared=False),
    ]
    assert isinstance(first, Request) and first.digest == again.digest
    assert len({first.digest, *(other.digest for other in others)}) == 6


def test_a_run_that_ends_early_ends_on_a_step():
    # 2,000 steps of saad_solla_1995 at 60,000 samples each are too many; the flow would end between two of the rest.
    training = pair(derivations.system("saad_solla_1995")).simulation
    assert training.case.until < 600 and training.steps < ask.STEPS
    assert training.steps * training.tick == pytest.approx(training.case.until, rel=1e-12)
