"""Hand-computed advantages of one or two responses."""

import statistics
from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.algorithms.collecting import Collected
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.ppo_targets import targets
from killick.types import NonFinite, Rollout

PLAIN = PPOConfig(whiten=False, gae_lambda=1.0)


def evidence(log_ratio: list[list[float]], lengths: list[int], scores: list[float], ended: list[bool]) -> Collected:
    """A scored rollout with these log-ratios to the reference."""
    width = len(log_ratio[0])
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    tokens = torch.zeros_like(mask, dtype=torch.long)
    ratio = torch.tensor(log_ratio)
    prompt = torch.zeros(len(lengths), 1, dtype=torch.long)
    rollout = Rollout(prompt, prompt == 0, tokens, mask, torch.zeros_like(ratio), torch.tensor(ended))
    return Collected(rollout, torch.tensor(scores), torch.zeros_like(ratio), ratio, None, None)


class Fixed:
    """A critic that reads given numbers."""

    def __init__(self, values: list[list[float]]):
        self.values = torch.tensor(values)

    def __call__(self, rollout: Rollout) -> torch.Tensor:
        return self.values

    def parameters(self) -> Any:
        return iter(())

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        return None


def test_the_worked_example_of_a_short_response() -> None:
    # Score 1.5, beta 0.1, log-ratios .1, -.3, 0: rewards -.01, .03, 1.5; returns 1.52, 1.53, 1.50; values 1.05, 1.21,
    # 1.40 leave .47, .32, .10 at lambda 1. A pad with a wild value changes nothing.
    found = evidence([[0.1, -0.3, 0.0, 0.0]], [3], [1.5], [True])
    made = targets(found, Fixed([[1.05, 1.21, 1.40, 50.0]]), beta=0.1, config=PLAIN)
    assert made.advantages[0].tolist() == pytest.approx([0.47, 0.32, 0.10, 0.0], abs=1e-6)
    assert made.returns is not None
    assert made.returns[0, :3].tolist() == pytest.approx([1.52, 1.53, 1.50], abs=1e-6)


def test_a_missing_end_costs_its_penalty_once() -> None:
    # O-22: score 0.8, penalty 1.0: -0.2 without an end token, 0.8 with one. The critic expects nothing.
    found = evidence([[0.0, 0.0]] * 2, [2, 2], [0.8, 0.8], [True, False])
    made = targets(found, Fixed([[0.0, 0.0]] * 2), beta=0.0, config=replace(PLAIN, missing_eos_penalty=1.0))
    assert made.advantages.flatten().tolist() == pytest.approx([0.8, 0.8, -0.2, -0.2])


def test_without_a_critic_the_score_is_compared_and_the_kl_stays_with_its_tokens() -> None:
    # Scores 3 and 1, mean 2: +1 and -1 on every token. beta 0.5 charges what is still to come:
    # row 0: log-ratios 2, 4 -> -3, -2; row 1 (one token): 6 -> -3.
    found = evidence([[2.0, 4.0], [6.0, 0.0]], [2, 1], [3.0, 1.0], [True, True])
    made = targets(found, None, beta=0.5, config=PLAIN)
    assert made.advantages.tolist() == [[-2.0, -1.0], [-4.0, 0.0]]
    assert made.values is made.returns is None


def test_at_sequence_level_the_charge_joins_the_score_before_the_comparison() -> None:
    # Totals 3 - 0.5 x 6 = 0 and 1 - 0.5 x 6 = -2; their mean is -1.
    found = evidence([[2.0, 4.0], [6.0, 0.0]], [2, 1], [3.0, 1.0], [True, True])
    made = targets(found, None, beta=0.5, config=replace(PLAIN, level="sequence"))
    assert made.advantages.tolist() == [[1.0], [-1.0]]


def test_leave_one_out_compares_with_the_other_responses_of_the_prompt() -> None:
    # Prompt 0 scores 1, 4 -> 1 - 4, 4 - 1; prompt 1 scores 10, 20 -> -10, +10.
    found = evidence([[0.0]] * 4, [1] * 4, [1.0, 4.0, 10.0, 20.0], [True] * 4)
    made = targets(found, None, beta=0.0, config=replace(PLAIN, baseline="leave-one-out", n=2))
    assert made.advantages.flatten().tolist() == [-3.0, 3.0, -10.0, 10.0]


def test_a_group_mean_compares_with_all_responses_of_the_prompt() -> None:
    # Prompt 0 has the mean 2.5, prompt 1 the mean 15.
    found = evidence([[0.0]] * 4, [1] * 4, [1.0, 4.0, 10.0, 20.0], [True] * 4)
    made = targets(found, None, beta=0.0, config=replace(PLAIN, baseline="group-mean", n=2))
    assert made.advantages.flatten().tolist() == [-1.5, 1.5, -5.0, 5.0]


def test_whitening_sees_real_tokens_only() -> None:
    # Real advantages 1, 1, -1: mean 1/3, sample deviation sqrt(4/3).
    found = evidence([[0.0, 0.0], [0.0, 99.0]], [2, 1], [3.0, 1.0], [True, True])
    made = targets(found, None, beta=0.0, config=replace(PLAIN, whiten=True))
    third, deviation = 1 / 3, (4 / 3) ** 0.5
    flat = [(1 - third) / deviation] * 2 + [(-1 - third) / deviation, 0.0]
    assert made.advantages.flatten().tolist() == pytest.approx(flat)


