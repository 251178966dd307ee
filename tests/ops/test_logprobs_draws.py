"""Draws: one token from each row, by the distribution function."""

import math

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.ops.logprobs import draw, draw_scored, log_distribution, pick

modest = settings(max_examples=30, deadline=None, derandomize=True)
rows_of_logits = st.integers(2, 6).flatmap(
    lambda vocab: st.lists(st.lists(st.floats(-30, 30), min_size=vocab, max_size=vocab), min_size=1, max_size=4)
)
temperatures = st.floats(0.1, 5.0)


def test_frequencies_match_the_probabilities_within_4_standard_errors() -> None:
    """40,000 draws of (0, .1, .5, 0, .15, .25, 0); standard error sqrt(p (1 - p) / 40,000)."""
    p, count = torch.tensor([0.0, 0.1, 0.5, 0.0, 0.15, 0.25, 0.0], dtype=torch.float64), 40_000
    tokens = draw(p.log().float().expand(count, 7), torch.Generator().manual_seed(11))
    frequency = tokens.bincount(minlength=7).double() / count
    assert ((frequency - p).abs() <= 4 * (p * (1 - p) / count).sqrt()).all()
    assert frequency[[0, 3, 6]].tolist() == [0.0, 0.0, 0.0]


def test_rows_are_drawn_independently_of_each_other() -> None:
    """Two fair rows agree half the time: within 4 standard errors of .5 over 10,000 draws."""
    coins = torch.full((20_000, 2), math.log(0.5))
    tokens = draw(coins, torch.Generator().manual_seed(12)).view(-1, 2)
    assert abs((tokens[:, 0] == tokens[:, 1]).double().mean().item() - 0.5) <= 4 * math.sqrt(0.25 / 10_000)


def test_the_generator_is_the_only_source_of_chance() -> None:
    """One seed gives one draw, the global stream is left alone, and the next draw differs."""
    log_probs = torch.full((64, 50), -math.log(50))
    before = torch.get_rng_state()
    generator = torch.Generator().manual_seed(5)
    first, second = draw(log_probs, generator), draw(log_probs, generator)
    assert torch.equal(draw(log_probs, torch.Generator().manual_seed(5)), first)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.1, 1), (0.3, 2), (0.49, 2), (0.51, 4), (0.99, 4)])
def test_a_uniform_number_is_looked_up_in_the_distribution_function(uniform: float, token: int, monkeypatch) -> None:
    """(0, .25, .25, 0, .5): below .25 token 1, below .5 token 2, above it token 4, never 0 or 3."""
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, uniform))
    log_probs = torch.tensor([[0.0, 0.25, 0.25, 0.0, 0.5]]).log()
    assert draw(log_probs, torch.Generator()).tolist() == [token]


