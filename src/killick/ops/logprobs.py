"""From logits to log-probs, entropy and draws: one distribution for sampling and for scoring (O-29)."""

from collections.abc import Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

Draws: TypeAlias = torch.Generator | Sequence[torch.Generator]
"""What rows are drawn from: one stream for all of them, or one for each."""

NUCLEUS = 1024
"""Most tokens that are sorted at first: a nucleus is rarely larger, and sorting 49k tokens costs as much as a layer."""

WIDE = 4096
"""From so many tokens on it pays to find a block first, and a token inside it then."""

BLOCK = 256
"""Tokens of such a block."""


def log_distribution(
    logits: Float[Tensor, "*shape vocab"],
    temperature: float = 1.0,
    *,
    forbidden: tuple[int, ...] = (),
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Float[Tensor, "*shape vocab"]:
    """Log-softmax of logits / temperature with probability 0 on forbidden and filtered tokens, in nats.

    Args:
        logits: unnormalised; half precision is raised to float32 first.
        temperature: positive; it must be the same wherever this policy's probabilities are read.
        forbidden: token ids that get minus infinity.
        top_k: only so many of the most probable tokens stay possible; None keeps all.
        top_p: only the fewest most probable tokens whose probabilities reach this sum stay possible; 1 keeps all.
    """
    return scaled(logits, temperature, forbidden=forbidden, top_k=top_k, top_p=top_p).log_softmax(-1)


def scaled(
    logits: Float[Tensor, "*shape vocab"],
    temperature: float = 1.0,
    *,
    forbidden: tuple[int, ...] = (),
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Float[Tensor, "*shape vocab"]:
    """Logits whose softmax is `log_distribution`, without that softmax; what cannot be drawn is minus infinity."""
    half = logits.dtype in (torch.bfloat16, torch.float16)
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if forbidden:
        logits = logits.index_fill(-1, torch.tensor(forbidden, device=logits.device), -torch.inf)
    if temperature != 1.0:
        logits = logits.div_(temperature) if half else logits / temperature  # a raised copy is nobody else's
    if top_k is not None and top_k < logits.shape[-1]:
        logits = logits.masked_fill(logits < kth_largest(logits.detach(), top_k), -torch.inf)  # NaN is no less
    if top_p < 1:
        logits = logits.log_softmax(-1)
        logits = logits.masked_fill(logits < edge(logits.detach(), top_p), -torch.inf)
    return logits


def kth_largest(logits: Float[Tensor, "*shape vocab"], k: int) -> Float[Tensor, "*shape 1"]:
    """The k-th largest logit of each row; tokens that tie with it are as good, so whoever filters keeps them."""
    return logits.topk(k, -1).values[..., -1:]


def edge(log_probs: Float[Tensor, "*shape vocab"], top_p: float) -> Float[Tensor, "*shape 1"]:
    """The smallest log-prob inside the nucleus: the fewest most probable tokens whose probabilities sum to `top_p`.

    Source: Holtzman et al. 2020, arXiv 1904.09751.
    """
    for width in (min(NUCLEUS, log_probs.shape[-1]), log_probs.shape[-1]):
        ordered = log_probs.topk(width, -1).values
        shares = ordered.exp()
        reached = shares.cumsum(-1)
        if bool((reached[..., -1] >= top_p).all()):
            break
    before = reached - shares  # what stands above a token; the first always stays
    return ordered.gather(-1, (before < top_p).sum(-1, keepdim=True).clamp(min=1) - 1)


def pick(distribution: Float[Tensor, "*shape vocab"], tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The entry of each chosen token: log-probs in, log-probs out."""
    return distribution.gather(-1, tokens[..., None]).squeeze(-1)


def entropy(log_probs: Float[Tensor, "*shape vocab"]) -> Float[Tensor, "*shape"]:
    """Entropy of each distribution in nats; a token of probability 0 adds 0."""
    return -(log_probs.exp() * log_probs.where(log_probs != -torch.inf, 0.0)).sum(-1)


def draw(log_probs: Float[Tensor, "batch vocab"], generator: Draws) -> Int[Tensor, " batch"]:
    """One token from each row by the inverse distribution function (many times faster than multinomial at 49k tokens).

    A token of probability 0 is never drawn: the uniform number is a multiple of 2^-24 below 1, so its product with
    the last cumulative sum stays below that sum in float32, and the first entry above it has a positive step.
    A row of NaN gives some token of the vocabulary; whoever samples checks the log-prob that goes with it. Of several
    generators each row draws from its own, so what a row draws does not depend on the rows beside it.
    """
    return found(log_probs.float().exp(), generator)[0]


def draw_scored(
    logits: Float[Tensor, "batch vocab"], generator: Draws
) -> tuple[Int[Tensor, " batch"], Float[Tensor, " batch"]]:
    """One token from the softmax of each row, and its log-prob in nats.

    Args:
        logits: as `scaled` gives them.
        generator: drawn from, as in `draw`.
    """
    if logits.shape[1] < WIDE:
        log_probs = logits.log_softmax(-1)
        token = draw(log_probs, generator)
        return token, pick(log_probs, token)
    # In a wide vocabulary the sum that the draw needs anyway spares a log-softmax.
    top = logits.amax(1, keepdim=True)
    token, total = found((logits - top).float().exp_(), generator)
    return token, pick(logits, token) - top[:, 0] - total.log()


def found(
    shares: Float[Tensor, "batch vocab"], generator: Draws
) -> tuple[Int[Tensor, " batch"], Float[Tensor, " batch"]]:
    """A token of each row, as often as its share of the row's sum, and that sum."""
    own = [(len(shares), generator)] if isinstance(generator, torch.Generator) else [(1, one) for one in generator]
    uniform = torch.cat([torch.rand(rows, 1, generator=one, device=shares.device) for rows, one in own])
    if shares.shape[1] < WIDE:
        cumulative = running(shares)
        return above(cumulative, uniform * cumulative[:, -1:])[:, 0], cumulative[:, -1]
    ragged = -shares.shape[1] % BLOCK
    blocks = (functional.pad(shares, (0, ragged)) if ragged else shares).unflatten(1, (-1, BLOCK))  # a pad is a copy
    cumulative = running(blocks.sum(2))
    height = uniform * cumulative[:, -1:]
    block = above(cumulative, height)
    below = cumulative.gather(1, (block - 1).clamp(min=0)).where(block > 0, 0.0)
    inside = running(blocks.take_along_dim(block[:, :, None], 1)[:, 0])
    token = above(inside, torch.minimum(height - below, inside[:, -1:] * (1 - 2**-24)))
    return (block * BLOCK + token)[:, 0].clamp(max=shares.shape[1] - 1), cumulative[:, -1]


def running(shares: Float[Tensor, "batch entry"]) -> Float[Tensor, "batch entry"]:
    """Cumulative sums that never step back."""
    cumulative = shares.cumsum(-1)
    if cumulative.device.type != "cpu":  # a parallel sum may step back by a rounding; a running one cannot
        cumulative = cumulative.cummax(-1).values
    return cumulative


def above(cumulative: Float[Tensor, "batch entry"], height: Float[Tensor, "batch 1"]) -> Int[Tensor, "batch 1"]:
    """The first entry of each row that is larger than its height."""
    return torch.searchsorted(cumulative, height, right=True).clamp(max=cumulative.shape[1] - 1)
