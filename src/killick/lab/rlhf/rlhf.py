"""RLHF in five functions, which are yours to write, and the loops that call them, which are complete.

    pytest -k task1            (then task2 ... task5) says what is wrong with a function
    python run.py              trains four arms with your code, once all five pass

README.md says what the world is and in which order to go.
"""

import os
from collections.abc import Iterator
from typing import Any

import torch
from prefs import Critic, DigitReward, gold, right
from tinylm import TinyLM, imitation_loss, world
from torch import Tensor

from killick import Adam, PPOConfig, Rollout
from killick.ops.kl import exact_kl
from killick.ops.masked import masked_sum, whiten

# ------------------------------------------------------------------------------------------------ yours to write


def bt_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Task 1. How wrong a reward model is about pairs: the mean of -log sigma(chosen - rejected), in nats.

    Args:
        chosen: [pairs] scores of the responses that the labeler preferred.
        rejected: [pairs] scores of the other ones, in the same order.

    Returns:
        [] one number, through which gradients flow to both.

    Hint: sigma(-100) is nearly 0 and exp(100) is infinite in float32; torch has log sigma as one function.
    """
    raise NotImplementedError("Task 1: bt_loss in rlhf.py is yours to write; its docstring says what it returns.")


def ranking_to_pairs(ranking: Tensor) -> Tensor:
    """Task 2. Every pair that a ranking decides, as (winner, loser).

    Args:
        ranking: [K] row numbers of K responses to one prompt, the best first.

    Returns:
        [K (K - 1) / 2, 2] row numbers: the winner in column 0, the loser in column 1. K = 1 gives no pair: [0, 2].

    Hint: whoever stands earlier in the ranking beats everyone who stands later, whatever their row numbers are.
    """
    raise NotImplementedError("Task 2: ranking_to_pairs in rlhf.py is yours to write; its docstring says how.")


def kl_penalized_rewards(
    scores: Tensor, logprobs: Tensor, *, reference_logprobs: Tensor, mask: Tensor, beta: float
) -> Tensor:
    """Task 3. What each token is paid: a fine for straying, and at the last real token the reward model's score.

    A token's fine is beta (log policy - log reference) of that token. Padding is paid nothing. Rewards are numbers
    that come from outside, like the weather: no gradient flows through them, whatever the inputs carry.

    Args:
        scores: [batch] the reward model's, one a response.
        logprobs: [batch, time] the policy's, nats.
        reference_logprobs: [batch, time] the SFT model's of the same tokens, nats.
        mask: [batch, time] True at real response tokens, `<eos>` included; padding only follows.
        beta: reward units per nat.

    Returns:
        [batch, time] rewards.

    Hint: the last real token of a row is at mask.sum(1) - 1, which differs from row to row.
    """
    raise NotImplementedError("Task 3: kl_penalized_rewards in rlhf.py is yours to write; README.md has an example.")


def gae_per_token(
    rewards: Tensor, values: Tensor, *, mask: Tensor, gamma: float = 1.0, gae_lambda: float = 0.95
) -> tuple[Tensor, Tensor]:
    """Task 4. How much better each token turned out than the critic had expected, and what it should have expected.

    With delta[t] = rewards[t] + gamma values[t + 1] - values[t], from the end backwards:
    advantages[t] = delta[t] + gamma gae_lambda advantages[t + 1]. After the last real token there is nothing more to
    come: value and advantage there are 0, whatever the critic says on padding.

    Args:
        rewards: [batch, time] from task 3.
        values: [batch, time] the critic's, before each token was written; anything at all on padding.
        mask: [batch, time] True at real response tokens.
        gamma: discount per token.
        gae_lambda: 0 trusts the critic, 1 what was really earned.

    Returns:
        [batch, time] advantages and [batch, time] returns = advantages + values, both 0 on padding.

    Hint: put zeros on the padding first; then one loop over time, backwards, serves rows of every length.
    """
    raise NotImplementedError("Task 4: gae_per_token in rlhf.py is yours to write; README.md has an example.")


def ppo_rlhf_loss(
    logprobs: Tensor,
    values: Tensor,
    *,
    old_logprobs: Tensor,
    advantages: Tensor,
    returns: Tensor,
    mask: Tensor,
    clip_range: float = 0.2,
) -> tuple[Tensor, Tensor, Tensor]:
    """Task 5. PPO's two losses over real tokens, and how often the clip spoke.

    With A = advantages and r = policy / old policy of each token by itself, a token's policy loss is the larger of -A r
    and -A clip(r, 1 - clip_range, 1 + clip_range); its value loss is (values - returns)^2 / 2.

    Args:
        logprobs: [batch, time] of the policy as it is now, nats.
        values: [batch, time] of the critic as it is now.
        old_logprobs: [batch, time] of the policy that wrote the responses, nats; a constant.
        advantages: [batch, time] from task 4.
        returns: [batch, time] from task 4.
        mask: [batch, time] True at real response tokens.
        clip_range: how far a ratio may go.

    Returns:
        [] policy loss and [] value loss, each the mean over all real tokens of the batch; [] the share of real tokens
        that the clip keeps from moving on: r above the range where A > 0, below it where A < 0.

    Hint: a mean over real tokens is a sum over them divided by mask.sum(); a token that the clip holds, and padding,
    then have a gradient of exactly 0.
    """
    raise NotImplementedError("Task 5: ppo_rlhf_loss in rlhf.py is yours to write; its docstring has the formula.")


if os.environ.get("KILLICK_SOLUTIONS") == "1":  # what a teacher sets to see that everything else works
    from killick.lab.solutions import (
        bt_loss,
        gae_per_token,
        kl_penalized_rewards,
        ppo_rlhf_loss,
        ranking_to_pairs,
    )

# ------------------------------------------------------------------------------------------------ complete loops


def rankings_to_pairs(rankings: Tensor) -> Tensor:
    """[pairs, 2] winners and losers of all rankings [prompts, K]."""
    return torch.cat([ranking_to_pairs(ranking) for ranking in rankings])


def train_reward_model(
    reward: DigitReward, rollout: Rollout, *, pairs: Tensor, steps: int, learning_rate: float
) -> Iterator[float]:
    """Move the reward model so that winners score above losers; yields each step's loss, nats per pair."""
    counts = reward.counts(rollout)  # they do not change while the weights do
    optimiser = Adam(reward.parameters(), learning_rate)
    for _ in range(steps):
        scores = counts @ reward.weights
        loss = bt_loss(scores[pairs[:, 0]], scores[pairs[:, 1]])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield float(loss.detach())