@pytest.mark.parametrize("seed", range(8))
def test_the_extreme_uniform_numbers_stay_on_possible_tokens(seed: int, monkeypatch) -> None:
    """0 gives the first possible token and 1 - 2^-24 a possible one, although float32 sums miss 1 by rounding."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(16, 5000, generator=generator)
    logits[:, :3] = -math.inf
    logits[:, -3:] = -math.inf
    log_probs = log_distribution(logits)
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.zeros(shape))
    assert draw(log_probs, generator).tolist() == [3] * 16
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: torch.full(shape, 1 - 2**-24))
    tokens = draw(log_probs, generator)
    assert pick(log_probs, tokens).isfinite().all()
    assert (tokens > 4800).all()


def test_a_row_of_nan_gives_a_token_of_the_vocabulary() -> None:
    """O-44: the sampler does not crash on NaN, and the healthy row beside it is drawn as ever."""
    log_probs = torch.tensor([[math.nan] * 4, [-math.inf, -math.inf, 0.0, -math.inf], [-math.inf] * 4])
    for seed in range(20):
        tokens = draw(log_probs, torch.Generator().manual_seed(seed))
        assert ((tokens >= 0) & (tokens < 4)).all()
        assert tokens[1].item() == 2


def test_with_a_stream_for_each_row_no_row_depends_on_those_beside_it() -> None:
    """Drawn together, in another order, or alone; and each row draws what its stream gives alone."""
    log_probs = torch.randn(6, 9, generator=torch.Generator().manual_seed(1)).log_softmax(-1)

    def drawn(rows: list[int]) -> list[int]:
        return draw(log_probs[rows], [torch.Generator().manual_seed(row) for row in rows]).tolist()

    alone = [int(draw(log_probs[row : row + 1], torch.Generator().manual_seed(row))) for row in range(6)]
    assert drawn([0, 1, 2, 3, 4, 5]) == alone
    assert drawn([5, 0, 3]) == [alone[5], alone[0], alone[3]]


# Wide vocabularies, where a block is found first


def wide(count: int, vocab: int = 5000) -> Tensor:
    """Rows of very uneven shares, most tokens of the first row impossible."""
    logits = 4 * torch.randn(count, vocab, generator=torch.Generator().manual_seed(0))
    logits[0, 3:] = -torch.inf
    logits[0, 4321] = 0.0
    return logits.log_softmax(-1)


def test_a_wide_draw_is_the_first_token_above_its_height() -> None:
    """Beside one cumulative sum in float64: the same token, or a neighbour where the height is a rounding away."""
    log_probs = wide(200)
    found = draw(log_probs, torch.Generator().manual_seed(1))
    uniform = torch.rand(200, 1, generator=torch.Generator().manual_seed(1)).double()
    cumulative = log_probs.double().exp().cumsum(-1)
    below = cumulative.gather(1, (found[:, None] - 1).clamp(min=0)).where(found[:, None] > 0, 0.0)
    assert bool((below <= uniform + 1e-6).all())
    assert bool((cumulative.gather(1, found[:, None]) >= uniform - 1e-6).all())
    assert float((found == torch.searchsorted(cumulative, uniform, right=True)[:, 0]).float().mean()) > 0.99


def test_wide_draws_come_as_often_as_they_should_and_impossible_ones_never() -> None:
    """40,000 draws from (.5, .3, .2) at tokens 10, 3000 and 4999: within 4.5 deviations, nothing else."""
    logits = torch.full((5000,), -torch.inf)
    places, shares = torch.tensor([10, 3000, 4999]), torch.tensor([0.5, 0.3, 0.2])
    logits[places] = shares.log()
    drawn = draw(logits.expand(40_000, -1), torch.Generator().manual_seed(2))
    counts = torch.bincount(drawn, minlength=5000)
    assert int(counts[places].sum()) == 40_000
    spread = (shares * (1 - shares) / 40_000).sqrt()
    assert bool(((counts[places] / 40_000 - shares).abs() < 4.5 * spread).all())


def test_wide_rows_draw_from_streams_of_their_own_and_nan_stays_inside() -> None:
    """A row alone draws what it draws in company; a row of NaN gives some token."""
    log_probs = wide(4)
    streams = [torch.Generator().manual_seed(seed) for seed in range(4)]
    together = draw(log_probs, streams)
    alone = [draw(log_probs[row : row + 1], torch.Generator().manual_seed(row)) for row in range(4)]
    assert together.tolist() == torch.cat(alone).tolist()
    assert 0 <= int(draw(torch.full((1, 5000), math.nan), torch.Generator().manual_seed(0))) < 5000


@pytest.mark.parametrize("vocab", [300, 5000])
def test_a_scored_draw_is_a_draw_and_its_log_prob(vocab: int) -> None:
    """From logits that are no log-probs: the log-softmax at the token, in float32 to 1e-5; impossible ones never."""
    logits = 3 * torch.randn(500, vocab, generator=torch.Generator().manual_seed(0)) + 40
    logits[:, ::2] = -torch.inf
    token, scored = draw_scored(logits, torch.Generator().manual_seed(1))
    assert_close(scored, pick(logits.log_softmax(-1), token), atol=1e-5, rtol=0)
    assert bool((token % 2 == 1).all())
    again = draw(logits.log_softmax(-1), torch.Generator().manual_seed(1))
    assert float((again == token).float().mean()) > 0.99
    logits[0, 1] = math.nan
    assert bool(draw_scored(logits, torch.Generator().manual_seed(1))[1][0].isnan())
