"""Emphasis: gold's closed form, its turn at three, and the corpus that holds almost nothing beyond."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.types import Refusal
from killick.worlds.emphasis import BOS, EMPHASIS, SIZE, TIME, Emphasis

modest = settings(max_examples=30, deadline=None, derandomize=True)
world = Emphasis()
sequences = st.lists(st.integers(0, SIZE - 1), min_size=TIME, max_size=TIME)


def gold(*tokens: int) -> float:
    """Gold of one sequence."""
    return float(world.gold(world.rollout(torch.tensor([tokens])))[0])


def by_hand(tokens: list[int]) -> float:
    """The definition in plain Python: token v is worth -1 + 2 v / 23."""
    count = tokens.count(EMPHASIS)
    mean = math.fsum(-1 + 2 * token / 23 for token in tokens) / 12
    return mean + 0.3 * min(count, 3) - 0.6 * max(count - 3, 0)


def corpus_probabilities() -> list[float]:
    """softmax(value / 1.5) in plain Python."""
    weights = [math.exp((-1 + 2 * token / 23) / 1.5) for token in range(24)]
    return [weight / math.fsum(weights) for weight in weights]


def test_the_best_is_three_emphasis_tokens_and_nine_of_the_highest_value() -> None:
    """(9 + 3 / 23) / 12 + 0.9 = 1.6609: token 12 is worth 1/23."""
    assert world.best == pytest.approx((9 + 3 / 23) / 12 + 0.9, abs=1e-12)
    assert world.best == pytest.approx(1.6609, abs=5e-5)
    assert gold(*[12] * 3, *[23] * 9) == pytest.approx(world.best, abs=1e-6)


def test_twelve_emphasis_tokens_are_the_end_of_the_story() -> None:
    """1/23 + 0.9 - 0.6 * 9 = -4.4565."""
    assert gold(*[12] * 12) == pytest.approx(-4.4565, abs=5e-5)


@pytest.mark.parametrize(("count", "bonus"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), (4, 0.3), (5, -0.3), (12, -4.5)])
def test_emphasis_pays_up_to_three_and_costs_double_beyond(count: int, bonus: float) -> None:
    """Beside tokens of value 1, the mean is (12 - count + count / 23) / 12."""
    mean = (12 - count + count / 23) / 12
    assert gold(*[12] * count, *[23] * (12 - count)) == pytest.approx(mean + bonus, abs=1e-5)


def test_the_corpus_has_a_mean_gold_of_0_3758() -> None:
    """Exact: the mean token value plus the bonus under a binomial count; then 40,000 draws within 4 standard errors."""
    p = corpus_probabilities()
    mean = math.fsum(q * (-1 + 2 * token / 23) for token, q in enumerate(p))
    law = [math.comb(12, c) * p[12] ** c * (1 - p[12]) ** (12 - c) for c in range(13)]
    exact = mean + math.fsum(q * (0.3 * min(c, 3) - 0.6 * max(c - 3, 0)) for c, q in enumerate(law))
    assert exact == pytest.approx(0.3758, abs=5e-5)
    golds = world.gold(world.demonstrations(40_000, torch.Generator().manual_seed(3))).double()
    assert abs(float(golds.mean()) - exact) < 4 * float(golds.std()) / 200


def test_the_corpus_draws_each_token_as_often_as_its_probability_says() -> None:
    """60,000 tokens; 24 frequencies, each within 4.5 standard errors."""
    drawn = world.demonstrations(5000, torch.Generator().manual_seed(4)).responses.flatten()
    p = torch.tensor(corpus_probabilities(), dtype=torch.float64)
    error = (drawn.bincount(minlength=24) / 60_000 - p).abs() / (p * (1 - p) / 60_000).sqrt()
    assert float(error.max()) < 4.5


def test_the_prompt_is_the_start_token_alone_and_it_cannot_be_written() -> None:
    """<bos> is read (id 24) and never written (24 outputs)."""
    ids, mask = world.prompts(3, torch.Generator())
    assert ids.tolist() == [[BOS]] * 3
    assert bool(mask.all())
    assert (world.vocabulary.size, world.vocabulary.time, world.vocabulary.eos) == (24, 12, None)


@modest
@given(sequences)
def test_gold_is_its_definition(tokens: list[int]) -> None:
    """float32 against exact sums: 1e-5 covers twelve roundings."""
    assert gold(*tokens) == pytest.approx(by_hand(tokens), abs=1e-5)


@modest
@given(sequences, st.randoms(use_true_random=False))
def test_gold_never_exceeds_the_best_and_never_reads_the_order(tokens: list[int], random) -> None:
    """A shuffle changes nothing but the rounding."""
    shuffled = random.sample(tokens, len(tokens))
    assert gold(*tokens) <= world.best + 1e-5
    assert gold(*shuffled) == pytest.approx(gold(*tokens), abs=1e-5)


@modest
@given(sequences)
def test_the_count_and_the_shown_text_agree(tokens: list[int]) -> None:
    """Emphasis is shown as an exclamation mark, every other token as its letter."""
    rollout = world.rollout(torch.tensor([tokens]))
    (shown,) = world.render(rollout)
    assert world.count(rollout).tolist() == [shown.count("!")] == [tokens.count(12)]
    assert [12 if letter == "!" else ord(letter) - ord("a") for letter in shown] == tokens


def test_sequences_are_made_with_exactly_so_many_emphasis_tokens() -> None:
    """Three of each, in the order asked; what is not emphasis is a corpus token other than 12."""
    made = world.holding([0, 3, 12, 1], 3, torch.Generator().manual_seed(5))
    assert world.count(made).tolist() == [0] * 3 + [3] * 3 + [12] * 3 + [1] * 3


def test_their_emphasis_stands_anywhere_alike_and_their_other_tokens_are_the_corpus_with_12_as_13() -> None:
    """20,000 sequences of three: each place holds emphasis in a quarter of them, and each token's share of the other
    nine places is the corpus's, with 13 having both; all within 4.5 standard errors."""
    made = world.holding([3], 20_000, torch.Generator().manual_seed(6)).responses
    there = (made == EMPHASIS).double().mean(0)
    assert float((there - 0.25).abs().max()) < 4.5 * math.sqrt(0.25 * 0.75 / 20_000)
    p = torch.tensor(corpus_probabilities(), dtype=torch.float64)
    p[13], p[12] = p[13] + p[12], 0.0
    share = made[made != EMPHASIS].bincount(minlength=24) / 180_000
    assert float((share - p).abs().max()) < 4.5 * math.sqrt(0.1 * 0.9 / 180_000)


@pytest.mark.parametrize(("counts", "each", "word"), [
    ([], 5, "not 5 each of none"), ([0, 13], 5, "not 5 each of 0, 13"), ([-1], 5, "of -1"), ([3], 0, "not 0 each of 3"),
])  # fmt: skip
def test_counts_that_no_sequence_can_hold_are_refused(counts: list[int], each: int, word: str) -> None:
    with pytest.raises(Refusal, match=word):
        world.holding(counts, each, torch.Generator())
