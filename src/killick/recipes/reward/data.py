"""Judgements of texts as one reward model reads them: ids, judged pairs, and three parts by prompt."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from killick.models.encoding import Encoded, encode_texts
from killick.models.texts import Texts
from killick.preferences.pairing import part
from killick.preferences.rows import PreferenceRow, Turns, text, text_key
from killick.preferences.splitting import PARTS
from killick.preferences.text_pairs import TextPairs, text_pairs
from killick.types import Preference, Refusal, Rollout

Entry = tuple[Turns, Turns]
"""A prompt and one response to it."""


class Placed(NamedTuple):
    """A judgement, and where it stands ("line 3", "label 7")."""

    where: str
    row: PreferenceRow


@dataclass(frozen=True)
class Reading:
    """How judgements are read.

    Args:
        limit: most tokens of prompt and answer together.
        time: tokens of them that are kept free for an answer.
        shares: expected shares of prompts to learn from, to choose by, and to be judged by.
        seed: of the split.
        ties: half teaches a tie as a label of one half, out leaves it out and counts it.
        skip: leave out (and count) judgements that the model cannot read, instead of refusing all.
    """

    limit: int
    time: int
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    ties: Literal["half", "out"] = "half"
    skip: bool = False


@dataclass(frozen=True)
class Judged:
    """What a reward model learns from and is judged by.

    Args:
        preference: every pair; its rollout holds each distinct response once, however many pairs it stands in.
        unit: the prompt of each pair, by number.
        part: of each pair: 0 to learn from, 1 to choose by, 2 to be judged by.
        counts: what was left out or cut, and why: words -> how often.
        prompts: the prompts of each part.
        texts: prompt and response of each row of the rollout.
    """

    preference: Preference
    unit: Int[Tensor, " pair"]
    part: Int[Tensor, " pair"]
    counts: Counter[str]
    prompts: tuple[list[str], ...]
    texts: list[Entry]

    def of(self, number: int) -> tuple[Preference, Int[Tensor, " pair"]]:
        """The pairs of one part, and their prompts."""
        rows = self.part == number
        return self.preference.pairs(rows), self.unit[rows]

    @property
    def learned(self) -> list[str]:
        """Hashes of the prompts that are learned from or chosen by (`text_key`): no fair judge asks about them."""
        return sorted(text_key(prompt).hex() for number in (0, 1) for prompt in self.prompts[number])


def judge_rows(placed: Sequence[Placed], texts: Texts, *, reading: Reading) -> Judged:
    """Judgements as pairs of ids, split by prompt.

    Pairs that the model cannot tell apart, whatever it cuts, are left out and counted (O-04).

    Args:
        placed: judgements, each with where it stands.
        texts: the model's tokenizer and frame.
        reading: how.

    Raises:
        Refusal: where a judgement cannot be read (unless told to leave it out), there is no pair, or no prompt is left
            to learn from or to be judged by.
    """
    encoded, left = encode_entries(placed, texts, reading=reading)
    good = [row for _, row in placed if all((row.prompt, response) in encoded for response in row.responses)]
    found = text_pairs(
        good, ties=reading.ties, seen=lambda prompt, response: encoded.get((prompt, response), (response,))
    )
    if not len(found):
        why = "; ".join(f"{count:,} {reason}" for reason, count in (left + found.counts).items())
        raise Refusal(f"There is no pair to learn from{f' ({why})' if why else ''}.")
    entries = list(zip(found.prompts, found.responses, strict=True))
    read = encode(entries, texts, reading=reading)
    counts = left + found.counts
    counts["responses whose prompt was cut on its left"] = int(read.cut_prompts.sum())
    counts["responses cut on their right"] = int(read.cut_answers.sum())
    return parted(found, entries, rollout=read.rollout, counts=+counts, reading=reading)


def encode(entries: Sequence[Entry], texts: Texts, *, reading: Reading) -> Encoded:
    """Prompts and responses through the one function that makes ids."""
    prompts, answers = [prompt for prompt, _ in entries], [answer for _, answer in entries]
    return encode_texts(prompts, answers, texts=texts, limit=reading.limit, time=reading.time)


def encode_entries(
    placed: Sequence[Placed], texts: Texts, *, reading: Reading
) -> tuple[dict[Entry, tuple[int, ...]], Counter[str]]:
    """The ids of each response as far as they are read, and how many judgements cannot be.

    Raises:
        Refusal: for all of these at once, with the first, unless told to leave them out.
    """
    entries = list(dict.fromkeys((row.prompt, response) for _, row in placed for response in row.responses))
    found: dict[Entry, tuple[int, ...]] = {}
    reasons: dict[Entry, str] = {}
    for start in range(0, len(entries), 256):
        some = entries[start : start + 256]
        try:
            found |= seen(some, texts, reading=reading)
        except Refusal:
            for entry in some:
                try:
                    found |= seen([entry], texts, reading=reading)
                except Refusal as error:
                    reasons[entry] = str(error)
    bad = [
        (where, reason)
        for where, row in placed
        if (reason := next((reasons[key] for key in ((row.prompt, r) for r in row.responses) if key in reasons), None))
    ]
    if bad and not reading.skip:
        where, reason = bad[0]
        raise Refusal(
            f"{len(bad):,} of {len(placed):,} judgements cannot be read by this model, the first at {where}: {reason} "
            "(--skip-bad leaves such ones out.)"
        )
    return found, Counter({"judgements that the model cannot read": len(bad)} if bad else {})


def seen(entries: Sequence[Entry], texts: Texts, *, reading: Reading) -> dict[Entry, tuple[int, ...]]:
    """What is left of each response, as ids."""
    rollout = encode(entries, texts, reading=reading).rollout
    rows = zip(entries, rollout.responses.tolist(), rollout.lengths.tolist(), strict=True)
    return {entry: tuple(ids[:stop]) for entry, ids, stop in rows}


def parted(
    found: TextPairs, entries: list[Entry], *, rollout: Rollout, counts: Counter[str], reading: Reading
) -> Judged:
    """Pairs of texts over their rollout, each on the side of its prompt (O-12)."""
    prompts = [text(found.prompts[row], "user").strip().casefold() for row in found.chosen]
    numbers = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
    sides = {prompt: part(prompt, reading.seed, shares=reading.shares) for prompt in numbers}
    preference = Preference(
        rollout, torch.tensor(found.chosen), torch.tensor(found.rejected), torch.tensor(found.label),
        torch.tensor(found.margin), torch.tensor(found.group),
    )  # fmt: skip
    judged = Judged(
        preference, torch.tensor([numbers[prompt] for prompt in prompts]),
        torch.tensor([sides[prompt] for prompt in prompts]), counts,
        tuple([prompt for prompt, side in sides.items() if side == number] for number in range(len(PARTS))), entries,
    )  # fmt: skip
    check_sides(judged, reading)
    return judged


def check_sides(judged: Judged, reading: Reading) -> None:
    """Refuse a split that leaves nothing to learn from, or nothing to be judged by.

    Raises:
        Refusal: saying how many prompts fell where.
    """
    total = len(judged.unit.unique())
    if total == 1:
        raise Refusal(
            "All pairs answer one prompt, so that none could be held out from the fit: prompts are never split. Give "
            "pairs of more prompts; a reward that is to judge this one alone can be a function (--reward module:name)."
        )
    won = judged.preference.label != 0.5
    learned, held = (len(judged.unit[won & (judged.part == number)].unique()) for number in (0, 2))
    if not learned or not held:
        raise Refusal(
            f"Of {total} prompts, {learned} fell to the part to learn from and {held} to the part to be judged by "
            f"(seed {reading.seed}, shares {' '.join(format(share, 'g') for share in reading.shares)}); give more "
            "prompts, other --shares or another --seed."
        )
