"""What a learner is asked to write, answered by killick's own arithmetic: no formula is written a second time."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from killick.algorithms.best_of_n import exact_law
from killick.algorithms.tilt import log_partition, tilt
from killick.ops import advantages as ops
from killick.ops.kl import exact_kl
from killick.ops.losses import bradley_terry, clipped, ppo_clip, value_loss
from killick.ops.masked import masked_mean
from killick.preferences.pairing import pairs
from killick.types import Ranking, Refusal, Rollout
from killick.worlds.emphasis import EMPHASIS


def bt_loss(chosen: Float[Tensor, " pair"], rejected: Float[Tensor, " pair"]) -> Float[Tensor, ""]:
    """Mean Bradley-Terry loss, nats per pair."""
    return bradley_terry(chosen, rejected).mean()


def ranking_to_pairs(ranking: Int[Tensor, " k"]) -> Int[Tensor, "pair 2"]:
    """All (winner, loser) of a ranking, best first."""
    token, real = torch.zeros(len(ranking), 1, dtype=torch.long), torch.ones(len(ranking), 1, dtype=torch.bool)
    nothing = Rollout(token, real, token, real, token.float(), real[:, 0])  # pairs are about rows, not about words
    judged = pairs(Ranking(nothing, ranking[None], torch.arange(len(ranking))[None]))
    return torch.stack((judged.chosen, judged.rejected), 1)


@torch.no_grad()
def kl_penalized_rewards(
    scores: Float[Tensor, " batch"],
    logprobs: Float[Tensor, "batch time"],
    *,
    reference_logprobs: Float[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    beta: float,
) -> Float[Tensor, "batch time"]:
    """The KL charge on each real token, and the score on the last; without gradient."""
    return ops.penalised_rewards(scores, logprobs - reference_logprobs, mask=mask, beta=beta)


def gae_per_token(
    rewards: Float[Tensor, "batch time"],
    values: Float[Tensor, "batch time"],
    *,
    mask: Bool[Tensor, "batch time"],
    gamma: float = 1.0,
    gae_lambda: float = 0.95,
) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time"]]:
    """Advantages, and the returns that the critic learns."""
    advantages = ops.gae(rewards, values, mask=mask, gamma=gamma, gae_lambda=gae_lambda)
    return advantages, torch.where(mask, advantages + values, 0.0)


def ppo_rlhf_loss(
    logprobs: Float[Tensor, "batch time"],
    values: Float[Tensor, "batch time"],
    *,
    old_logprobs: Float[Tensor, "batch time"],
    advantages: Float[Tensor, "batch time"],
    returns: Float[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    clip_range: float = 0.2,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]:
    """Policy loss, value loss, and the share of tokens that the clip holds."""
    log_ratio = logprobs - old_logprobs
    held = clipped(log_ratio.detach(), advantages, clip_range=clip_range)
    return (
        masked_mean(ppo_clip(log_ratio, advantages, clip_range=clip_range), mask),
        masked_mean(value_loss(values, returns), mask),
        masked_mean(held.float(), mask),
    )


def predict_turn(counts: Int[Tensor, "iteration batch"], seen: Int[Tensor, " response"]) -> int:
    """First iteration with more than a third of the responses beyond what 98 % of the data hold."""
    covered = seen.float().quantile(0.98, interpolation="higher")
    beyond = (counts > covered).float().mean(1) > 1 / 3
    return int(beyond.float().argmax()) if bool(beyond.any()) else len(counts)


def tilted_mean(
    values: Float[Tensor, " sample"], scores: Float[Tensor, " sample"], *, beta: float
) -> Float[Tensor, ""]:
    """Mean under reference x exp(score / beta), from samples of the reference."""
    uniform = torch.full_like(scores, -math.log(len(scores)))
    return (tilt(uniform, scores, beta=beta).exp() * values).sum()


def largest_beta(gain: Callable[[float], float], *, low: float, high: float, wanted: float, steps: int = 20) -> float:
    """Bisection; the lower end always gains enough.

    Raises:
        Refusal: where the range does not hold the answer.
    """
    if gain(low) < wanted or gain(high) >= wanted:
        raise Refusal(f"Between beta {low:g} and {high:g} the gain does not fall through {wanted:g}; widen the range.")
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) >= wanted else (low, middle)
    return low


def show_more(responses: Int[Tensor, "batch time"], generator: torch.Generator) -> Int[Tensor, "batch time"]:
    """Rows that hold 0 to all emphasis tokens, at places drawn at random."""
    plain = responses.where(responses != EMPHASIS, EMPHASIS + 1)
    place = torch.rand(responses.shape, generator=generator).argsort(1).argsort(1)
    count = torch.randint(responses.shape[1] + 1, (len(responses), 1), generator=generator)
    return plain.where(place >= count, EMPHASIS)


def tilted(
    reference: Float[Tensor, " answer"], reward: Float[Tensor, " answer"], *, beta: float
) -> Float[Tensor, " answer"]:
    """Reference x exp(reward / beta), normalised."""
    return tilt(reference.log(), reward, beta=beta).exp()


def log_z(reference: Float[Tensor, " answer"], reward: Float[Tensor, " answer"], *, beta: float) -> Float[Tensor, ""]:
    """The log of the normaliser, nats."""
    return log_partition(reference.log(), reward, beta=beta)


def kl(policy: Float[Tensor, " answer"], reference: Float[Tensor, " answer"]) -> Float[Tensor, ""]:
    """KL(policy || reference), nats."""
    return exact_kl(policy.log(), reference.log())


def best_of_n(
    reference: Float[Tensor, " answer"], reward: Float[Tensor, " answer"], *, n: int
) -> Float[Tensor, " answer"]:
    """The exact law of best-of-n."""
    return exact_law(reference, reward, n=n).to(reference.dtype)
