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


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("liao", {"m": 3, "m_star": 1, "d": 100, "until": {"train": 1.0, "tune": 2.0}, "stage": "all"}),
        ("kawata", {"until": 0.01}),
        ("chen", {"tier": "group2", "until": 0.01}),
        ("chen", {"tier": "spec", "until": 0.01}),
        ("pmoe", {"until": 1.0}),
        ("pruning", {"until": {"tune": 20.0, "post-tune": 30.0}, "stage": "all"}),
        ("pruning", {"tier": "homogeneous", "until": 2.0}),
    ],
)
def test_every_key_of_a_summary_has_a_sentence(name, request_):
    import odesim

    found = odesim.integrate(name, save_points=3, **request_)
    sentences = describe(find_system(name))["summary"]
    for run in found if isinstance(found, list) else [found]:
        assert set(run.summary) <= set(sentences)
    assert all(sentence for sentence in sentences.values())
