"""From scores and values to advantages. The score lands on the last real token; the state after it is terminal."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def place_score(scores: Float[Tensor, " batch"], mask: Bool[Tensor, "batch time"]) -> Float[Tensor, "batch time"]:
    """Each row's score at its last real token and 0 elsewhere (O-21).

    Raises:
        ValueError: where a row has no real token; a response holds at least its end token (O-43).
    """
    lengths = mask.sum(1)
    if bool((lengths == 0).any()):
        row = int((lengths == 0).nonzero()[0])
        raise ValueError(f"Row {row} has no real token, so its score has no place; a response holds at least <eos>.")
    return torch.zeros_like(mask, dtype=scores.dtype).scatter(1, lengths[:, None] - 1, scores[:, None])


def penalised_rewards(
    scores: Float[Tensor, " batch"],
    log_ratio: Float[Tensor, "batch time"],
    *,
    mask: Bool[Tensor, "batch time"],
    beta: float,
) -> Float[Tensor, "batch time"]:
    """-beta log(policy / reference) at every real token, plus the score on the last one; score units per token.

    Source: Ziegler et al. 2019, arXiv 1909.08593; Ouyang et al. 2022, arXiv 2203.02155.
    """
    return place_score(scores, mask) - beta * torch.where(mask, log_ratio, 0.0)


def returns(
    rewards: Float[Tensor, "batch time"], mask: Bool[Tensor, "batch time"], *, gamma: float = 1.0
) -> Float[Tensor, "batch time"]:
    """Monte Carlo return: at each real token t, the sum of gamma^(s - t) rewards[s] over real s >= t; 0 on padding."""
    time = torch.arange(rewards.shape[1], device=rewards.device)
    power = (time[:, None] - time).clamp(min=0).to(rewards.dtype)
    weights = torch.where(time[:, None] >= time, gamma**power, 0.0)
    return torch.where(mask, torch.where(mask, rewards, 0.0) @ weights, 0.0)


def gae(
    rewards: Float[Tensor, "batch time"],
    values: Float[Tensor, "batch time"],
    *,
    mask: Bool[Tensor, "batch time"],
    gamma: float = 1.0,
    gae_lambda: float = 0.95,
) -> Float[Tensor, "batch time"]:
    """Generalised advantages at real tokens, 0 on padding; the return that the critic learns is this plus `values`.

    The value after the last real token is 0 whatever stands on the padding (O-26, O-27).

    Args:
        rewards: per token, KL charge included.
        values: the critic's reading before each token.
        mask: True at real tokens.
        gamma: discount per token.
        gae_lambda: 0 trusts the critic, 1 the return.

    Source: Schulman et al. 2015, arXiv 1506.02438, equation 16.
    """
    kept = torch.where(mask, values, 0.0)
    following = torch.nn.functional.pad(kept[:, 1:], (0, 1))
    return returns(rewards + gamma * following - kept, mask, gamma=gamma * gae_lambda)


def batch_mean(scores: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """The mean of all scores, for every row: the simplest baseline (slightly biased: it holds the row itself)."""
    return scores.mean().expand_as(scores)


def group_mean(scores: Float[Tensor, " batch"], n: int) -> Float[Tensor, " batch"]:
    """The mean over the `n` responses of a row's own prompt, whose rows stand together."""
    return scores.view(-1, n).mean(1).repeat_interleave(n)


def leave_one_out(scores: Float[Tensor, " batch"], n: int) -> Float[Tensor, " batch"]:
    """The mean of the other n - 1 scores of the same prompt; rows of a prompt stand together.

    Raises:
        ValueError: at n < 2, where no other response exists.

    Source: Kool et al. 2019; Ahmadian et al. 2024 (RLOO), arXiv 2402.14740.
    """
    if n < 2:
        raise ValueError(f"A leave-one-out baseline needs n >= 2 responses per prompt, not {n}.")
    grouped = scores.view(-1, n)
    return ((grouped.sum(1, keepdim=True) - grouped) / (n - 1)).flatten()
