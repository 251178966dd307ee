"""The stopwatch: every moment belongs to one part, and the parts add up."""

import time

import pytest

from killick import stopwatch as clocks
from killick.stopwatch import Seconds, Stopwatch, moment


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[Seconds]:
    """A clock that a test sets: its last entry is now."""
    times = [Seconds(0, 0)]
    monkeypatch.setattr(clocks, "moment", lambda: times[-1])
    return times


def test_laps_are_charged_by_part_and_add_up(at: list[Seconds]) -> None:
    """Two laps of 1 and 3 CPU seconds around one of 2: 4 and 2, together the 6 since the start."""
    watch = Stopwatch()
    for cpu, wall, part in ((1, 10, "sampling"), (3, 20, "update"), (6, 25, "sampling")):
        at.append(Seconds(cpu, wall))
        watch.lap(part)
    assert watch.spent == {"sampling": (4, 15), "update": (2, 10)}
    assert sum(part.cpu for part in watch.spent.values()) == 6
    assert watch.take() == {"sampling": (4, 15), "update": (2, 10)}
    at.append(Seconds(7, 27))
    watch.lap("update")
    assert watch.take() == {"update": (1, 2)}
    assert watch.take() == {}


def test_a_start_forgets_what_was_before_it(at: list[Seconds]) -> None:
    watch = Stopwatch()
    at.append(Seconds(5, 5))
    watch.lap("before")
    at.append(Seconds(9, 9))
    watch.start()
    at.append(Seconds(10, 12))
    watch.lap("after")
    assert watch.take() == {"after": (1, 3)}


def test_both_clocks_run_and_a_rest_costs_no_cpu() -> None:
    """A sleep of 50 ms is on the wall, work is on both."""
    before = moment()
    time.sleep(0.05)
    rested = moment()
    assert rested.wall - before.wall >= 0.05
    assert rested.cpu - before.cpu < 0.05
    sum(range(300_000))
    assert moment().cpu > rested.cpu
