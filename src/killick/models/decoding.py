"""From logits to a rollout, and from a rollout to the sequence that is scored: once, for every model that speaks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from killick.ops.logprobs import Draws, draw_scored, pick, scaled
from killick.types import Policy, Prompts, Refusal, Rollout, Vocabulary, check_finite

CACHED = 2**19
"""Logits that are turned into draws at once: twice as fast as all of 64 rows of 49k tokens."""


def check_temperature(temperature: float) -> None:
    """Refuse what has no log-probs to train on (O-29).

    Raises:
        Refusal: unless the temperature is positive and finite.
    """
    if not 0 < temperature < float("inf"):
        raise Refusal(f"A policy's temperature must be a positive number, not {temperature}.")


@dataclass(frozen=True)
class Distribution:
    """What a policy samples from and what it is scored by: one for both (O-29).

    Its columns are what a network is asked for: the tokens of the vocabulary, or the spoken ones only.

    Args:
        vocabulary: which tokens, how many of them a response holds, and which ends it.
        temperature: of the softmax.
        top_k: only so many of the most probable tokens stay possible; None keeps all.
        top_p: only the nucleus of this mass stays possible; 1 keeps all.
        spoken: sorted ids; all others have probability 0 and no column. None gives every token a column.

    Raises:
        Refusal: where a setting is out of range, or no response could end.
    """

    vocabulary: Vocabulary
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    spoken: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise Refusal(f"top_k must be a whole number of at least 1, not {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise Refusal(f"top_p must be above 0 and at most 1, not {self.top_p}.")
        if self.spoken is None:
            return
        eos, size, allowed = (
            self.vocabulary.eos,
            self.vocabulary.size,
            set(self.spoken) - set(self.vocabulary.forbidden),
        )
        if (
            list(self.spoken) != sorted(set(self.spoken))
            or not allowed
            or not 0 <= self.spoken[0] <= self.spoken[-1] < size
        ):
            raise Refusal(
                f"Spoken tokens must be sorted, lie in 0..{size - 1}, come once each, and not all be forbidden."
            )
        if eos is not None and eos not in allowed:
            raise Refusal(f"The end token {eos} is not among the spoken ones, so no response could end; use eos=None.")

    @cached_property
    def ids(self) -> Int[Tensor, " spoken"] | None:
        """The token behind each column; None where they are the same."""
        return None if self.spoken is None else torch.tensor(self.spoken)

    @cached_property
    def forbidden(self) -> tuple[int, ...]:
        """Columns of probability 0."""
        if self.spoken is None:
            return self.vocabulary.forbidden
        barred = set(self.vocabulary.forbidden)
        return tuple(column for column, token in enumerate(self.spoken) if token in barred)

    def scaled(self, logits: Float[Tensor, "*shape column"]) -> Float[Tensor, "*shape column"]:
        """Logits whose softmax it is."""
        return scaled(logits, self.temperature, forbidden=self.forbidden, top_k=self.top_k, top_p=self.top_p)

    def draw(
        self, logits: Float[Tensor, "batch column"], generator: Draws
    ) -> tuple[Int[Tensor, " batch"], Float[Tensor, " batch"]]:
        """A column of each row and its log-prob; of wide rows a few at a time, so that they stay in the cache."""
        each = max(1, CACHED // logits.shape[1])
        found = []
        for first in range(0, len(logits), each):
            rows = slice(first, first + each)
            streams = generator if isinstance(generator, torch.Generator) else generator[rows]
            found.append(draw_scored(self.scaled(logits[rows]), streams))
        return torch.cat([column for column, _ in found]), torch.cat([drawn for _, drawn in found])

    def log_probs(self, logits: Float[Tensor, "*shape column"]) -> Float[Tensor, "*shape column"]:
        """The full log-softmax, nats."""
        return self.scaled(logits).log_softmax(-1)

    def tokens(self, columns: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """The ids of columns."""
        return columns if self.ids is None else self.ids.to(columns.device)[columns]

    def pick(self, log_probs: Float[Tensor, "*shape column"], tokens: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The log-prob of each token; minus infinity for one that is never spoken."""
        if self.ids is None:
            return pick(log_probs, tokens)
        ids = self.ids.to(tokens.device)
        columns = torch.searchsorted(ids, tokens).clamp(max=len(ids) - 1)
        return pick(log_probs, columns).where(ids[columns] == tokens, -torch.inf)


@torch.no_grad()
def decode(
    step: Callable[[Int[Tensor, "batch new"]], Float[Tensor, "batch column"]],
    prompts: Prompts,
    *,
    n: int,
    distribution: Distribution,
    generator: Draws,
) -> Rollout:
    """Draw `n` responses to each prompt, token by token, until all have ended or the budget is spent.

    Args:
        step: takes the tokens that are new since its last call, gives the logits of the next one.
        prompts: ids and mask, padded on the left.
        n: responses per prompt; the rows of one prompt stand together.
        distribution: what is drawn from, and how many tokens.
        generator: drawn from once a token, for every row, so that an ended row does not shift its neighbours; or one
            for each response.

    Raises:
        NonFinite: where a sampled log-prob is NaN or infinite (O-44).
    """
    vocabulary = distribution.vocabulary
    ids, prompt_mask = (x.repeat_interleave(n, 0) for x in prompts)
    alive = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
    tokens, logprobs, masks, new = [], [], [], ids
    for _ in range(vocabulary.time):
        column, drawn = distribution.draw(step(new), generator)
        token = distribution.tokens(column)
        tokens.append(token.where(alive, vocabulary.pad))
        logprobs.append(drawn.where(alive, 0.0))
        masks.append(alive)
        if vocabulary.eos is not None:
            alive = alive & (token != vocabulary.eos)
            if not bool(alive.any()):
                break
        new = token[:, None]
    scored = torch.stack(logprobs, 1)
    check_finite("log-probs of the sampled tokens are", scored)
    finished = ~alive if vocabulary.eos is not None else torch.zeros_like(alive)
    return Rollout(ids, prompt_mask, torch.stack(tokens, 1), torch.stack(masks, 1), scored, finished)


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
    logits: Float[Tensor, "rows column"], rollout: Rollout, *, distribution: Distribution
) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time column"]]:
    """Log-probs of the response tokens (0 on padding) and the full log-softmax, from logits in reading order."""
    full = distribution.log_probs(logits).view(*rollout.responses.shape, -1)
    return distribution.pick(full, rollout.responses.where(rollout.mask, 0)).where(rollout.mask, 0.0), full
