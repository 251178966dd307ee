"""Decoding: scripted logits in, rollouts out; the end token, padding, and one distribution for drawing and scoring."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.models import decoding
from killick.models.decoding import Distribution, check_temperature, decode, sample_in_batches, score, sequence
from killick.types import NonFinite, Refusal, Rollout, Vocabulary
from speakers import speaker

modest = settings(max_examples=30, deadline=None, derandomize=True)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def prompts(count: int, length: int = 1) -> tuple[Tensor, Tensor]:
    ids = torch.arange(count)[:, None].repeat(1, length)
    return ids, torch.ones_like(ids, dtype=torch.bool)


def script(*rows: list[int], size: int):
    """A step whose logits leave no choice: row i says the tokens of rows[i], one a call."""
    call = iter(range(100))

    def step(new: Tensor) -> Tensor:
        place = next(call)
        logits = torch.full((len(new), size), -1e4)
        for row, tokens in enumerate(rows):
            logits[row, tokens[min(place, len(tokens) - 1)]] = 0.0
        return logits

    return step


def constant(*logits: float):
    """A step with the same logits everywhere."""
    return lambda new: torch.tensor([logits]).repeat(len(new), 1)


# The end token


def test_the_first_end_token_is_real_and_everything_behind_it_is_not_even_if_padding_equals_it() -> None:
    """End = padding = 2, the model says 11, 12, 2 and would go on: ids (11, 12, 2, 2), mask (1, 1, 1, 0)."""
    vocabulary = Vocabulary(size=13, time=5, eos=2, pad=2)
    step = script([11, 12, 2, 5, 5], [5, 6, 7, 2], size=13)
    rollout = decode(step, prompts(2), n=1, distribution=Distribution(vocabulary, 1.0), generator=seeded(0))
    assert rollout.responses.tolist() == [[11, 12, 2, 2], [5, 6, 7, 2]]
    assert rollout.mask.int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert rollout.lengths.tolist() == [3, 4]
    assert rollout.finished.tolist() == [True, True]


def test_an_answer_that_is_the_end_token_alone_has_length_one() -> None:
    """All of them: the rollout is one column wide and decoding stops there."""
    calls = []

    def step(new: Tensor) -> Tensor:
        calls.append(len(new))
        return torch.tensor([[-1e4, -1e4, 0.0]]).repeat(len(new), 1)

    rollout = decode(
        step, prompts(3), n=1, distribution=Distribution(Vocabulary(size=3, time=6, eos=2), 1.0), generator=seeded(0)
    )
    assert rollout.responses.tolist() == [[2]] * 3
    assert (rollout.lengths.tolist(), rollout.finished.tolist()) == ([1] * 3, [True] * 3)
    assert calls == [3]


def test_an_end_token_in_the_prompt_ends_nothing() -> None:
    """It is looked for in the response only."""
    ids = torch.full((2, 3), 2)
    seen = torch.ones_like(ids, dtype=torch.bool)
    rollout = decode(
        script([0], [1], size=3),
        (ids, seen),
        n=1,
        distribution=Distribution(Vocabulary(size=3, time=2, eos=2), 1.0),
        generator=seeded(0),
    )
    assert rollout.responses.tolist() == [[0, 0], [1, 1]]
    assert rollout.finished.tolist() == [False, False]


def test_ending_on_the_last_token_of_the_budget_is_finished_and_running_out_is_not() -> None:
    """Budget 2: (0, end) against (0, 0); both are real to the last token."""
    vocabulary = Vocabulary(size=3, time=2, eos=2)
    rollout = decode(
        script([0, 2], [0, 0], size=3), prompts(2), n=1, distribution=Distribution(vocabulary, 1.0), generator=seeded(0)
    )
    assert rollout.finished.tolist() == [True, False]
    assert bool(rollout.mask.all())


def test_without_an_end_token_every_response_has_the_budget_and_none_is_finished() -> None:
    """Fixed length."""
    rollout = decode(
        constant(0.0, 0.0),
        prompts(4),
        n=1,
        distribution=Distribution(Vocabulary(size=2, time=3), 1.0),
        generator=seeded(0),
    )
    assert rollout.responses.shape == (4, 3)
    assert bool(rollout.mask.all())
    assert not bool(rollout.finished.any())


# Rows


def test_the_responses_of_one_prompt_stand_together() -> None:
    """Three prompts, two each."""
    rollout = decode(
        constant(0.0, 0.0),
        prompts(3),
        n=2,
        distribution=Distribution(Vocabulary(size=2, time=1), 1.0),
        generator=seeded(0),
    )
    assert rollout.prompts[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert len(rollout) == 6


def test_a_row_that_has_ended_does_not_shift_its_neighbours() -> None:
    """Rows 1 to 3 draw the same tokens whether row 0 ends at once or never."""

    def free(first: list[float]):
        def step(new: Tensor) -> Tensor:
            logits = torch.zeros(len(new), 4)
            logits[:, 3] = -1e4
            logits[0] = torch.tensor(first)
            return logits

        return step

    vocabulary = Vocabulary(size=4, time=6, eos=3)
    ends, goes_on = (
        decode(free(first), prompts(4), n=1, distribution=Distribution(vocabulary, 1.0), generator=seeded(5))
        for first in ([-1e4] * 3 + [0.0], [0.0] + [-1e4] * 3)
    )
    assert ends.lengths.tolist() == [1, 6, 6, 6]
    assert torch.equal(ends.responses[1:], goes_on.responses[1:])


@modest
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 3))
def test_masks_pads_and_flags_are_of_one_piece(seed: int, time: int, n: int) -> None:
    """The mask falls once, at the end token; pads and zero log-probs fill the rest; the same seed gives the same."""
    vocabulary = Vocabulary(size=4, time=time, eos=1, pad=3, forbidden=(3,))
    first, again = (
        decode(
            constant(0.0, 0.5, -1.0, 9.0),
            prompts(6),
            n=n,
            distribution=Distribution(vocabulary, 0.7),
            generator=seeded(seed),
        )
        for _ in range(2)
    )
    assert torch.equal(first.responses, again.responses)
    assert torch.equal(first.logprobs, again.logprobs)
    mask, ends = first.mask, first.responses == 1
    assert bool((mask[:, :-1] >= mask[:, 1:]).all())
    assert bool(mask[:, 0].all())
    assert bool((first.responses[~mask] == 3).all())
    assert bool((first.logprobs[~mask] == 0).all())
    last = first.responses.gather(1, first.lengths[:, None] - 1)[:, 0]
    assert torch.equal(first.finished, last == 1)
    assert int((ends & mask).sum()) == int(first.finished.sum())
    assert bool((first.lengths[~first.finished] == time).all())


# One distribution


def test_temperature_is_in_the_log_probs() -> None:
    """Logits (1, 0), token 0, T = .5: -log(1 + exp(-2)) = -0.126928 (T = 1 would say -0.313262), drawn and scored."""
    vocabulary = Vocabulary(size=2, time=1)
    rollout = decode(
        constant(1.0, 0.0), prompts(200), n=1, distribution=Distribution(vocabulary, 0.5), generator=seeded(0)
    )
    zero = rollout.responses[:, 0] == 0
    assert_close(rollout.logprobs[zero], torch.full((int(zero.sum()), 1), -0.126928), atol=1e-6, rtol=0)
    scored, full = score(torch.tensor([[1.0, 0.0]]).repeat(200, 1), rollout, distribution=Distribution(vocabulary, 0.5))
    assert torch.equal(scored, rollout.logprobs)
    assert_close(full[0, 0], torch.tensor([-0.126928, -2.126928]), atol=1e-6, rtol=0)
    # 20,000 draws: the share of token 0 within 4 standard errors of exp(-0.126928) = 0.880797.
    drawn = decode(
        constant(1.0, 0.0), prompts(20_000), n=1, distribution=Distribution(vocabulary, 0.5), generator=seeded(1)
    ).responses
    assert abs(float((drawn == 0).double().mean()) - 0.880797) < 4 * (0.8808 * 0.1192 / 20_000) ** 0.5


def test_a_forbidden_token_is_never_drawn_and_has_no_probability_when_scored() -> None:
    """Its logit is by far the largest; 20,000 draws; the others share everything."""
    vocabulary = Vocabulary(size=4, time=2, forbidden=(1, 3))
    rollout = decode(
        constant(0.0, 50.0, 0.0, 50.0),
        prompts(10_000),
        n=1,
        distribution=Distribution(vocabulary, 1.0),
        generator=seeded(0),
    )
    assert rollout.responses.unique().tolist() == [0, 2]
    _, full = score(
        torch.tensor([[0.0, 50.0, 0.0, 50.0]]).repeat(20_000, 1), rollout, distribution=Distribution(vocabulary, 1.0)
    )
    assert full[0, 0].tolist() == pytest.approx([math.log(0.5), -math.inf, math.log(0.5), -math.inf], abs=1e-6)


def test_scores_stand_in_reading_order_and_padding_scores_nothing() -> None:
    """Two rows, two columns, three tokens: logits of row-column (0,0), (0,1), (1,0), (1,1); the last is padding whose
    id lies outside the vocabulary."""
    logits = torch.tensor([[0.0, 1, 2], [2, 1, 0], [0, 0, 9], [5, 5, 5]])
    ids = torch.zeros(2, 1, dtype=torch.long)
    mask = torch.tensor([[True, True], [True, False]])
    rollout = Rollout(
        ids, torch.ones(2, 1, dtype=torch.bool), torch.tensor([[2, 2], [0, 7]]), mask, torch.zeros(2, 2), mask[:, 0]
    )
    found, full = score(logits, rollout, distribution=Distribution(Vocabulary(size=3, time=2, pad=7), 1.0))
    log_z = math.log(1 + math.e + math.e**2)
    assert found.flatten().tolist() == pytest.approx([2 - log_z, -log_z, -math.log(2 + math.exp(9)), 0.0], abs=1e-5)
    assert full.shape == (2, 2, 3)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_a_temperature_that_gives_no_log_probs_is_refused(temperature: float) -> None:
    """T = 0 too: a choice without a probability cannot be trained on."""
    with pytest.raises(Refusal, match=f"temperature must be a positive number, not {temperature}"):
        check_temperature(temperature)


# What a network reads


def test_the_sequence_is_prompt_and_response_without_the_last_token() -> None:
    """Prompt (7, 8), response (1, 2, 3): columns 7 8 1 2, and column 1 predicts the first response token."""
    ids, seen = torch.tensor([[7, 8]]), torch.ones(1, 2, dtype=torch.bool)
    tokens, mask = torch.tensor([[1, 2, 3]]), torch.ones(1, 3, dtype=torch.bool)
    read, read_mask, first = sequence(Rollout(ids, seen, tokens, mask, torch.zeros(1, 3), mask[:, 0]))
    assert (read.tolist(), read_mask, first) == ([[7, 8, 1, 2]], None, 1)


def test_the_mask_of_a_sequence_covers_prompt_and_response_where_a_prompt_is_padded() -> None:
    """Prompt (pad, 8), response (1, pad, pad)."""
    seen, mask = torch.tensor([[False, True]]), torch.tensor([[True, False, False]])
    rollout = Rollout(torch.tensor([[0, 8]]), seen, torch.tensor([[1, 0, 0]]), mask, torch.zeros(1, 3), seen[:, 1])
    read, read_mask, first = sequence(rollout)
    assert read_mask is not None
    assert (read.tolist(), read_mask.int().tolist(), first) == ([[0, 8, 1, 0]], [[0, 1, 1, 0]], 1)


# What is no number


@pytest.mark.parametrize("poison", [[math.nan, 0.0], [-math.inf, -math.inf], [math.inf, 0.0]])
def test_logits_that_are_no_distribution_stop_the_sampler_and_name_the_rows(poison: list[float]) -> None:
    """NaN, a row of minus infinity, and an infinite logit, in row 1 of 3."""

    def step(new: Tensor) -> Tensor:
        logits = torch.zeros(len(new), 2)
        logits[1] = torch.tensor(poison)
        return logits

    with pytest.raises(NonFinite, match=r"sampled tokens.*in 1 of 3 rows \(row 1\)"):
        decode(step, prompts(3), n=1, distribution=Distribution(Vocabulary(size=2, time=2), 1.0), generator=seeded(0))


def test_one_impossible_token_is_no_fault() -> None:
    """A logit of minus infinity beside a finite one."""
    rollout = decode(
        constant(-math.inf, 0.0),
        prompts(3),
        n=1,
        distribution=Distribution(Vocabulary(size=2, time=2), 1.0),
        generator=seeded(0),
    )
    assert rollout.responses.tolist() == [[1, 1]] * 3
    assert rollout.logprobs.tolist() == [[0.0, 0.0]] * 3


# Many responses


def test_batches_stand_in_order_as_one_rollout() -> None:
    """Five prompts, two responses to each, four rows at once: parts of 2, 2 and 1 prompts drawn one after the other,
    filled up on the right to the longest."""
    policy = speaker()
    ids = torch.randint(0, 7, (5, 4), generator=seeded(1))
    seen = torch.ones_like(ids, dtype=torch.bool)
    found = sample_in_batches(policy, (ids, seen), n=2, generator=seeded(2), rows=4)
    draws = seeded(2)
    parts = [policy.sample((ids[rows], seen[rows]), 2, draws) for rows in (slice(0, 2), slice(2, 4), slice(4, 5))]
    assert len(found) == 10
    assert torch.equal(found.prompts, ids.repeat_interleave(2, 0))
    assert found.lengths.tolist() == [length for part in parts for length in part.lengths.tolist()]
    assert found.finished.tolist() == [ended for part in parts for ended in part.finished.tolist()]
    for row, (part, place) in enumerate((each, place) for each in parts for place in range(len(each))):
        length = int(part.lengths[place])
        assert torch.equal(found.responses[row, :length], part.responses[place, :length])
        assert torch.equal(found.logprobs[row, :length], part.logprobs[place, :length])
        assert found.responses[row, length:].tolist() == [8] * (found.responses.shape[1] - length)
        assert not found.mask[row, length:].any()


def test_the_responses_to_one_prompt_stay_together_even_where_they_are_more_than_a_batch() -> None:
    policy = speaker()
    ids = torch.randint(0, 7, (2, 4), generator=seeded(1))
    found = sample_in_batches(policy, (ids, torch.ones_like(ids, dtype=torch.bool)), n=3, generator=seeded(2), rows=2)
    assert torch.equal(found.prompts, ids.repeat_interleave(3, 0))


# The one distribution


def test_columns_of_spoken_tokens_and_back() -> None:
    """Ids 3, 7 and 9 of 12: columns 0, 1, 2; the log-prob of any other token is minus infinity, also of a forbidden
    one that is among the spoken."""
    distribution = Distribution(Vocabulary(12, time=2, eos=9, forbidden=(7,)), spoken=(3, 7, 9))
    assert distribution.tokens(torch.tensor([2, 0, 1])).tolist() == [9, 3, 7]
    log_probs = distribution.log_probs(torch.zeros(6, 3))
    found = distribution.pick(log_probs, torch.tensor([3, 7, 9, 0, 5, 11])).tolist()
    assert found == pytest.approx([math.log(0.5), -math.inf, math.log(0.5), *[-math.inf] * 3])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": 0.0}, "temperature"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1, not 0"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1"),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1"),
        ({"spoken": ()}, "not all be forbidden"),
        ({"spoken": (4, 3)}, "sorted"),
        ({"spoken": (3, 3)}, "once each"),
        ({"spoken": (3, 12)}, r"0\.\.11"),
        ({"spoken": (3, 5)}, "end token 9 is not among the spoken ones"),
    ],
)
def test_settings_that_make_no_distribution_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        Distribution(Vocabulary(12, time=2, eos=9), **settings)


def test_rows_drawn_a_few_at_a_time_are_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stream for all rows, and one for each."""
    logits = torch.randn(11, 50, generator=seeded(0))
    distribution = Distribution(Vocabulary(50, time=1), 0.7)
    streams = [lambda: seeded(1), lambda: [seeded(row) for row in range(11)]]
    whole = [distribution.draw(logits, stream()) for stream in streams]
    monkeypatch.setattr(decoding, "CACHED", 150)
    for stream, (columns, drawn) in zip(streams, whole, strict=True):
        again = distribution.draw(logits, stream())
        assert torch.equal(again[0], columns)
        assert torch.equal(again[1], drawn)
