"""Tasks that a scheduler blames for the death of its workers are sent again, a few times."""

import concurrent.futures

import pytest

from odesim.errors import NumericalError
from odesim.machine import executor


class KilledWorker(Exception):
    """As `distributed` names it."""


class Pool:
    """Blames every task as often as `deaths` says, then computes it."""

    def __init__(self, deaths):
        self.deaths, self.sent = dict(deaths), []

    def submit(self, function, number):
        self.sent.append(number)
        future = concurrent.futures.Future()
        if self.deaths.get(number, 0) > 0:
            self.deaths[number] -= 1
            future.set_exception(KilledWorker(f"task {number}"))
        else:
            future.set_result(function(number))
        return future


def through(monkeypatch, deaths):
    """The answers, and what was sent."""
    pool = Pool(deaths)
    monkeypatch.setattr(executor, "_pool", lambda scheduler, workers: (pool, lambda: None))
    return dict(executor.completed(lambda n: n * n, [(0,), (1,), (2,)], "tcp://there", 2)), pool.sent


def test_what_waited_at_a_worker_that_died_is_sent_again(monkeypatch):
    answers, sent = through(monkeypatch, {1: 1, 2: executor.ROUNDS - 1})
    assert answers == {0: 0, 1: 1, 2: 4}
    assert [sent.count(number) for number in (0, 1, 2)] == [1, 2, executor.ROUNDS]


def test_a_task_that_kills_every_worker_ends_the_command(monkeypatch):
    with pytest.raises(NumericalError, match="worker process was killed"):
        through(monkeypatch, {1: executor.ROUNDS})
