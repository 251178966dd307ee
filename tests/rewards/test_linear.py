"""A linear head on frozen states: its zero, rankings averaged first, the decay that validation chooses, members."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.head import Head
from killick.rewards.linear import FEWEST, L2, L2S, Scale, choose_l2, mean_loss, optimum, resampled
from killick.types import Preference, Refusal, Rollout


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows(count: int) -> Rollout:
    ids = torch.arange(count)[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    return Rollout(torch.zeros_like(ids), seen, ids, seen, torch.zeros(ids.shape), seen[:, 0])


def problem(pairs: int, *, features: int = 6, noise: float = 1.0) -> tuple[Tensor, Preference]:
    """States, and pairs whose winner is drawn by Bradley-Terry on the first feature."""
    draws = seeded()
    states = torch.randn(2 * pairs, features, generator=draws) + 3
    first, second = torch.arange(0, 2 * pairs, 2), torch.arange(1, 2 * pairs, 2)
    chance = torch.sigmoid((states[first, 0] - states[second, 0]) / noise)
    won = torch.rand(pairs, generator=draws) < chance
    return states, Preference.hard(rows(2 * pairs), torch.where(won, first, second), torch.where(won, second, first))


def test_the_mean_score_of_the_training_states_is_zero_whatever_the_weights() -> None:
    states, _ = problem(30)
    scale = Scale.of(states)
    w = torch.randn(6, generator=seeded(), dtype=torch.double)
    scores = states.double() @ scale.folded(w)
    assert_close(scores, scale.read(states) @ w, atol=1e-12, rtol=0)
    assert abs(float(scores.mean())) < 1e-12


def test_a_feature_that_never_changes_is_left_alone() -> None:
    states = torch.cat((torch.randn(9, 2, generator=seeded()), torch.full((9, 1), 7.0)), 1)
    assert torch.isfinite(Scale.of(states).read(states)).all()
    assert float(Scale.of(states).deviation[2]) == 1


def test_it_is_where_the_stepwise_fit_goes() -> None:
    """The same loss, decay and pull as `fit`, after 1,500 steps of Adam; a tie and a margin among the pairs."""
    states, pairs = problem(20)
    label, margin = pairs.label.clone(), pairs.margin.clone()
    label[0], margin[1] = 0.5, 0.7
    pairs = replace(pairs, label=label, margin=margin)
    layer = torch.nn.Linear(6, 1, bias=False)
    head = Head(lambda rollout: states[rollout.responses[:, 0]], layer)
    config = FitConfig(steps=1500, learning_rate=0.01, l2=0.05, centre=0.02)
    for _ in fit(FitState(head, config, seeded()), pairs):
        pass
    assert_close(optimum(states, pairs, l2=0.05, centre=0.02).float(), layer.weight[0].detach(), atol=2e-4, rtol=0)


def test_a_long_ranking_weighs_no_more_than_a_pair() -> None:
    """O-06: scores in rank order (0, 1) and (3, 2, 1, 0) give .760150 when each ranking is averaged first."""
    pairs = Preference.hard(
        rows(6), torch.tensor([0, 2, 2, 2, 3, 3, 4]), torch.tensor([1, 3, 4, 5, 4, 5, 5]),
        torch.tensor([0, 1, 1, 1, 1, 1, 1]),
    )  # fmt: skip
    assert mean_loss(torch.tensor([0.0, 1, 3, 2, 1, 0]), pairs) == pytest.approx(0.760150, abs=1e-5)
    twice = pairs.pairs(torch.cat((torch.arange(7), torch.arange(1, 7))))
    states = torch.randn(6, 3, generator=seeded())
    assert_close(optimum(states, pairs, l2=0.1), optimum(states, twice, l2=0.1))


def test_the_validation_part_chooses_the_decay() -> None:
    """Labels that are mere noise want the strongest; a rule without noise wants a weak one."""
    states, clear = problem(200, noise=0.01)
    scale = Scale.of(states).read(states)
    learned, validation = clear.pairs(slice(0, 150)), clear.pairs(slice(150, 200))
    chosen, losses = choose_l2(scale, learned, validation=validation)
    assert chosen <= 0.03
    assert losses[chosen] == min(losses.values())
    _, vague = problem(200, noise=1e6)
    assert choose_l2(scale, vague.pairs(slice(0, 150)), validation=vague.pairs(slice(150, 200)))[0] == max(L2S)
    assert choose_l2(scale, learned, validation=validation.pairs(slice(0, FEWEST - 1))) == (L2, {})


def test_members_differ_and_the_same_generator_gives_the_same() -> None:
    states, pairs = problem(40)
    units = torch.arange(40) // 2
    one, two = (
        list(resampled(states, pairs, units=units, count=3, l2=0.1, centre=0.0, generator=seeded(5))) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert float((one[0] - one[1]).abs().max()) > 0.01
    assert_close(sum(one) / 3, optimum(states, pairs, l2=0.1), atol=0.3, rtol=0)


def test_all_pairs_of_a_prompt_are_drawn_together() -> None:
    """Of two prompts, one drawn twice: a member is the fit to it alone, or to both as they are."""
    states, pairs = problem(12)
    units = torch.tensor([0] * 6 + [1] * 6)
    whole = optimum(states, pairs, l2=0.1)
    alone = [optimum(states, pairs.pairs(units == unit), l2=0.1) for unit in (0, 1)]
    for member in resampled(states, pairs, units=units, count=8, l2=0.1, centre=0.0, generator=seeded()):
        assert any(torch.allclose(member, fitted, atol=1e-8) for fitted in (whole, *alone))


def test_no_pair_and_no_decay_are_refused() -> None:
    states, pairs = problem(4)
    with pytest.raises(Refusal, match="There is no pair to fit"):
        optimum(states, pairs.pairs(slice(0, 0)), l2=0.1)
    with pytest.raises(Refusal, match="l2 above 0, not 0"):
        optimum(states, pairs, l2=0.0)
