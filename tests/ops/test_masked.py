"""Sums, means and whitening: numbers by hand, and blindness to whatever stands on the padding."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.masked import masked_mean, masked_sum, whiten

modest = settings(max_examples=30, deadline=None, derandomize=True)
ragged = st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=5), min_size=1, max_size=4)
junk = st.sampled_from([0.0, 1e6, -1e30, math.inf, -math.inf, math.nan])


def padded(rows: list[list[float]], fill: float = 0.0, extra: int = 2) -> tuple[Tensor, Tensor]:
    """Rows of unlike length on the left of a rectangle filled with `fill`, and where they are."""
    width = max(map(len, rows)) + extra
    values = torch.full((len(rows), width), fill, dtype=torch.float64)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, numbers in enumerate(rows):
        values[row, : len(numbers)] = torch.tensor(numbers, dtype=torch.float64)
        mask[row, : len(numbers)] = True
    return values, mask


def grad(leaf: Tensor) -> Tensor:
    """What backward left on a leaf."""
    assert leaf.grad is not None
    return leaf.grad


# Closed forms


def test_the_sum_of_1_to_k_is_k_times_k_plus_1_over_2() -> None:
    """Rows 1..k for k = 1..6 sum to the triangular numbers."""
    values, mask = padded([[float(i) for i in range(1, k + 1)] for k in range(1, 7)], fill=99.0)
    assert masked_sum(values, mask, dim=1).tolist() == [1.0, 3.0, 6.0, 10.0, 15.0, 21.0]
    assert masked_sum(values, mask).item() == 56.0
    assert masked_mean(values, mask, dim=1).tolist() == [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]


def test_two_values_whiten_to_plus_and_minus_one_over_root_two() -> None:
    """(a, b) has sample deviation |a - b| / sqrt 2, so the whitened pair is -+ 1 / sqrt 2 whatever a and b are."""
    values, mask = padded([[3.0, 10.0]], fill=5.0)
    half = 1 / math.sqrt(2)
    assert_close(whiten(values, mask), torch.tensor([[-half, half, 0.0, 0.0]], dtype=torch.float64))


def test_1_to_k_whiten_to_steps_of_the_triangular_deviation() -> None:
    """1..k has sample variance k (k + 1) / 12."""
    k = 7
    values, mask = padded([[float(i) for i in range(1, k + 1)]])
    step = 1 / math.sqrt(k * (k + 1) / 12)
    assert_close(whiten(values, mask)[0, :k].diff(), torch.full((k - 1,), step, dtype=torch.float64))


@pytest.mark.parametrize(
    ("mean", "deviation", "survives"),
    [
        (0.0, 5e-7, False),  # below 1e-6 max(1, 0)
        (0.0, 2e-6, True),
        (1e-3, 5e-7, False),  # the floor does not shrink with a small mean
        (1000.0, 5e-4, False),  # below 1e-6 * 1000
        (1000.0, 2e-3, True),
        (-1000.0, 5e-4, False),  # the size of the mean counts, not its sign
    ],
)
def test_a_deviation_below_a_millionth_of_the_mean_is_rounding(mean: float, deviation: float, survives: bool) -> None:
    """O-35: the floor is 1e-6 max(1, |mean|); mean -+ s / sqrt 2 has sample deviation s."""
    half = deviation / math.sqrt(2)
    values, mask = padded([[mean - half, mean + half]])
    expected = [-1 / math.sqrt(2), 1 / math.sqrt(2)] if survives else [0.0, 0.0]
    assert_close(whiten(values, mask)[0, :2], torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-12)


# Invariants


@modest
@given(ragged, junk)
def test_padding_never_enters_a_sum_a_mean_or_a_whitening(rows: list[list[float]], fill: float) -> None:
    """O-33: infinities and NaN on the padding change no bit."""
    clean, mask = padded(rows, 0.0)
    dirty, _ = padded(rows, fill)
    for dim in (None, 0, 1):
        assert torch.equal(masked_sum(dirty, mask, dim=dim), masked_sum(clean, mask, dim=dim))
        assert torch.equal(masked_mean(dirty, mask, dim=dim), masked_mean(clean, mask, dim=dim))
    for centre in (True, False):
        white = whiten(dirty, mask, centre=centre)
        assert torch.equal(white, whiten(clean, mask, centre=centre))
        assert (white[~mask] == 0).all()


@modest
@given(ragged)
def test_sum_and_mean_agree_with_plain_python(rows: list[list[float]]) -> None:
    """math.fsum over lists is the oracle."""
    values, mask = padded(rows, math.nan)
    everything = [number for row in rows for number in row]
    assert masked_sum(values, mask).item() == pytest.approx(math.fsum(everything), abs=1e-9)
    assert masked_mean(values, mask).item() == pytest.approx(math.fsum(everything) / len(everything), abs=1e-9)
    assert masked_sum(values, mask, dim=1).tolist() == pytest.approx([math.fsum(row) for row in rows], abs=1e-9)
    assert masked_mean(values, mask, dim=1).tolist() == pytest.approx(
        [math.fsum(row) / len(row) for row in rows], abs=1e-9
    )


@modest
@given(ragged, st.integers(0, 6))
def test_more_pad_columns_change_no_real_entry(rows: list[list[float]], extra: int) -> None:
    """The same rows in a wider batch whiten to the same numbers."""
    narrow, narrow_mask = padded(rows, 7.0, extra=0)
    wide, wide_mask = padded(rows, 7.0, extra=extra)
    assert_close(whiten(wide, wide_mask)[wide_mask], whiten(narrow, narrow_mask)[narrow_mask], rtol=1e-9, atol=1e-9)


@modest
@given(ragged, st.randoms(use_true_random=False))
def test_whitening_follows_a_permutation_of_rows(rows: list[list[float]], random) -> None:
    """Rows in another order give the same numbers in that order."""
    values, mask = padded(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    assert_close(whiten(values[order], mask[order]), whiten(values, mask)[order], rtol=1e-9, atol=1e-9)


@modest
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True))
def test_whitened_values_have_mean_0_and_sample_deviation_1(numbers: list[int]) -> None:
    """Torch's own mean and n - 1 deviation of the real entries are the oracle."""
    values, mask = padded([[float(number) for number in numbers]], math.nan)
    white = whiten(values, mask)[mask]
    assert white.mean().item() == pytest.approx(0, abs=1e-12)
    assert white.std(correction=1).item() == pytest.approx(1, abs=1e-12)
    kept = whiten(values, mask, centre=False)[mask]
    assert kept.mean().item() == pytest.approx(sum(numbers) / len(numbers), abs=1e-9)
    assert kept.std(correction=1).item() == pytest.approx(1, abs=1e-9)


