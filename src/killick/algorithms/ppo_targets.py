"""From a scored rollout to what PPO's update reads: rewards per token, advantages, returns."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.algorithms.collecting import Collected
from killick.algorithms.ppo_config import PPOConfig
from killick.ops.advantages import batch_mean, gae, group_mean, leave_one_out, penalised_rewards, returns
from killick.ops.masked import masked_sum, whiten
from killick.types import Rollout, Value, check_finite


@dataclass(frozen=True)
class Targets:
    """What an update reads: a rollout, its old log-probs, advantages per token or sequence, the critic's part."""

    rollout: Rollout
    old: Float[Tensor, "batch time"]
    advantages: Float[Tensor, "batch unit"]
    values: Float[Tensor, "batch time"] | None
    returns: Float[Tensor, "batch time"] | None

    def __getitem__(self, rows: Tensor | slice) -> "Targets":
        values, returns = (None if x is None else x[rows] for x in (self.values, self.returns))
        return Targets(self.rollout[rows], self.old[rows], self.advantages[rows], values, returns)


@torch.no_grad()
def targets(
    found: Collected, value: Value | None, *, beta: float, config: PPOConfig, step: int | None = None
) -> Targets:
    """Advantages of a scored rollout: by the critic and GAE, or against a baseline.

    Args:
        found: the rollout, its scores and its log-ratios to the reference.
        value: a critic, read here once; its readings are the old values of the update.
        beta: reward units per nat.
        config: level, baseline, discounts, whitening, missing-EOS penalty.
        step: the iteration, for the words of an error.

    Raises:
        NonFinite: where the critic reads what is no number.
    """
    mask = found.rollout.mask
    scores = found.scores - config.missing_eos_penalty * (~found.rollout.finished)
    values = earned = None
    if config.level == "sequence":
        total = scores - beta * masked_sum(found.log_ratio, mask, dim=1)
        advantages = (total - baseline(total, config))[:, None]
    elif value is None:
        # The score is compared with other scores; the KL charge stays with the tokens that it comes from.
        rewards = penalised_rewards(scores - baseline(scores, config), found.log_ratio, mask=mask, beta=beta)
        advantages = returns(rewards, mask, gamma=config.gamma)
    else:
        values = torch.where(mask, value(found.rollout), 0.0)
        check_finite("the critic's values are", values, step=step)
        rewards = penalised_rewards(scores, found.log_ratio, mask=mask, beta=beta)
        advantages = gae(rewards, values, mask=mask, gamma=config.gamma, gae_lambda=config.gae_lambda)
        earned = advantages + values
    if config.whiten:
        advantages = whiten(advantages, units(mask, config))
    return Targets(found.rollout, found.old, advantages, values, earned)


def baseline(scores: Float[Tensor, " batch"], config: PPOConfig) -> Float[Tensor, " batch"]:
    """What each row's score is compared with where there is no critic."""
    if config.baseline == "batch-mean":
        return batch_mean(scores)
    return leave_one_out(scores, config.n) if config.baseline == "leave-one-out" else group_mean(scores, config.n)


def units(mask: Bool[Tensor, "batch time"], config: PPOConfig) -> Bool[Tensor, "batch unit"]:
    """The mask of what has a ratio: real tokens, or whole sequences."""
    return mask if config.level == "token" else torch.ones_like(mask[:, :1])