def train_ppo(
    policy: TinyLM, reward: DigitReward, *, reference: TinyLM, beta: float, config: PPOConfig,
    generator: torch.Generator,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Optimise the policy against the reward model on a leash; yields a row for each iteration, before its update.

    The optimiser sees `proxy`. `gold`, `accuracy` and `kl` are looked at, never learned from.
    """
    critic = Critic(reference)
    optimiser = Adam(policy.parameters(), config.learning_rate)
    judging = Adam(critic.parameters(), config.value_learning_rate or config.learning_rate)
    for step in range(config.iterations):
        # 1. The policy writes, the reward model scores.
        rollout = policy.sample(world.prompts(config.batch, generator), config.n, generator)
        mask = rollout.mask
        with torch.no_grad():
            scores, values = reward(rollout), critic(rollout)
            old, full = policy.logprobs(rollout)
            before, full_before = reference.logprobs(rollout)
        kl = masked_sum(exact_kl(full, full_before), mask, dim=1)
        row = {
            "step": step, "proxy": float(scores.mean()), "gold": float(gold(rollout).mean()), "kl": float(kl.mean()),
            "beta": beta, "accuracy": right(rollout), "finished": float(rollout.finished.float().mean()),
            "said": world.render(rollout[:4]),
        }  # fmt: skip

        # 2. What was each token worth?
        rewards = kl_penalized_rewards(scores, old, reference_logprobs=before, mask=mask, beta=beta)
        advantages, returns = gae_per_token(
            rewards, values, mask=mask, gamma=config.gamma, gae_lambda=config.gae_lambda
        )
        advantages = whiten(advantages, mask)

        # 3. Several cautious steps on the same responses; at first small ones, while the critic gets its bearings.
        demonstrations = world.demonstrations(config.ptx_batch, generator)
        for epoch in range(config.epochs):
            policy_loss, value_loss, clip_fraction = ppo_rlhf_loss(
                policy.logprobs(rollout)[0], critic(rollout), old_logprobs=old, advantages=advantages,
                returns=returns, mask=mask, clip_range=config.clip_range,
            )  # fmt: skip
            loss = policy_loss + config.value_coefficient * value_loss
            if config.ptx_coefficient:  # keep in practice with right sums on the side
                loss = loss + config.ptx_coefficient * imitation_loss(policy, demonstrations)
            optimiser.zero_grad()
            judging.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*policy.parameters(), *critic.parameters()], config.max_grad_norm)
            rise = (step * config.epochs + epoch + 1) / max(1, config.warmup * config.epochs)
            optimiser.learning_rate = config.learning_rate * min(1.0, rise)
            optimiser.step()
            judging.step()
        yield row | {"clip_fraction": float(clip_fraction)}
