"""From text to what a policy reads: the one place where prompts and answers become a rollout."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from killick.types import Prompts, Refusal, Rollout, Vocabulary

Encode: TypeAlias = Callable[[str], list[int]]


def encode_prompts(prompts: Sequence[str], encode: Encode, *, pad: int = 0) -> Prompts:
    """Prompts as ids and mask, padded on the left.

    Raises:
        Refusal: where there is no prompt, or one holds no token.
    """
    rows = [encode(prompt) for prompt in prompts]
    if not rows or not all(rows):
        raise Refusal("A prompt must hold at least one token, and there must be at least one prompt.")
    ids, mask = padded([row[::-1] for row in rows], pad)
    return ids.flip(1), mask.flip(1)


def encode_answers(
    prompts: Sequence[str], answers: Sequence[str], *, encode: Encode, vocabulary: Vocabulary
) -> Rollout:
    """Answers that somebody wrote, as a rollout without log-probs.

    Each ends with the vocabulary's end token, where it has one. An answer longer than the budget is cut to it and not
    finished.

    Args:
        prompts: one to an answer; the same one may come again.
        answers: without an end token.
        encode: text to ids.
        vocabulary: end and padding, and the budget.

    Raises:
        Refusal: where prompts and answers do not go together, or a text is empty.
    """
    if len(prompts) != len(answers):
        raise Refusal(f"Each answer needs its prompt; there are {len(prompts)} prompts and {len(answers)} answers.")
    end = [] if vocabulary.eos is None else [vocabulary.eos]
    rows = [encode(answer) + end for answer in answers]
    if not all(rows):
        raise Refusal("An answer must hold at least one token.")
    ids, prompt_mask = encode_prompts(prompts, encode, pad=vocabulary.pad)
    responses, mask = padded([row[: vocabulary.time] for row in rows], vocabulary.pad)
    finished = torch.tensor([bool(end) and len(row) <= vocabulary.time for row in rows])
    return Rollout(ids, prompt_mask, responses, mask, torch.zeros(responses.shape), finished)


def padded(rows: Sequence[list[int]], pad: int) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
    """Rows of ids, padded on the right, and where they are real."""
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.full(mask.shape, pad)
    ids[mask] = torch.tensor([token for row in rows for token in row])
    return ids, mask
