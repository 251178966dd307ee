"""Losses: Bradley-Terry, the clipped policy and value losses, likelihood. All in float32 or float64, per entry.

All but the likelihood return one loss per pair or token; the caller averages (masked), so that micro-batches and
padding cannot change the objective (O-37).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from killick.ops.kl import bound
from killick.ops.masked import masked_mean


def bradley_terry(
    chosen: Float[Tensor, " pair"],
    rejected: Float[Tensor, " pair"],
    *,
    label: Float[Tensor, " pair"] | float = 1.0,
    margin: Float[Tensor, " pair"] | float = 0.0,
) -> Float[Tensor, " pair"]:
    """Cross-entropy of a pair, nats: -label log sigma(d) - (1 - label) log sigma(-d); d = chosen - rejected - margin.

    Through softplus, never log(sigma): a difference of -1,000 costs 1,000 (O-01). Half precision is raised before the
    subtraction (O-02). A tie is label 0.5: the mean of both directions, and no gradient at equal scores (O-05).

    Args:
        chosen: scores of the preferred responses.
        rejected: scores of the others.
        label: probability that `chosen` is really preferred.
        margin: how far apart the loss asks them to be (Touvron et al. 2023, arXiv 2307.09288, equation 2).

    Source: Bradley and Terry 1952; Christiano et al. 2017, arXiv 1706.03741, equation 1.
    """
    if chosen.dtype not in (torch.float32, torch.float64):
        chosen, rejected = chosen.float(), rejected.float()
    difference = chosen - rejected - margin
    return softplus(-difference) + (1 - label) * difference


def centring(chosen: Float[Tensor, " pair"], rejected: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """(chosen + rejected)^2: pairs fix scores up to a constant, and this pulls it to where their mean is 0.

    Source: Eisenstein et al. 2023, arXiv 2312.09244.
    """
    return (chosen + rejected).square()


def group_weights(group: Int[Tensor, " pair"], times: Int[Tensor, " group"]) -> Float[Tensor, " pair"]:
    """Weights under which a sum of pair losses is the mean, over drawn groups, of the mean inside each (O-06).

    A long ranking then weighs no more than a short one.

    Args:
        group: each pair's group, numbered from 0.
        times: how often each group was drawn; all ones take each once.
    """
    counts = group.bincount(minlength=len(times))
    return (times / counts.clamp(min=1) / times.sum())[group]


def ppo_clip(
    log_ratio: Float[Tensor, "*shape"], advantages: Float[Tensor, "*shape"], *, clip_range: float
) -> Float[Tensor, "*shape"]:
    """max(-A r, -A clip(r, 1 - c, 1 + c)) per token, r = exp(log_ratio), the log-ratio bounded to +-20 first (O-30).

    At r = 1 its gradient is REINFORCE's; a token whose clipped branch wins has gradient exactly 0 (O-31).

    Source: Schulman et al. 2017, arXiv 1707.06347, equation 7.
    """
    ratio = bound(log_ratio).exp()
    return torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - clip_range, 1 + clip_range))


def clipped(
    log_ratio: Float[Tensor, "*shape"], advantages: Float[Tensor, "*shape"], *, clip_range: float
) -> Bool[Tensor, "*shape"]:
    """Where `ppo_clip` stops the gradient: the ratio has left the range on the side that the advantage pushes to."""
    ratio = bound(log_ratio).exp()
    return ((advantages > 0) & (ratio > 1 + clip_range)) | ((advantages < 0) & (ratio < 1 - clip_range))


def value_loss(
    values: Float[Tensor, "*shape"],
    returns: Float[Tensor, "*shape"],
    *,
    old: Float[Tensor, "*shape"] | None = None,
    clip_range: float | None = None,
) -> Float[Tensor, "*shape"]:
    """Half squared error per token; with `clip_range`, the worse of that and the error of old + clip(values - old).

    Args:
        values: the critic's readings now.
        returns: what it should have read.
        old: its readings when the rollout was made (never recomputed, O-32, O-41).
        clip_range: in the unit of the values; None clips nothing.
    """
    loss = (values - returns).square() / 2
    if clip_range is None or old is None:
        return loss
    near = old + (values - old).clamp(-clip_range, clip_range)
    return torch.maximum(loss, (near - returns).square() / 2)


def negative_log_likelihood(
    logprobs: Float[Tensor, "batch time"], mask: Bool[Tensor, "batch time"]
) -> Float[Tensor, ""]:
    """Mean over real tokens, nats per token: the supervised loss, and the pretraining term of PPO-ptx (O-42)."""
    return -masked_mean(logprobs, mask)
