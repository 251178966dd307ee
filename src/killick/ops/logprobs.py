"""From logits to log-probs, entropy and draws: one distribution for sampling and for scoring (O-29)."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

Draws: TypeAlias = torch.Generator | Sequence[torch.Generator]
"""What rows are drawn from: one stream for all of them, or one for each."""


def log_distribution(
    logits: Float[Tensor, "*shape vocab"], temperature: float = 1.0, *, forbidden: tuple[int, ...] = ()
) -> Float[Tensor, "*shape vocab"]:
    """Log-softmax of logits / temperature with probability 0 on forbidden tokens, in nats.

    Args:
        logits: unnormalised; half precision is raised to float32 first.
        temperature: positive; it must be the same wherever this policy's probabilities are read.
        forbidden: token ids that get minus infinity.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if forbidden:
        logits = logits.index_fill(-1, torch.tensor(forbidden, device=logits.device), -torch.inf)
    return (logits if temperature == 1.0 else logits / temperature).log_softmax(-1)


def pick(distribution: Float[Tensor, "*shape vocab"], tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The entry of each chosen token: log-probs in, log-probs out."""
    return distribution.gather(-1, tokens[..., None]).squeeze(-1)


def entropy(log_probs: Float[Tensor, "*shape vocab"]) -> Float[Tensor, "*shape"]:
    """Entropy of each distribution in nats; a token of probability 0 adds 0."""
    return -(log_probs.exp() * log_probs.where(log_probs != -torch.inf, 0.0)).sum(-1)


def draw(log_probs: Float[Tensor, "batch vocab"], generator: Draws) -> Int[Tensor, " batch"]:
    """One token from each row by the inverse distribution function (four times faster than multinomial at 49k tokens).

    A token of probability 0 is never drawn: the uniform number is a multiple of 2^-24 below 1, so its product with
    the last cumulative sum stays below that sum in float32, and the first entry above it has a positive step.
    A row of NaN gives some token of the vocabulary; whoever samples checks the log-prob that goes with it. Of several
    generators each row draws from its own, so what a row draws does not depend on the rows beside it.
    """
    cumulative = log_probs.float().exp().cumsum(-1)
    if cumulative.device.type != "cpu":  # a parallel sum may step back by a rounding; a running one cannot
        cumulative = cumulative.cummax(-1).values
    own = [(len(log_probs), generator)] if isinstance(generator, torch.Generator) else [(1, one) for one in generator]
    uniform = torch.cat([torch.rand(rows, 1, generator=one, device=log_probs.device) for rows, one in own])
    found = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)[:, 0]
    return found.clamp(max=log_probs.shape[-1] - 1)