# Rewards 0, 0, 1 and values .5, .4, .3 at gamma .9, lambda .8: differences .9 x .4 - .5 = -.14, .9 x .3 - .4 = -.13 and
# 1 - .3 = .7; weight .9 x .8 = .72: .7, -.13 + .72 x .7 = .374, -.14 + .72 x .374 = .12928.
ADVANTAGES = [0.12928, 0.374, 0.7]


def discounted(whiten: bool) -> Any:
    found = evidence([[0.0] * 4], [3], [1.0], [True])
    config = PPOConfig(whiten=whiten, gamma=0.9, gae_lambda=0.8)
    return targets(found, Fixed([[0.5, 0.4, 0.3, 50.0]]), beta=0.1, config=config)


@pytest.mark.parametrize("whiten", [False, True])
def test_the_critic_learns_unwhitened_returns_at_the_settings_discounts(whiten: bool) -> None:
    # O-26: returns are advantages + values: .62928, .774, 1.0, whether or not the advantages are whitened after.
    made = discounted(whiten)
    assert made.returns is not None
    assert made.returns[0].tolist() == pytest.approx([0.62928, 0.774, 1.0, 0.0], abs=1e-6)
    assert made.values.tolist() == [pytest.approx([0.5, 0.4, 0.3, 0.0])]
    mean, deviation = statistics.mean(ADVANTAGES), statistics.stdev(ADVANTAGES)
    scaled = [(a - mean) / deviation for a in ADVANTAGES] if whiten else ADVANTAGES
    assert made.advantages[0].tolist() == pytest.approx([*scaled, 0.0], abs=1e-5)


def test_without_a_critic_later_rewards_are_discounted_by_gamma_alone() -> None:
    # Rewards -1, -2 + 1 = -1 and -3 - 1 = -4 (scores 3 and 1 against their mean 2, beta .5): -1 + .9 x -1 = -1.9.
    # gae_lambda has no say without a critic.
    found = evidence([[2.0, 4.0], [6.0, 0.0]], [2, 1], [3.0, 1.0], [True, True])
    made = targets(found, None, beta=0.5, config=replace(PLAIN, gamma=0.9, gae_lambda=0.3))
    assert made.advantages.flatten().tolist() == pytest.approx([-1.9, -1.0, -4.0, 0.0], abs=1e-6)


def test_the_missing_end_is_charged_without_a_critic_and_at_sequence_level_too() -> None:
    # Scores .8 and .8 - 1 = -.2; against their mean .3: +.5 and -.5, on every token or for the whole response.
    found = evidence([[0.0, 0.0]] * 2, [2, 2], [0.8, 0.8], [True, False])
    config = replace(PLAIN, missing_eos_penalty=1.0)
    tokens = targets(found, None, beta=0.0, config=config).advantages
    whole = targets(found, None, beta=0.0, config=replace(config, level="sequence")).advantages
    assert tokens.flatten().tolist() == pytest.approx([0.5, 0.5, -0.5, -0.5])
    assert whole.flatten().tolist() == pytest.approx([0.5, -0.5])


def test_whitening_at_sequence_level_counts_each_response_once() -> None:
    # Totals 3 and 1, of 1 and 2 tokens: +1 and -1, sample deviation sqrt(2).
    found = evidence([[0.0, 0.0]] * 2, [1, 2], [3.0, 1.0], [True, True])
    made = targets(found, None, beta=0.0, config=replace(PLAIN, level="sequence", whiten=True))
    assert made.advantages.flatten().tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)])


def test_a_critic_that_reads_no_numbers_is_named_and_its_padding_is_not() -> None:
    # O-44.
    found = evidence([[0.0, 0.0]] * 2, [2, 1], [1.0, 1.0], [True, True])
    made = targets(found, Fixed([[0.0, 0.0], [0.0, torch.nan]]), beta=0.0, config=PLAIN)
    assert made.advantages.isfinite().all()
    with pytest.raises(NonFinite, match=r"the critic's values are not finite.* in 1 of 2 rows \(row 1\)"):
        targets(found, Fixed([[0.0, 0.0], [torch.nan, 0.0]]), beta=0.0, config=PLAIN)


def test_rows_of_targets_stay_together() -> None:
    found = evidence([[0.0, 0.0], [1.0, 2.0]], [2, 1], [3.0, 1.0], [True, False])
    made = targets(found, Fixed([[0.1, 0.2], [0.3, 9.0]]), beta=0.5, config=PLAIN)
    row = made[torch.tensor([1])]
    assert made.values is not None
    assert made.returns is not None
    assert row.values is not None
    assert row.returns is not None
    pairs = [(row.advantages, made.advantages), (row.values, made.values), (row.returns, made.returns)]
    pairs += [(row.old, made.old), (row.rollout.mask.float(), made.rollout.mask.float())]
    assert all(torch.equal(part, whole[1:]) for part, whole in pairs)
