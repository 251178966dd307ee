"""From logits to a rollout, and from a rollout to the sequence that is scored: once, for every model that speaks."""

from collections.abc import Callable, Sequence
from dataclasses import fields

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from killick.ops.logprobs import Draws, draw, log_distribution, pick
from killick.types import Policy, Prompts, Refusal, Rollout, Vocabulary, check_finite


def check_temperature(temperature: float) -> None:
    """Refuse what has no log-probs to train on (O-29).

    Raises:
        Refusal: unless the temperature is positive and finite.
    """
    if not 0 < temperature < float("inf"):
        raise Refusal(f"A policy's temperature must be a positive number, not {temperature}.")


@torch.no_grad()
def decode(
    step: Callable[[Int[Tensor, "batch new"]], Float[Tensor, "batch vocab"]],
    prompts: Prompts,
    *,
    n: int,
    vocabulary: Vocabulary,
    temperature: float,
    generator: Draws,
) -> Rollout:
    """Draw `n` responses to each prompt, token by token, until all have ended or the budget is spent.

    Args:
        step: takes the tokens that are new since its last call, gives the logits of the next one.
        prompts: ids and mask, padded on the left.
        n: responses per prompt; the rows of one prompt stand together.
        vocabulary: what may be drawn, and how many tokens.
        temperature: of the distribution.
        generator: drawn from once a token, for every row, so that an ended row does not shift its neighbours; or one
            for each response.

    Raises:
        NonFinite: where a sampled log-prob is NaN or infinite (O-44).
    """
    ids, prompt_mask = (x.repeat_interleave(n, 0) for x in prompts)
    alive = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    tokens, logprobs, masks, new = [], [], [], ids
    for _ in range(vocabulary.time):
        distribution = log_distribution(step(new), temperature, forbidden=vocabulary.forbidden)
        token = draw(distribution, generator)
        tokens.append(token.where(alive, vocabulary.pad))
        logprobs.append(pick(distribution, token).where(alive, 0.0))
        masks.append(alive)
        if vocabulary.eos is not None:
            alive = alive & (token != vocabulary.eos)
            if not bool(alive.any()):
                break
        new = token[:, None]
    drawn = torch.stack(logprobs, 1)
    check_finite("log-probs of the sampled tokens are", drawn)
    finished = ~alive if vocabulary.eos is not None else torch.zeros_like(alive)
    return Rollout(ids, prompt_mask, torch.stack(tokens, 1), torch.stack(masks, 1), drawn, finished)


def sample_in_batches(
    policy: Policy, prompts: Prompts, *, n: int, generator: torch.Generator, rows: int = 256
) -> Rollout:
    """`policy.sample` for more responses than memory would hold at once; all stand in one rollout, in order.

    Args:
        policy: speaks.
        prompts: ids and mask.
        n: responses per prompt.
        generator: drawn from, batch after batch: other `rows` give other responses.
        rows: responses at once; a prompt's n stay together, even where they are more.
    """
    each = max(1, rows // n)
    parts = [
        policy.sample((ids, mask), n, generator) for ids, mask in zip(*(x.split(each) for x in prompts), strict=True)
    ]
    return joined(parts, pad=policy.vocabulary.pad)


def joined(parts: Sequence[Rollout], *, pad: int) -> Rollout:
    """Rollouts with prompts of one width as one, filled up on the right to the longest response."""
    time = max(part.responses.shape[1] for part in parts)

    def column(name: str) -> Tensor:
        tensors = [getattr(part, name) for part in parts]
        if name not in ("responses", "mask", "logprobs"):
            return torch.cat(tensors)
        fill = {"responses": pad, "mask": False, "logprobs": 0.0}[name]
        return torch.cat([functional.pad(x, (0, time - x.shape[1]), value=fill) for x in tensors])

    return Rollout(**{each.name: column(each.name) for each in fields(Rollout)})


def sequence(
    rollout: Rollout, *, after: bool = False
) -> tuple[Int[Tensor, "batch length"], Bool[Tensor, "batch length"] | None, int]:
    """What a network reads to score every response token.

    Args:
        rollout: prompts and responses.
        after: the states wanted are those that have read their token (a judge's), not those before it (a speaker's).

    Returns:
        Prompt and response ids, without the last one unless `after` (nothing follows it); their mask, or None where
        no prompt is padded; and the column of the first state that is wanted.
    """
    stop = None if after else -1
    ids = torch.cat((rollout.prompts, rollout.responses), 1)[:, :stop]
    first = rollout.prompts.shape[1] - (0 if after else 1)
    if bool(rollout.prompt_mask.all()):
        return ids, None, first
    return ids, torch.cat((rollout.prompt_mask, rollout.mask), 1)[:, :stop], first


def score(
    logits: Float[Tensor, "rows vocab"], rollout: Rollout, *, vocabulary: Vocabulary, temperature: float
) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time vocab"]]:
    """Log-probs of the response tokens (0 on padding) and the full log-softmax, from logits in reading order."""
    full = log_distribution(logits, temperature, forbidden=vocabulary.forbidden).view(*rollout.responses.shape, -1)
    return pick(full, rollout.responses.where(rollout.mask, 0)).where(rollout.mask, 0.0), full
