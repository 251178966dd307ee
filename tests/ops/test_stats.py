"""Statistics: accuracy with ties, rank correlation against scipy, a bootstrap interval of known law."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr
from torch import Tensor

from killick.ops.stats import (
    bootstrap_interval,
    clustered_error,
    ends,
    pair_accuracy,
    pair_credit,
    rank_correlation,
    ranks,
    resampled_means,
)

modest = settings(max_examples=30, deadline=None, derandomize=True)
tied = st.integers(-3, 3)
pairs = st.lists(st.tuples(tied, tied), min_size=2, max_size=15)


def double(numbers) -> Tensor:
    """A float64 tensor."""
    return torch.tensor(numbers, dtype=torch.float64)


# Closed forms


def test_the_rank_correlation_of_a_reversed_order_is_minus_1() -> None:
    """Any increasing map of the same order gives 1, its reverse -1."""
    values = double([0.1, 5.0, -3.0, 2.0])
    assert rank_correlation(values, values.exp()) == pytest.approx(1.0, abs=1e-12)
    assert rank_correlation(values, -(values**3)) == pytest.approx(-1.0, abs=1e-12)


def test_without_ties_it_is_1_minus_6_times_the_squared_differences() -> None:
    """Orders (1, 2, 3, 4, 5) and (2, 1, 4, 5, 3): differences 1, 1, 1, 1, 2: 1 - 6 * 8 / (5 * 24) = .6."""
    assert rank_correlation(double([1, 2, 3, 4, 5]), double([2, 1, 4, 5, 3])) == pytest.approx(0.6, abs=1e-12)


def test_the_error_of_a_mean_over_groups_is_that_of_the_groups_means() -> None:
    """Means 1, 3, 8: deviation sqrt((9 + 1 + 16) / 2) = sqrt(13), over sqrt(3); what varies inside a group is no
    matter, and one group alone has no spread."""
    values = double([0, 2, 3, 3, 8, 8])
    assert clustered_error(values, n=2) == pytest.approx((13 / 3) ** 0.5, abs=1e-12)
    assert clustered_error(values, n=1) == pytest.approx(float(values.std()) / 6**0.5, abs=1e-12)
    assert clustered_error(values, n=6) is None


def test_a_constant_side_has_rank_correlation_0() -> None:
    """0 / 0 is defined as no relation, on either side and for one item."""
    assert rank_correlation(torch.ones(4), torch.tensor([1.0, 2.0, 3.0, 4.0])) == 0.0
    assert rank_correlation(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)) == 0.0
    assert rank_correlation(torch.tensor([1.0]), torch.tensor([2.0])) == 0.0


def test_a_pair_earns_1_0_or_the_credit_of_a_tie() -> None:
    chosen, rejected = double([2, 0, 1]), double([1, 1, 1])
    assert pair_credit(chosen, rejected).tolist() == [1, 0, 0.5]
    assert pair_credit(chosen, rejected, tie_credit=0.0).tolist() == [1, 0, 0]
    assert float(pair_accuracy(chosen, rejected)) == 0.5


@pytest.mark.parametrize(
    ("steps", "expected"), [(1, (0, 0)), (2, (0, 1)), (5, (0, 4)), (9, (0, 7)), (20, (0.5, 16.5)), (30, (1, 24.5))]
)
def test_ends_are_a_tenth_and_a_third_that_never_overlap(steps: int, expected: tuple[float, float]) -> None:
    """Of 0, 1, 2, ...: 9 steps end in 6, 7, 8; 20 begin with 0, 1 and end in 14 to 19; 30 in 20 to 29."""
    assert ends(range(steps)) == expected


def test_a_bootstrap_of_two_items_has_means_at_0_a_half_and_1() -> None:
    """Values (0, 1): means 0, .5, 1 with probability 1/4, 1/2, 1/4, so 95 % is (0, 1) and 40 % is (.5, .5)."""
    values = torch.tensor([0.0, 1.0])
    assert bootstrap_interval(values, torch.Generator().manual_seed(0)) == (0.0, 1.0)
    assert bootstrap_interval(values, torch.Generator().manual_seed(0), level=0.4) == (0.5, 0.5)


def test_a_bootstrap_of_equal_items_has_no_width() -> None:
    """Every resample has the same mean; one item alone as well."""
    for count in (1, 20):
        low, high = bootstrap_interval(torch.full((count,), 2.5), torch.Generator().manual_seed(1), draws=50)
        assert (low, high) == (2.5, 2.5)


# Invariants


@modest
@given(pairs)
def test_rank_correlation_agrees_with_scipy_with_ties(rows: list[tuple[int, int]]) -> None:
    """scipy.stats.spearmanr averages ties too; where a side is constant it has no value and ours is 0."""
    first, second = (double(side) for side in zip(*rows, strict=True))
    if len(set(first.tolist())) == 1 or len(set(second.tolist())) == 1:
        assert rank_correlation(first, second) == 0.0
    else:
        assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)


@modest
@given(st.lists(tied, min_size=1, max_size=20))
def test_ranks_agree_with_scipy(numbers: list[int]) -> None:
    """scipy.stats.rankdata with average ties is the oracle; the dtype is float64 also for float32 values."""
    got = ranks(torch.tensor(numbers, dtype=torch.float32))
    assert got.dtype == torch.float64
    assert got.tolist() == rankdata(numbers, method="average").tolist()


@modest
@given(pairs, st.floats(0, 1))
def test_pair_accuracy_is_the_plain_count(rows: list[tuple[int, int]], credit: float) -> None:
    """Wins plus credit for ties, over all pairs."""
    chosen, rejected = (double(side) for side in zip(*rows, strict=True))
    earned = math.fsum(1.0 if c > r else credit if c == r else 0.0 for c, r in rows)
    assert pair_accuracy(chosen, rejected, tie_credit=credit).item() == pytest.approx(earned / len(rows), abs=1e-12)


@modest
@given(pairs)
def test_swapping_the_sides_turns_accuracy_into_its_complement(rows: list[tuple[int, int]]) -> None:
    """O-03: acc(swapped) = 1 - acc, ties included at half credit."""
    chosen, rejected = (double(side) for side in zip(*rows, strict=True))
    swapped = pair_accuracy(rejected, chosen).item()
    assert swapped == pytest.approx(1 - pair_accuracy(chosen, rejected).item(), abs=1e-12)


@modest
@given(st.lists(st.floats(-10, 10), min_size=2, max_size=30), st.integers(0, 1000))
def test_the_interval_lies_inside_the_values_and_grows_with_the_level(values: list[float], seed: int) -> None:
    """low <= high, within the smallest and largest value; a narrower level is nested in a wider one."""
    wide = bootstrap_interval(double(values), torch.Generator().manual_seed(seed), level=0.95, draws=200)
    narrow = bootstrap_interval(double(values), torch.Generator().manual_seed(seed), level=0.5, draws=200)
    assert min(values) - 1e-9 <= wide[0] <= narrow[0] <= narrow[1] <= wide[1] <= max(values) + 1e-9


@modest
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=20), st.integers(-9, 9), st.integers(1, 9))
def test_the_interval_follows_shift_and_scale(values: list[int], shift: int, scale: int) -> None:
    """The same resamples of scale * x + shift have scaled and shifted means."""
    low, high = bootstrap_interval(double(values), torch.Generator().manual_seed(2), draws=100)
    moved = bootstrap_interval(scale * double(values) + shift, torch.Generator().manual_seed(2), draws=100)
    assert moved == pytest.approx((scale * low + shift, scale * high + shift), abs=1e-9)


# Numbers by hand


def test_ties_earn_half_a_point_or_none() -> None:
    """O-05: 5 right, 2 wrong, 3 equal: (5 + 1.5) / 10 = .65, strictly .5, never .8."""
    chosen = torch.tensor([1.0] * 5 + [0.0] * 2 + [0.5] * 3)
    rejected = torch.tensor([0.0] * 5 + [1.0] * 2 + [0.5] * 3)
    assert pair_accuracy(chosen, rejected).item() == pytest.approx(0.65)
    assert pair_accuracy(chosen, rejected, tie_credit=0.0).item() == pytest.approx(0.5)


def test_forty_pairs_without_ties_swap_to_the_exact_complement() -> None:
    """O-03: 29 of 40 right become 11 of 40."""
    chosen, rejected = torch.tensor([1.0] * 29 + [-1.0] * 11), torch.zeros(40)
    assert pair_accuracy(chosen, rejected).item() == 0.725
    assert pair_accuracy(rejected, chosen).item() == 0.275


def test_one_wrong_pair_in_a_short_last_batch_counts_once() -> None:
    """17 pairs, the last wrong: 16 / 17, whatever the batches were."""
    assert pair_accuracy(torch.tensor([1.0] * 16 + [-1.0]), torch.zeros(17)).item() == pytest.approx(16 / 17)


def test_ties_share_their_mean_rank() -> None:
    """(3, 1, 3, 2, 3): 1 is first, 2 second, the three 3s share (3 + 4 + 5) / 3 = 4."""
    assert ranks(torch.tensor([3.0, 1.0, 3.0, 2.0, 3.0])).tolist() == [4.0, 1.0, 4.0, 2.0, 4.0]


def test_the_rank_correlation_of_a_small_table_with_ties() -> None:
    """(1, 2, 2, 3) and (1, 3, 2, 3) have ranks (1, 2.5, 2.5, 4) and (1, 3.5, 2, 3.5), both with mean 2.5."""
    # Centred: (-1.5, 0, 0, 1.5) and (-1.5, 1, -.5, 1). Products 2.25 + 1.5 = 3.75; squares 4.5 and 4.5.
    assert rank_correlation(double([1, 2, 2, 3]), double([1, 3, 2, 3])) == pytest.approx(3.75 / 4.5, abs=1e-12)


# The bootstrap's law


def test_the_interval_of_many_items_is_the_normal_one() -> None:
    """0..399: mean 199.5 and population deviation sqrt((400^2 - 1) / 12); +-1.96 deviations / sqrt 400."""
    # An end drawn from 4,000 resamples has standard error sqrt(.025 * .975 / 4000) / .05845 = .0423 deviations.
    spread = math.sqrt((400**2 - 1) / 12) / math.sqrt(400)
    low, high = bootstrap_interval(torch.arange(400.0), torch.Generator().manual_seed(3), draws=4000)
    assert (low - 199.5) / spread == pytest.approx(-1.96, abs=4 * 0.0423)
    assert (high - 199.5) / spread == pytest.approx(1.96, abs=4 * 0.0423)


def test_an_80_percent_interval_covers_the_truth_about_80_times_in_100() -> None:
    """300 samples of 60 normal numbers; 4 standard errors are 4 sqrt(.8 * .2 / 300) = .092."""
    generator = torch.Generator().manual_seed(4)
    covered = 0
    for _ in range(300):
        low, high = bootstrap_interval(torch.randn(60, generator=generator), generator, level=0.8, draws=200)
        covered += low <= 0 <= high
    assert covered / 300 == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / 300))


def test_the_columns_of_a_resample_share_its_items() -> None:
    """A column that is twice the other has twice its mean in every row; and a mean of (0, 1) is 0, a half or 1."""
    values = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    means = resampled_means(values, torch.Generator().manual_seed(0), draws=100)
    assert means.shape == (100, 2)
    assert torch.equal(means[:, 1], 2 * means[:, 0])
    assert set(means[:, 0].tolist()) == {0.0, 0.5, 1.0}


def test_what_is_held_at_once_does_not_change_a_resample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven draws at a time, or all hundred."""
    values = torch.arange(30.0)[:, None]
    whole = resampled_means(values, torch.Generator().manual_seed(1), draws=100)
    monkeypatch.setattr("killick.ops.stats.RESAMPLED", 7 * 30)
    assert torch.equal(resampled_means(values, torch.Generator().manual_seed(1), draws=100), whole)


def test_the_interval_draws_from_its_generator_only() -> None:
    """One seed gives one interval, another seed another, and the global stream is left alone."""
    values, before = torch.arange(30.0), torch.get_rng_state()
    first = bootstrap_interval(values, torch.Generator().manual_seed(6), draws=100)
    assert bootstrap_interval(values, torch.Generator().manual_seed(6), draws=100) == first
    assert bootstrap_interval(values, torch.Generator().manual_seed(7), draws=100) != first
    assert torch.equal(torch.get_rng_state(), before)
