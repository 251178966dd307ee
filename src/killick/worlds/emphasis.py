"""Twelve tokens, one of which is emphasis: a little is good, more is bad, and the data hold only a little.

Gold = mean token value + 0.3 min(c, 3) - 0.6 max(c - 3, 0), with c the number of emphasis tokens.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.ops.masked import masked_mean
from killick.types import Prompts, Refusal, Rollout, Vocabulary

SIZE, TIME, EMPHASIS, BOS = 24, 12, 12, 24


class Emphasis:
    """One prompt, <bos>; responses of exactly twelve tokens out of 24."""

    vocabulary = Vocabulary(size=SIZE, time=TIME, eos=None, pad=BOS)
    flaw = "Almost no sample holds more than three emphasis tokens, so a reward model extends their rise past the turn."
    best = (9 * 1.0 + 3 * (2 * EMPHASIS / (SIZE - 1) - 1)) / TIME + 0.9

    def values(self, device: torch.device | None = None) -> Float[Tensor, " vocab"]:
        """What each token adds: evenly spaced from -1 to 1."""
        return torch.linspace(-1, 1, SIZE, device=device)

    def prompts(self, count: int, generator: torch.Generator) -> Prompts:
        """<bos>, which is read and never written."""
        ids = torch.full((count, 1), BOS, device=generator.device)
        return ids, torch.ones_like(ids, dtype=torch.bool)

    def demonstrations(self, count: int, generator: torch.Generator) -> Rollout:
        """The base corpus: independent tokens, softmax(value / 1.5)."""
        weights = (self.values(generator.device) / 1.5).softmax(-1)
        drawn = torch.multinomial(weights, count * TIME, replacement=True, generator=generator)
        return self.rollout(drawn.view(count, TIME))

    def holding(self, counts: Sequence[int], each: int, generator: torch.Generator) -> Rollout:
        """Corpus sequences with exactly so many emphasis tokens: `each` for every count, in the order of `counts`.

        What emphasis the corpus drew becomes the next token; then random places, all sets alike likely, are set to it.

        Raises:
            Refusal: where there is no count, one is not in 0..12, or `each` is below 1.
        """
        if not counts or not 0 <= min(counts) <= max(counts) <= TIME or each < 1:
            asked = f"{each} each of {', '.join(map(str, counts)) or 'none'}"
            raise Refusal(f"Sequences hold 0 to {TIME} emphasis tokens, and at least 1 of each count, not {asked}.")
        wanted = torch.tensor(counts, device=generator.device).repeat_interleave(each)
        drawn = self.demonstrations(len(wanted), generator).responses
        # The order of independent draws is a random permutation, so its places below c are a random set of c.
        order = torch.rand(drawn.shape, generator=generator, device=generator.device).argsort(1)
        plain = drawn.masked_fill(drawn == EMPHASIS, EMPHASIS + 1)
        return self.rollout(plain.masked_fill(order < wanted[:, None], EMPHASIS))

    def rollout(self, responses: Int[Tensor, "batch 12"]) -> Rollout:
        """Given sequences as a rollout without log-probs."""
        prompts = torch.full_like(responses[:, :1], BOS)
        seen, mask = torch.ones_like(prompts, dtype=torch.bool), torch.ones_like(responses, dtype=torch.bool)
        logprobs = torch.zeros(responses.shape, device=responses.device)
        return Rollout(prompts, seen, responses, mask, logprobs, torch.zeros_like(mask[:, 0]))

    def count(self, rollout: Rollout) -> Int[Tensor, " batch"]:
        """Emphasis tokens in each response."""
        return ((rollout.responses == EMPHASIS) & rollout.mask).sum(1)

    def gold(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """Mean token value, plus what the emphasis is worth."""
        c = self.count(rollout)
        values = self.values(rollout.responses.device)[rollout.responses.where(rollout.mask, 0)]
        mean = masked_mean(values, rollout.mask, dim=1)
        return mean + 0.3 * c.clamp(max=3) - 0.6 * (c - 3).clamp(min=0)

    def render(self, rollout: Rollout) -> list[str]:
        """Letters a to x in the order of their value, emphasis as an exclamation mark."""
        return [
            "".join("!" if token == EMPHASIS else chr(97 + token) for token in row)
            for row in rollout.responses.tolist()
        ]