@modest
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=9, unique=True), st.integers(-9, 9), st.integers(1, 9))
def test_whitening_forgets_shift_and_scale(numbers: list[int], shift: int, scale: int) -> None:
    """A z-score of scale * x + shift is the z-score of x."""
    values, mask = padded([[float(number) for number in numbers]])
    assert_close(whiten(scale * values + shift, mask), whiten(values, mask), rtol=1e-9, atol=1e-9)


@modest
@given(st.floats(-1e4, 1e4, width=32), st.integers(1, 3000))
def test_equal_values_whiten_to_exact_zeros_in_float32(value: float, count: int) -> None:
    """O-35: rounding of the mean is never scaled up to a signal, at any size and any count."""
    values = torch.full((count,), value)
    assert (whiten(values, torch.ones(count, dtype=torch.bool)) == 0).all()


# Numbers by hand


def test_padding_of_a_million_does_not_move_the_whitening_of_1_2_3() -> None:
    """O-33: mean 2, sample deviation 1, so (-1, 0, 1); with the mean kept (-1, 0, 1) + 2."""
    for fill in (0.0, 1e6):
        values = torch.tensor([1.0, 2.0, 3.0, fill, fill])
        mask = torch.tensor([True, True, True, False, False])
        assert_close(whiten(values, mask), torch.tensor([-1.0, 0.0, 1.0, 0.0, 0.0]), rtol=0, atol=1e-6)
        kept = whiten(values, mask, centre=False)
        assert_close(kept, torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0]), rtol=0, atol=1e-6)


def test_a_kept_mean_is_added_back_after_the_scaling() -> None:
    """(2, 4, 6): mean 4, sample deviation 2, so (-1, 0, 1) + 4 = (3, 4, 5), not (1, 2, 3)."""
    values, mask = padded([[2.0, 4.0, 6.0]], fill=-8.0, extra=1)
    expected = torch.tensor([[3.0, 4.0, 5.0, 0.0]], dtype=torch.float64)
    assert_close(whiten(values, mask, centre=False), expected)


def test_one_value_whitens_to_0() -> None:
    """O-34: the n - 1 form of one number is 0 / 0; here it is 0, and the number itself where the mean is kept."""
    values, mask = torch.tensor([[5.0, 9.0]]), torch.tensor([[True, False]])
    assert whiten(values, mask).tolist() == [[0.0, 0.0]]
    assert whiten(values, mask, centre=False).tolist() == [[5.0, 0.0]]


