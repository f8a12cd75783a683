"""`odesim systems NAME` describes every system at its defaults, whatever its tiers ask for when they run."""

import pytest

import derivations
from odesim.cli.inform import describe
from odesim.request.case import find_system


@pytest.mark.parametrize("name", derivations.names())
def test_every_tier_of_every_system_is_described(name):
    system = find_system(name)
    described = describe(system)
    for stage, told in zip(system.stages, described["stages"], strict=True):
        assert [tier["name"] for tier in told["tiers"]] == (list(stage.tiers) if stage.equations else [])
        assert all(tier["state"] and tier["validity"] for tier in told["tiers"])
