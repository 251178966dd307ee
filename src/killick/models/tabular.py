"""A table of logits that speaks: no network, so optima and gradients are exact."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from killick.models.decoding import check_temperature
from killick.ops.logprobs import draw, log_distribution, pick
from killick.types import Prompts, Refusal, Rollout, Vocabulary, check_finite


@dataclass(frozen=True)
class Asked:
    """What all rollouts to the same prompts share.

    Args:
        given: the prompts' two tensors, one row each, kept so that no others can take their place in memory.
        n: responses to each.
        ids, prompt_mask, mask, finished: as in the rollout.
        rows: of the table.
    """

    given: tuple[Tensor, Tensor]
    n: int
    ids: Int[Tensor, "batch prompt"]
    prompt_mask: Bool[Tensor, "batch prompt"]
    rows: Int[Tensor, " batch"]
    mask: Bool[Tensor, "batch time"]
    finished: Bool[Tensor, " batch"]


class TabularPolicy(nn.Module):
    """A `Policy` of fixed response length: one row of logits for each prompt and place, blind to the tokens before.

    The last prompt token is the row of the table.

    Args:
        logits: [prompt, time, vocab]; copied.
        vocabulary: without an end token.
        temperature: one for sampling and scoring.
        sampler: draws one token from each row of log-probs; a recipe that repeats a source's stream gives its own.
    """

    def __init__(
        self,
        logits: Float[Tensor, "prompt time vocab"],
        vocabulary: Vocabulary,
        temperature: float = 1.0,
        sampler: Callable[[Tensor, torch.Generator], Tensor] = draw,
    ):
        super().__init__()
        check_temperature(temperature)
        if logits.shape[1:] != (vocabulary.time, vocabulary.size) or vocabulary.eos is not None:
            raise Refusal(
                f"A table of {tuple(logits.shape)} logits needs a vocabulary of size {logits.shape[2]}, time "
                f"{logits.shape[1]} and no end token, not size {vocabulary.size}, time {vocabulary.time} and end "
                f"token {vocabulary.eos}."
            )
        self.logits = nn.Parameter(logits.detach().clone())
        self.vocabulary, self.temperature, self.sampler = vocabulary, temperature, sampler
        self.last: Asked | None = None

    def table(self) -> Float[Tensor, "prompt time vocab"]:
        """All log-probs, nats."""
        return log_distribution(self.logits, self.temperature, forbidden=self.vocabulary.forbidden)

    @torch.no_grad()
    def sample(self, prompts: Prompts, n: int, generator: torch.Generator) -> Rollout:
        """Draw `n` responses to each prompt; the rows of one prompt stand together."""
        asked = self.asked(prompts, n)
        rows = self.table().index_select(0, asked.rows)
        tokens = torch.stack([self.sampler(place, generator) for place in rows.unbind(1)], 1)
        drawn = pick(rows, tokens)
        check_finite("log-probs of the sampled tokens are", drawn)
        return Rollout(asked.ids, asked.prompt_mask, tokens, asked.mask, drawn, asked.finished)

    def asked(self, prompts: Prompts, n: int) -> Asked:
        """The same as last time for the same two tensors, which nobody changes: a world asks few prompts, each step."""
        last = self.last
        if last is not None and last.n == n and prompts[0] is last.given[0] and prompts[1] is last.given[1]:
            return last
        ids, prompt_mask = (x.repeat_interleave(n, 0) for x in prompts)
        rows = ids[:, -1]
        if int(rows.max()) >= len(self.logits):
            raise Refusal(f"Prompt {int(rows.max())} has no row in a table of {len(self.logits)} prompts.")
        mask = torch.ones(len(ids), self.vocabulary.time, dtype=torch.bool, device=ids.device)
        self.last = Asked(prompts, n, ids, prompt_mask, rows, mask, torch.zeros_like(mask[:, 0]))
        return self.last

    def logprobs(self, rollout: Rollout) -> tuple[Float[Tensor, "batch time"], Float[Tensor, "batch time vocab"]]:
        """Log-probs of the response and the full log-softmax, nats, with gradient."""
        full = self.table().index_select(0, rollout.prompts[:, -1])
        return pick(full, rollout.responses).where(rollout.mask, 0.0), full
