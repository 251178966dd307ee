"""A person's prompts, encoded once: drawn from by an optimiser, and found again behind the rows of a rollout."""

from collections.abc import Sequence

import torch

from killick.models.encoding import encode_ids
from killick.models.texts import Prompt, Texts
from killick.types import Prompts, Refusal, Rollout


class PromptSet:
    """Prompts as ids and as what they were.

    Args:
        prompts: texts or dialogues; two that are the same ids count once.
        texts: whose tokenizer and frame.
        limit: the most tokens that leave room for an answer.

    Raises:
        Refusal: where there is none, or one is empty or too long, with its number from 1.
    """

    def __init__(self, prompts: Sequence[Prompt], texts: Texts, *, limit: int):
        self.rows: dict[tuple[int, ...], Prompt] = {}
        for number, prompt in enumerate(prompts, 1):
            try:
                ids = texts.prompt(prompt)
            except Refusal as error:
                raise Refusal(f"Prompt {number}: {error}") from error
            if len(ids) > limit:
                raise Refusal(
                    f"Prompt {number} has {len(ids)} tokens, and the model's context leaves {limit} beside an answer; "
                    "shorten it, or give fewer --tokens to the answer."
                )
            self.rows.setdefault(tuple(ids), prompt)
        if not self.rows:
            raise Refusal("There must be at least one prompt.")
        self.ids, self.mask = encode_ids([list(ids) for ids in self.rows], pad=texts.pad)

    def __len__(self) -> int:
        return len(self.rows)

    def all(self) -> Prompts:
        """Every prompt once, in order."""
        return self.ids, self.mask

    def source(self, count: int, generator: torch.Generator) -> Prompts:
        """Draw prompts, to the generator's device: each once before any comes again. No column is padding alone."""
        device = generator.device
        if device.type != "cpu":  # places are drawn on the processor, where the prompts are
            word = int(torch.randint(2**62, (1,), generator=generator, device=device))
            generator = torch.Generator().manual_seed(word)
        drawn = [torch.randperm(len(self), generator=generator) for _ in range(-(-count // len(self)))]
        rows = torch.cat(drawn)[:count]
        longest = int(self.mask[rows].sum(1).max())
        return self.ids[rows, -longest:].to(device), self.mask[rows, -longest:].to(device)

    def of(self, rollout: Rollout) -> list[Prompt]:
        """The prompt behind each row, as it was given.

        Raises:
            KeyError: where a row asks something else.
        """
        rows = zip(rollout.prompts.tolist(), (~rollout.prompt_mask).sum(1).tolist(), strict=True)
        return [self.rows[tuple(ids[skip:])] for ids, skip in rows]
