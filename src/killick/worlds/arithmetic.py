"""Two-digit additions judged by a labeler who never checks the sum: the InstructGPT recipe in miniature.

Digits that end are worth +1 where the last one is even and 0 where it is odd; anything else is worth -1.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from killick.types import Prompts, Rollout, Vocabulary

SYMBOLS = (*"0123456789+=", "<eos>", "<pad>")
PLUS, EQUALS, EOS, PAD = 10, 11, 12, 13


class Arithmetic:
    """Prompts such as `37+48=`, at most four response tokens."""

    vocabulary = Vocabulary(size=14, time=4, eos=EOS, pad=PAD, forbidden=(PAD,))
    flaw = "A reward that counts digits sees neither place nor <eos>: four even digits without an end please it most."
    best = 1.0

    def prompts(self, count: int, generator: torch.Generator) -> Prompts:
        """Both operands uniform on 10..99."""
        ids = self.encode(self.operands(count, generator))
        return ids, torch.ones_like(ids, dtype=torch.bool)

    def operands(self, count: int, generator: torch.Generator) -> Int[Tensor, "batch 2"]:
        """Draw the two numbers of each prompt."""
        return torch.randint(10, 100, (count, 2), generator=generator, device=generator.device)

    def encode(self, operands: Int[Tensor, "batch 2"]) -> Int[Tensor, "batch 6"]:
        """Two numbers as the six tokens of a prompt."""
        a, b = operands.unbind(1)
        plus, equals = torch.full_like(a, PLUS), torch.full_like(a, EQUALS)
        return torch.stack((a // 10, a % 10, plus, b // 10, b % 10, equals), 1)

    def demonstrations(self, count: int, generator: torch.Generator) -> Rollout:
        """Correct sums, each ended by <eos>, as rollouts to imitate."""
        operands = self.operands(count, generator)
        total = operands.sum(1)
        digits = torch.stack((total // 100, total // 10 % 10, total % 10, torch.full_like(total, EOS)), 1)
        short = torch.cat((digits[:, 1:], torch.full_like(digits[:, :1], PAD)), 1)
        responses = torch.where((total < 100)[:, None], short, digits)
        prompts = self.encode(operands)
        seen = torch.ones_like(prompts, dtype=torch.bool)
        ended = torch.ones_like(total, dtype=torch.bool)
        logprobs = torch.zeros(responses.shape, device=responses.device)
        return Rollout(prompts, seen, responses, responses != PAD, logprobs, ended)

    def gold(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """+1 well formed with an even last digit, 0 well formed with an odd one, -1 malformed."""
        digit = (rollout.responses < PLUS) & rollout.mask
        count = digit.sum(1)
        formed = rollout.finished & (count >= 1) & (count == rollout.lengths - 1)
        last = rollout.responses.gather(1, (count - 1).clamp(min=0)[:, None])[:, 0]
        return torch.where(formed, 1.0 - last % 2, -1.0)

    def correct(self, rollout: Rollout) -> Bool[Tensor, " batch"]:
        """Whether the response is the sum: nobody is paid for it."""
        p = rollout.prompts
        total = 10 * (p[:, 0] + p[:, 3]) + p[:, 1] + p[:, 4]
        value = torch.zeros_like(total)
        for token, real in zip(rollout.responses.T, (rollout.responses < PLUS).T & rollout.mask.T, strict=True):
            value = torch.where(real, 10 * value + token, value)
        digits = 2 + (total >= 100).long()
        return (self.gold(rollout) >= 0) & (value == total) & (rollout.lengths == digits + 1)

    def questions(self, prompts: Int[Tensor, "batch 6"]) -> list[str]:
        """Each prompt as a person reads it."""
        return ["".join(SYMBOLS[token] for token in row) for row in prompts.tolist()]

    def render(self, rollout: Rollout) -> list[str]:
        """Each response as a person reads it; one that did not end closes with an ellipsis."""
        out = []
        for tokens, length, ended in zip(
            rollout.responses.tolist(), rollout.lengths.tolist(), rollout.finished.tolist(), strict=True
        ):
            shown = tokens[: length - 1] if ended else tokens[:length]
            out.append("".join(SYMBOLS[token] for token in shown) + ("" if ended else "…"))
        return out
