"""One judgement of responses to one prompt: what every form of a preference file turns into and comes from.

It holds text, no tokens and no tensors. A string and a list with one message are the same thing here: a prompt of one
turn of the user, a response of one turn of the assistant.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, TypeAlias


class Turn(NamedTuple):
    """One message of a dialogue."""

    role: str
    content: str


Turns: TypeAlias = tuple[Turn, ...]


@dataclass(frozen=True)
class PreferenceRow:
    """Responses to one prompt, and which of them one annotator prefers.

    Args:
        prompt: the dialogue so far.
        responses: one or more, each the turns that follow the prompt.
        place: of each response, 0 for the best; responses that tie share a place.
        scores: of each response, where it was scored; `place` follows from them.
        probability: of two responses, that the first is preferred; above 0.5 the first has place 0.
        strength: of two responses, -3 (the first is much better) to 3 (the second is); 0 is a tie.
        margin: score difference that a loss should ask for.
        best_only: nobody compared the others with each other: only the best is known.
        shown: the responses stand in the order in which the annotator saw them.
        annotator: who judged.
        group: pairs of one prompt with one group come from one ranking.
    """

    prompt: Turns
    responses: tuple[Turns, ...]
    place: tuple[int, ...]
    scores: tuple[float, ...] | None = None
    probability: float | None = None
    strength: int | None = None
    margin: float | None = None
    best_only: bool = False
    shown: bool = True
    annotator: str | None = None
    group: str | None = None


class BadRow(NamedTuple):
    """A row that cannot be used: its line (or row) counted from 1, the field, and why."""

    line: int
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


def places(values: Sequence[float]) -> tuple[int, ...]:
    """Places of values, the largest first; equal values share one."""
    order = {value: place for place, value in enumerate(sorted(set(values), reverse=True))}
    return tuple(order[value] for value in values)


def text(turns: Turns, alone: str) -> str:
    """A dialogue as one text: what it says where it is one turn of the role `alone`, else each turn with its role."""
    if len(turns) == 1 and turns[0].role == alone:
        return turns[0].content
    return "\n\n".join(f"{turn.role}: {turn.content.strip()}" for turn in turns)


def prompt_text(row: PreferenceRow) -> str:
    """The prompt as one text: what a split is keyed by."""
    return text(row.prompt, "user")


def prompt_key(row: PreferenceRow) -> bytes:
    """Eight bytes that are the same for prompts that differ only in case and outer white space (O-12)."""
    return text_key(prompt_text(row))


def text_key(prompt: str) -> bytes:
    """The same of a prompt that is one text already."""
    return hashlib.sha256(prompt.strip().casefold().encode("utf-8", "surrogatepass")).digest()[:8]


def response_texts(row: PreferenceRow) -> list[str]:
    """Each response as one text."""
    return [text(response, "assistant") for response in row.responses]


def judged_pairs(row: PreferenceRow) -> Iterator[PreferenceRow]:
    """All pairs of a row, each a row of two responses in the order that they had, tied pairs included.

    K responses give K (K - 1) / 2 pairs, one response none; where only the best is known, K - 1 (O-06). More than one
    pair carries a group, so that they can be averaged together and never part.
    """
    if len(row.responses) == 2:
        yield row
        return
    pairs = [
        (i, j)
        for i, j in combinations(range(len(row.responses)), 2)
        if not (row.best_only and row.place[i] == row.place[j])
    ]
    group = row.group or fingerprint(row) if len(pairs) > 1 else row.group
    for i, j in pairs:
        yield replace(
            row,
            responses=(row.responses[i], row.responses[j]),
            place=places([-row.place[i], -row.place[j]]),
            scores=None if row.scores is None else (row.scores[i], row.scores[j]),
            best_only=False,
            group=group,
        )


def fingerprint(row: PreferenceRow) -> str:
    """Sixteen hex digits that are the same for the same row, in any file."""
    return hashlib.sha256(repr(row).encode("utf-8", "surrogatepass")).hexdigest()[:16]
