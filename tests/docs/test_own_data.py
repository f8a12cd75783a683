"""The tutorial on real images: its cells run, and its sentences hold for what they compute."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "own-data.md"


def stated(pattern):
    """The number that a sentence of the page states."""
    return float(re.search(pattern, " ".join(TUTORIAL.read_text(encoding="utf-8").split()))[1])


@pytest.mark.slow
def test_the_sentences_on_real_images_hold(capsys):
    space = {}
    with mpl.rc_context({"backend": "agg"}):
        for cell in re.findall(r"```\{code-cell\} python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL):
            exec(re.sub(r"^:tags:.*\n", "", cell), space)
    across, single, learned = space["across"], space["single"], space["learned"]
    assert "random direction, SGD on images" in capsys.readouterr().out
    times = {}
    for name, found in (("direction", across), ("pixel", single)):
        theory, gaussian = learned(found.first), learned(found.gaussian.second)
        # Of 12 replicas the median time scatters by some per cents.
        assert gaussian == pytest.approx(theory, rel=0.2)
        times[name] = gaussian, learned(found.second) / gaussian
    assert times["direction"][1] == pytest.approx(
        stated(r"takes (\S+) times as long as on Gaussian inputs to"), rel=0.1
    )
    assert times["pixel"][1] == pytest.approx(stated(r"and (\S+) times as long to learn the pixel"), rel=0.1)
    replaced = learned(space["control"]) / times["pixel"][0]
    assert replaced == pytest.approx(stated(r"With this field SGD takes (\S+) times as long"), rel=0.1)
    assert 0.5 < (replaced - 1) / (times["pixel"][1] - 1) < 0.8
    assert learned(single.second) * 61 == pytest.approx(stated(r"SGD draws (\d+) times"), rel=0.1)
    # The covariance is that of the images, but for the 20,000 samples.
    assert space["fourth_moment"](space["pixel"], space["replaced"]) == pytest.approx(
        space["fourth_moment"](space["pixel"]), rel=0.05
    )