def test_no_value_has_sum_mean_and_whitening_0() -> None:
    """O-34: a mask that sums to 0 contributes 0 and raises nothing, even over NaN."""
    values, mask = torch.full((2, 3), math.nan), torch.zeros(2, 3, dtype=torch.bool)
    assert masked_sum(values, mask).item() == 0.0
    assert masked_mean(values, mask).item() == 0.0
    assert masked_mean(values, mask, dim=1).tolist() == [0.0, 0.0]
    assert whiten(values, mask).tolist() == [[0.0] * 3] * 2


def test_a_thousand_rewards_of_a_tenth_whiten_to_0() -> None:
    """O-35: 0.1 has no exact float32, and the plain z-score of a thousand of them is far from 0."""
    values, mask = torch.full((1000,), 0.1), torch.ones(1000, dtype=torch.bool)
    assert whiten(values, mask).abs().max().item() == 0.0


def test_the_mean_over_tokens_is_pooled() -> None:
    """O-37: (4 + 1 + 1 + 1) / 4 = 1.75, where the mean of row means is (4 + 1) / 2 = 2.5."""
    values, mask = padded([[4.0], [1.0, 1.0, 1.0]], fill=50.0)
    assert masked_mean(values, mask).item() == pytest.approx(1.75)
    assert masked_mean(values, mask, dim=1).mean().item() == pytest.approx(2.5)


def test_the_mean_over_answers_is_another_number() -> None:
    """O-37: losses (1, 1, 1, 1) and (5): 3.0 over answers, 9 / 5 = 1.8 over tokens."""
    values, mask = padded([[1.0] * 4, [5.0]], fill=-3.0)
    assert masked_mean(values, mask, dim=1).mean().item() == pytest.approx(3.0)
    assert masked_mean(values, mask).item() == pytest.approx(1.8)


def test_sums_run_along_the_named_axis() -> None:
    """[[1, 2, x], [4, x, x]]: columns 5, 2, 0 with counts 2, 1, 0; rows 3, 4 with counts 2, 1."""
    values = torch.tensor([[1.0, 2.0, math.nan], [4.0, math.inf, math.nan]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert masked_sum(values, mask, dim=0).tolist() == [5.0, 2.0, 0.0]
    assert masked_sum(values, mask, dim=1).tolist() == [3.0, 4.0]
    assert masked_mean(values, mask, dim=0).tolist() == [2.5, 2.0, 0.0]
    assert masked_mean(values, mask, dim=1).tolist() == [1.5, 4.0]


def test_a_nan_at_a_real_token_is_not_hidden() -> None:
    """O-44: the mask protects against padding, never against a broken model."""
    values, mask = torch.tensor([[1.0, math.nan, 3.0]]), torch.tensor([[True, True, False]])
    assert masked_sum(values, mask).isnan()
    assert masked_mean(values, mask).isnan()
    assert whiten(values, mask)[mask].isnan().all()


# Gradients


def test_padding_receives_a_gradient_of_exactly_0() -> None:
    """The mean over 3 of 5 entries has gradient 1/3 on each of them and 0 beside, with NaN on the padding."""
    values = torch.tensor([[1.0, 2.0, math.nan], [3.0, math.inf, 0.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    masked_mean(values, mask).backward()
    third = 1 / 3
    assert_close(grad(values), torch.tensor([[third, third, 0.0], [third, 0.0, 0.0]], dtype=torch.float64))


def test_means_have_the_gradient_of_finite_differences() -> None:
    """Central differences in float64, along rows and over all."""
    generator = torch.Generator().manual_seed(3)
    values = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    assert torch.autograd.gradcheck(lambda v: masked_mean(v, mask), (values,))
    assert torch.autograd.gradcheck(lambda v: masked_mean(v, mask, dim=1), (values,))
    assert torch.autograd.gradcheck(lambda v: whiten(v, mask), (values,))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_micro_batches_of_masked_sums_have_the_gradient_of_the_whole_mean(size: int) -> None:
    """O-37: sums over micro-batches divided by all real tokens give w * (mean of x^2) at any micro-batch size."""
    generator = torch.Generator().manual_seed(4)
    data = torch.randn(8, 5, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([1, 5, 2, 3, 1, 4, 5, 2])
    mask = torch.arange(5) < lengths[:, None]
    weight = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    for rows in range(0, 8, size):
        losses = (weight * data[rows : rows + size]).square() / 2
        (masked_sum(losses, mask[rows : rows + size]) / mask.sum()).backward()
    squares = [data[row, column].item() ** 2 for row in range(8) for column in range(int(lengths[row]))]
    expected = 1.5 * math.fsum(squares) / len(squares)
    assert grad(weight).item() == pytest.approx(expected, rel=1e-9)
    weight.grad = None
    masked_mean((weight * data).square() / 2, mask).backward()
    assert grad(weight).item() == pytest.approx(expected, rel=1e-9)
