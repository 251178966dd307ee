"""Who waits at the same time is answered in one go."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from killick.web.together import Together


class Clerk:
    """Doubles numbers, a batch at a time; the first batch waits for a sign."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, jobs: list[int]) -> list[int]:
        self.batches.append(jobs)
        self.begun.set()
        assert self.go.wait(10)
        if 13 in jobs:
            raise KeyError("thirteen")
        return [2 * job for job in jobs]


def waiting(ask: Together[int, int], count: int) -> None:
    """Until so many wait."""
    end = time.monotonic() + 10
    while len(ask.waiting) < count:
        assert time.monotonic() < end
        time.sleep(0.001)


def busy(clerk: Clerk, ask: Together[int, int], pool: ThreadPoolExecutor, jobs: list[int]) -> list[int]:
    """The answers to jobs that all came, in this order, while the clerk was busy with job 0."""
    futures = [pool.submit(ask, 0)]
    assert clerk.begun.wait(10)
    for count, job in enumerate(jobs, 1):
        futures.append(pool.submit(ask, job))
        waiting(ask, count)
    clerk.go.set()
    return [future.result(10) for future in futures[1:]]


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


def test_those_who_wait_make_one_batch_and_each_gets_its_own(clerk: Clerk) -> None:
    ask = Together(clerk, lambda job: 1, most=100)
    with ThreadPoolExecutor(9) as pool:
        assert busy(clerk, ask, pool, [5, 3, 8, 1]) == [10, 6, 16, 2]
    assert clerk.batches == [[0], [5, 3, 8, 1]]


def test_a_batch_holds_what_fits_the_oldest_first_and_a_large_job_goes_alone(clerk: Clerk) -> None:
    """Work is the number itself: 4 + 5 fit into 10, 6 more do not; 20 is more than a batch."""
    ask = Together(clerk, lambda job: job, most=10)
    with ThreadPoolExecutor(9) as pool:
        assert busy(clerk, ask, pool, [4, 5, 6, 20, 1]) == [8, 10, 12, 40, 2]
    assert clerk.batches == [[0], [4, 5], [6], [20], [1]]


def test_an_error_reaches_those_of_its_batch_and_no_others(clerk: Clerk) -> None:
    ask = Together(clerk, lambda job: 1, most=2)
    with ThreadPoolExecutor(9) as pool, pytest.raises(KeyError, match="thirteen"):
        busy(clerk, ask, pool, [13, 1, 2, 3])
    assert clerk.batches == [[0], [13, 1], [2, 3]]
    assert ask(4) == 8


def test_too_few_answers_are_an_error_and_nobody_waits_for_ever() -> None:
    ask = Together[int, int](lambda jobs: [], lambda job: 1, most=2)
    with pytest.raises(ValueError, match="zip"):
        ask(1)


def test_many_threads_get_what_they_asked_for() -> None:
    ask = Together[int, int](lambda jobs: [job * job for job in jobs], lambda job: 1, most=7)
    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(ask, range(500))) == [job * job for job in range(500)]
    assert ask.waiting == []
