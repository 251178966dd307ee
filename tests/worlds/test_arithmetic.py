"""Arithmetic: gold by hand rows, the sum that nobody is paid for, and prompts that are uniform."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from killick.types import Rollout
from killick.worlds.arithmetic import EOS, EQUALS, PAD, PLUS, SYMBOLS, Arithmetic

modest = settings(max_examples=30, deadline=None, derandomize=True)
world = Arithmetic()


def answered(a: int, b: int, *tokens: int, fill: int = PAD) -> Rollout:
    """One response to a + b as a sampler would leave it: cut at four tokens, padded on the right."""
    prompts = world.encode(torch.tensor([[a, b]]))
    length = len(tokens)
    responses = torch.tensor([[*tokens, *[fill] * (4 - length)]])
    mask = torch.arange(4)[None] < length
    ended = torch.tensor([tokens[-1] == EOS])
    return Rollout(prompts, torch.ones_like(prompts, dtype=torch.bool), responses, mask, torch.zeros(1, 4), ended)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ((8, 4, EOS), 1.0),
        ((0, EOS), 1.0),
        ((1, 2, 6, EOS), 1.0),
        ((8, 5, EOS), 0.0),
        ((2, 2, 9, EOS), 0.0),
        ((1, EOS), 0.0),
        ((4, 4, 4, 4), -1.0),  # no end within the budget
        ((EOS,), -1.0),  # no digit
        ((4, PLUS, 4, EOS), -1.0),
        ((PLUS, EOS), -1.0),
        ((EQUALS, 4, EOS), -1.0),
        ((4, EQUALS, EOS), -1.0),
        ((4, 2, PLUS, 8), -1.0),
    ],
)
def test_gold_is_one_for_an_even_end_zero_for_an_odd_one_and_minus_one_for_anything_malformed(tokens, expected) -> None:
    """The labeler's table, row by row; a response that never ends is malformed whatever its digits are."""
    assert world.gold(answered(37, 48, *tokens)).tolist() == [expected]


@pytest.mark.parametrize(
    ("a", "b", "tokens", "right"),
    [
        (37, 48, (8, 5, EOS), True),
        (10, 10, (2, 0, EOS), True),
        (50, 50, (1, 0, 0, EOS), True),
        (99, 99, (1, 9, 8, EOS), True),
        (37, 48, (0, 8, 5, EOS), False),  # a leading zero
        (37, 48, (8, 4, EOS), False),
        (37, 48, (5, 8, EOS), False),
        (37, 48, (8, 5, 0, EOS), False),
        (50, 50, (1, 0, EOS), False),
        (50, 50, (0, 0, EOS), False),
        (50, 50, (1, 0, 0, 0), False),  # did not end
        (37, 48, (8, PLUS, 5, EOS), False),
        (37, 48, (EOS,), False),
        (37, 48, (8, 5, 1, 2), False),
    ],
)
def test_a_response_is_correct_only_if_it_is_the_sum_and_nothing_more(a, b, tokens, right) -> None:
    """37 + 48 = 85, 10 + 10 = 20, 50 + 50 = 100, 99 + 99 = 198."""
    assert world.correct(answered(a, b, *tokens)).tolist() == [right]


def test_symbols_and_vocabulary_are_fourteen_with_padding_forbidden() -> None:
    """Ten digits, plus, equals, end, padding; the budget is four tokens."""
    assert (len(SYMBOLS), SYMBOLS[PLUS], SYMBOLS[EQUALS], SYMBOLS[EOS]) == (14, "+", "=", "<eos>")
    vocabulary = world.vocabulary
    assert (vocabulary.size, vocabulary.time, vocabulary.eos, vocabulary.forbidden) == (14, 4, EOS, (PAD,))


def test_a_prompt_reads_as_two_numbers_with_plus_and_equals() -> None:
    """37 and 48 become six tokens, read back as 37+48=."""
    ids = world.encode(torch.tensor([[37, 48], [10, 99]]))
    assert ids.tolist() == [[3, 7, PLUS, 4, 8, EQUALS], [1, 0, PLUS, 9, 9, EQUALS]]
    assert world.questions(ids) == ["37+48=", "10+99="]


def test_operands_are_uniform_on_10_to_99() -> None:
    """18,000 draws: every number appears, and each count is within 5 standard errors of 200 (90 numbers looked at)."""
    counts = world.operands(9000, seeded(0)).flatten().bincount(minlength=100)
    assert counts[:10].sum() == 0
    assert len(counts) == 100
    assert (counts[10:] - 200).abs().max() < 5 * (18_000 * (1 / 90) * (89 / 90)) ** 0.5


def test_a_response_is_shown_without_its_end_and_with_an_ellipsis_where_it_has_none() -> None:
    """Padding and <eos> are not shown; what did not end says so."""
    shown = [
        world.render(answered(37, 48, *tokens))[0] for tokens in ((8, 5, EOS), (EOS,), (4, 4, 4, 4), (1, PLUS, EOS))
    ]
    assert shown == ["85", "", "4444…", "1+"]


@modest
@given(st.integers(0, 2**31))
def test_every_demonstration_is_correct_and_is_judged_by_its_last_digit(seed: int) -> None:
    """Sums of two and of three digits alike; gold is 1 - parity of the sum."""
    rollout = world.demonstrations(64, seeded(seed))
    assert bool(world.correct(rollout).all())
    p = rollout.prompts
    total = 10 * (p[:, 0] + p[:, 3]) + p[:, 1] + p[:, 4]
    assert torch.equal(world.gold(rollout), 1.0 - total % 2)
    assert world.render(rollout) == [str(number) for number in total.tolist()]


@modest
@given(st.integers(10, 99), st.integers(10, 99), st.lists(st.integers(0, 11), min_size=1, max_size=3))
def test_only_the_decimal_digits_of_the_sum_are_correct(a: int, b: int, tokens: list[int]) -> None:
    """The response text and Python's own addition agree, on guesses and on the sum itself."""
    sum_tokens = [int(digit) for digit in str(a + b)]
    for guess in (tokens, sum_tokens):
        said = "".join(SYMBOLS[token] for token in guess)
        assert world.correct(answered(a, b, *guess, EOS)).tolist() == [said == str(a + b)]


@modest
@given(st.lists(st.integers(0, 11), max_size=3), st.integers(0, 13))
def test_gold_and_correctness_are_blind_to_what_stands_on_the_padding(tokens: list[int], fill: int) -> None:
    """A digit or an end token behind the end changes nothing."""
    plain, odd = (answered(37, 48, *tokens, EOS, fill=f) for f in (PAD, fill))
    assert torch.equal(world.gold(plain), world.gold(odd))
    assert torch.equal(world.correct(plain), world.correct(odd))
    assert world.render(plain) == world.render(odd)


def test_gold_does_not_read_the_prompt() -> None:
    """The labeler never checks the sum."""
    golds: list[Tensor] = [world.gold(answered(a, b, 8, 4, EOS)) for a, b in ((10, 10), (42, 42), (99, 99))]
    assert all(float(gold) == 1.0 for gold in golds)
