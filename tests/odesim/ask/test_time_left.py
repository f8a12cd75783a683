"""Remaining time in the progress display of a run."""

import io

import pytest

from odesim.ask.progress import Progress


@pytest.mark.parametrize(("left", "said"), [(90.0, ", about 90 s left"), (4e7, ", more than a year left"), (None, "s")])
def test_the_time_left_is_counted_up_to_a_year(left, said, monkeypatch):
    progress = Progress("integrating", quiet=True, stream=io.StringIO())
    progress.fraction = 1e-300
    monkeypatch.setattr(progress, "left", lambda: left)
    assert progress.state().endswith(said) and len(progress.state()) < 60
