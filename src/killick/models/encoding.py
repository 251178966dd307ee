"""From text to what a policy reads: the one place where prompts and answers become a rollout."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from killick.models.texts import Prompt, Texts
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
    return encode_ids(rows, pad=pad)


def encode_ids(rows: Sequence[list[int]], *, pad: int) -> Prompts:
    """Prompts that are ids already, padded on the left."""
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


@dataclass(frozen=True)
class Encoded:
    """Texts as a rollout without log-probs, and what of them was not read.

    Args:
        rollout: in the order of the texts; `finished` is False where an answer was cut.
        cut_prompts: rows whose prompt lost tokens on its left.
        cut_answers: rows whose answer lost tokens on its right, its end token among them.
    """

    rollout: Rollout
    cut_prompts: Bool[Tensor, " batch"]
    cut_answers: Bool[Tensor, " batch"]


def encode_texts(
    prompts: Sequence[Prompt],
    answers: Sequence[Prompt],
    *,
    texts: Texts,
    limit: int,
    time: int,
    closing: Sequence[int] | None = None,
) -> Encoded:
    """Prompts and answers as one model reads them: the same ids for training, best-of-n, PPO and the API (O-09).

    What is read of a text depends on its own prompt and answer only. A prompt keeps its last tokens (and its start
    token) so that `time` are left for any answer, the same ones for all its answers; an answer then has all the room
    that is left, its end token included (O-19).

    Args:
        prompts: one to an answer; the same one may come again.
        answers: without an end token; "" is an answer that ended at once (O-43).
        texts: tokenizer and frame.
        limit: most tokens of prompt and answer together.
        time: tokens that are kept free for an answer.
        closing: what is read behind an answer, the end token unless told; where it is nothing, an answer of no token
            has its end token all the same.

    Raises:
        Refusal: where prompts and answers do not go together, there are none, or one cannot be read.
    """
    if len(prompts) != len(answers) or not prompts:
        raise Refusal(f"Each answer needs its prompt; there are {len(prompts)} prompts and {len(answers)} answers.")
    if not 1 <= time < limit:
        raise Refusal(f"An answer needs room within the {limit} tokens that are read, not {time} of them.")
    end = [] if texts.eos is None else [texts.eos]
    known: dict[Hashable, list[int]] = {}
    asked, spoken, cut_prompts, cut_answers = [], [], [], []
    for prompt, answer in zip(prompts, answers, strict=True):
        key = prompt if isinstance(prompt, str) else tuple(map(tuple, prompt))
        ids = known[key] if key in known else known.setdefault(key, texts.prompt(prompt))
        kept = shortened(ids, limit - time, start=texts.start)
        said = texts.answer(answer) + (end if closing is None else list(closing)) or end
        if not said:
            raise Refusal("An answer must hold at least one token.")
        asked.append(kept)
        spoken.append(said[: limit - len(kept)])
        cut_prompts.append(len(kept) < len(ids))
        cut_answers.append(len(spoken[-1]) < len(said))
    responses, mask = padded(spoken, texts.pad)
    finished = torch.tensor([bool(end) and not cut for cut in cut_answers])
    rollout = Rollout(*encode_ids(asked, pad=texts.pad), responses, mask, torch.zeros(responses.shape), finished)
    return Encoded(rollout, torch.tensor(cut_prompts), torch.tensor(cut_answers))


def shortened(ids: list[int], room: int, *, start: list[int]) -> list[int]:
    """The last ids of a prompt, behind its start token where it has one."""
    if len(ids) <= room:
        return ids
    front = start if ids[: len(start)] == start and len(start) < room else []
    return front + ids[len(ids) - room + len(front) :]
