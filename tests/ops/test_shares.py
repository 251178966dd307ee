"""Shares: Wilson's interval by hand and by its definition, and the fair coin's test by counting."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.ops.shares import fair_coin_p, grouped_interval, share_interval


def test_the_chance_that_a_fair_coin_strays_as_far() -> None:
    """None of 5: 2 / 32. 8 of 10: 2 (45 + 10 + 1) / 1024. Half of ten is never strange; no throw at all neither."""
    assert fair_coin_p(0, 5) == pytest.approx(2 / 32)
    assert fair_coin_p(8, 10) == pytest.approx(2 * 56 / 1024)
    assert fair_coin_p(2, 10) == pytest.approx(fair_coin_p(8, 10))
    assert fair_coin_p(5, 10) == 1.0
    assert fair_coin_p(0, 0) == 1.0
    assert fair_coin_p(60_000, 100_000) < 1e-300


def test_the_interval_of_a_share() -> None:
    """Wilson's for 8 of 10, worked by hand with z = 1.96: centre (.8 + .19208) / 1.38416, reach .22593."""
    assert share_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=5e-4)


def test_the_interval_of_a_share_that_was_never_seen() -> None:
    """Wilson's upper end at no hit is z^2 / (n + z^2): 3.841459 / 13.841459 = .277533 at n = 10."""
    low, high = share_interval(0, 10)
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(0.277533, abs=1e-6)
    assert share_interval(0, 0) == (0.0, 1.0)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_ends_of_an_interval_are_as_far_as_z_deviations(drawn: tuple[int, int]) -> None:
    """At an end p inside (0, 1) the observed share lies 1.959964 deviations of p from p: Wilson's definition."""
    hits, trials = drawn
    for p in share_interval(hits, trials):
        if 1e-9 < p < 1 - 1e-9:
            assert abs(hits / trials - p) == pytest.approx(1.959964 * math.sqrt(p * (1 - p) / trials), rel=1e-5)


def test_groups_of_one_are_independent_trials() -> None:
    assert grouped_interval([1.0] * 8 + [0.0] * 2, range(10)) == pytest.approx(share_interval(8, 10))


def test_copies_within_a_group_tell_nothing_new() -> None:
    """Ten prompts of four pairs that are all alike are ten trials, and so they are where every pair is right."""
    for right in (8, 10):
        credits = [float(prompt < right) for prompt in range(10) for _ in range(4)]
        groups = [prompt for prompt in range(10) for _ in range(4)]
        assert grouped_interval(credits, groups) == pytest.approx(share_interval(right, 10))


def test_groups_that_differ_as_strangers_do_count_every_pair() -> None:
    """Sums of 4, 3, 3, 2 of 4: spread (1 + 0 + 0 + 1) / 256 about .75, so .1875 x 128 = 24 trials, of which 16 there
    are."""
    credits = [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 0]
    assert grouped_interval(credits, [place // 4 for place in range(16)]) == pytest.approx(share_interval(12, 16))


def test_half_agreeing_groups_lie_between() -> None:
    """Sums of 3, 1, 3, 1 of 3 about 2: spread 4 / 144; (2/3) (1/3) / (4 / 144) = 8 trials from 12 pairs."""
    credits = [1, 1, 1, 1, 0, 0] * 2
    found = grouped_interval(credits, [place // 3 for place in range(12)])
    assert found == pytest.approx(share_interval(8 * 2 / 3, 8))


def test_no_pair_at_all_says_nothing() -> None:
    assert grouped_interval([], []) == (0.0, 1.0)
