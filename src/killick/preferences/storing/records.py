"""What goes into the store and comes out of it. This module knows no database."""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from killick.refusal import Refusal

Groups = tuple[tuple[int, ...], ...]
"""Candidate numbers in groups of ties, best group first; empty for a skip."""

NOTE = 10_000
"""The longest note, in characters."""


class Unavailable(OSError):
    """The store could not write or was closed; nothing of the call was acknowledged, and it may be sent again."""


@dataclass(frozen=True)
class Item:
    """One question: a prompt and the candidates to judge.

    Args:
        prompt: what was asked.
        candidates: two texts or more; numbered from 0.
        kind: "pair" for two candidates, "ranking" for two or more.
        sources: who wrote each candidate; empty where nobody says.
        scores: a number for each candidate; empty where there is none.
        metadata: anything else, kept as JSON.
        overlap: how many annotators shall judge it; None takes that of the import.
        id: its number in the store; None before it is there.
    """

    prompt: str
    candidates: tuple[str, ...]
    kind: Literal["pair", "ranking"] = "pair"
    sources: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    overlap: int | None = None
    id: int | None = None

    def __post_init__(self) -> None:
        count = len(self.candidates)
        if count < 2 or (self.kind == "pair" and count != 2):
            raise Refusal(f"An item of kind {self.kind!r} cannot have {count} candidates: {self.prompt[:60]!r}.")
        for name, given in (("sources", self.sources), ("scores", self.scores)):
            if given and len(given) != count:
                raise Refusal(f"An item has {len(given)} {name} for {count} candidates: {self.prompt[:60]!r}.")
        if not all(map(math.isfinite, self.scores)):
            raise Refusal(f"An item has scores that are no numbers, {self.scores}: {self.prompt[:60]!r}.")
        if self.overlap is not None and self.overlap < 1:
            raise Refusal(f"overlap is the number of annotators an item gets, 1 or more, not {self.overlap}.")

    @property
    def digest(self) -> str:
        """A hash of kind, prompt and candidates: the same question is the same item."""
        return hashlib.sha256(dumps([self.kind, self.prompt, self.candidates]).encode()).hexdigest()


@dataclass(frozen=True)
class Judgement:
    """What an annotator says of one item.

    Args:
        ranking: candidate numbers in groups of ties, best group first; empty is a skip: no preference.
        seconds: from showing the item to the answer.
        strength: how much better the chosen one of a pair is, 1 to 3; None where it was not asked, and for ties.
        note: free text.
        flags: short words ("unsafe", "both wrong").
    """

    ranking: Groups
    seconds: float
    strength: int | None = None
    note: str = ""
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise Refusal(f"seconds must be a number from 0 up, not {self.seconds}.")
        named = [number for group in self.ranking for number in group]
        if sorted(named) != list(range(len(named))) or not all(self.ranking) or len(named) == 1:
            raise Refusal(f"A ranking names every candidate once, in groups that are not empty, not {self.ranking}.")
        if self.strength is not None and not (1 <= self.strength <= 3 and [len(g) for g in self.ranking] == [1, 1]):
            raise Refusal(f"strength is 1, 2 or 3 and belongs to a pair with a winner; given was {self.strength}.")
        if len(self.note) > NOTE or len(self.flags) > 16 or any(not 0 < len(flag) <= 64 for flag in self.flags):
            raise Refusal(f"A note has at most {NOTE} characters, flags are at most 16 words of at most 64 each.")
        # Within a tie and among flags there is no order: one spelling for one meaning.
        object.__setattr__(self, "ranking", tuple(tuple(sorted(group)) for group in self.ranking))
        object.__setattr__(self, "flags", tuple(sorted(set(self.flags))))

    @property
    def skipped(self) -> bool:
        """Whether it is no preference."""
        return not self.ranking

    def says(self, other: "Judgement") -> bool:
        """Whether both say the same; the time taken is no part of what is said."""
        return (self.ranking, self.strength, self.note, self.flags) == (
            other.ranking,
            other.strength,
            other.note,
            other.flags,
        )


@dataclass(frozen=True)
class Annotator:
    """Who labels; `seed` decides in which order this annotator sees candidates."""

    id: int
    name: str
    seed: str = field(repr=False)

    def order(self, item: Item) -> tuple[int, ...]:
        """Candidate numbers as this annotator sees them, first to last: random over annotators, the same each time."""
        drawn = [
            hashlib.sha256(f"{self.seed}:{item.digest}:{n}".encode()).digest() for n in range(len(item.candidates))
        ]
        return tuple(sorted(range(len(drawn)), key=drawn.__getitem__))


@dataclass(frozen=True)
class Card:
    """An item as it is handed to one annotator.

    Args:
        item: the question; its `id` is what a label names.
        order: candidate numbers as they are to be shown.
        guidelines: the version that is in force; 0 where there are none.
        until: when the reservation ends, seconds since 1970; the label is taken after that too.
    """

    item: Item
    order: tuple[int, ...]
    guidelines: int
    until: float

    @property
    def shown(self) -> tuple[str, ...]:
        """The candidates in the order of showing."""
        return tuple(self.item.candidates[number] for number in self.order)

    def ranking(self, positions: Groups) -> Groups:
        """From places on the card (0 = shown first) to candidate numbers."""
        return tuple(tuple(self.order[place] for place in group) for group in positions)


@dataclass(frozen=True)
class Label:
    """One row of the log: who said what of which item.

    Args:
        item: its number.
        annotator: the name.
        revision: counts from 0 for this item and annotator.
        action: "label", "revise" (an edit) or "withdraw" (an undo).
        judgement: what was said; a withdrawal says nothing.
        order: candidate numbers as they were shown.
        guidelines: the version under which it was given; 0 where there were none.
        at: seconds since 1970.
    """

    item: int
    annotator: str
    revision: int
    action: Literal["label", "revise", "withdraw"]
    judgement: Judgement
    order: tuple[int, ...]
    guidelines: int
    at: float


@dataclass(frozen=True)
class Outcome:
    """What became of a call, and the label that is stored.

    Args:
        status: "new": stored by this call. "same": it was there already (the same key, or the same content).
            "conflict": another answer is there and stays; an edit is a separate action.
        label: the stored one.
    """

    status: Literal["new", "same", "conflict"]
    label: Label


@dataclass(frozen=True)
class Imported:
    """How many items an import added, and how many were there already."""

    new: int
    known: int


@dataclass(frozen=True)
class Progress:
    """How far the labelling is.

    Args:
        done: labels that hold, skips among them.
        skipped: the skips among them.
        left: labels still wanted (of this annotator, where one is named).
        pace: labels a minute: 60 over the median gap of the last fifty; None before there are two.
        median_seconds: of the time taken per label; None before there is one.
        seconds_left: `left` at that pace; None without a pace.
    """

    done: int
    skipped: int
    left: int
    pace: float | None
    median_seconds: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class Conflict:
    """An item whose annotators rank it differently, with the labels that hold (skips left out)."""

    item: Item
    labels: tuple[Label, ...]


def log_row(item: Item, label: Label) -> dict[str, Any]:
    """Everything that is known of a label, flat: rankings and order by candidate numbers, `at` seconds since 1970."""
    asked = {name: value for name, value in vars(item).items() if name not in ("id", "overlap")}
    said = {name: value for name, value in vars(label).items() if name != "judgement"}
    return {**said, **vars(label.judgement), **asked, "metadata": dict(item.metadata)}


ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def dumps(value: Any) -> str:
    """JSON in ASCII, so that zero bytes and lone surrogates in a text survive every database.

    Raises:
        Refusal: where a value is not JSON, NaN and infinity among them.
    """
    try:
        return ENCODER.encode(value)
    except (TypeError, ValueError) as error:
        raise Refusal(f"The store keeps texts, numbers, lists and objects of these: {error}.") from error


def valid_name(name: str) -> str:
    """An annotator's name in one spelling; it is shown and exported, and never becomes a path.

    Raises:
        Refusal: unless it is 1 to 64 letters, digits, spaces or . _ @ + -, beginning with a letter or digit.
    """
    one = unicodedata.normalize("NFC", name)
    if not re.fullmatch(r"[^\W_][\w .@+-]{0,62}[\w.@+-]|[^\W_]", one):
        raise Refusal(f"An annotator's name has 1 to 64 letters, digits, spaces or . _ @ + -, not {name[:80]!r}.")
    return one


def valid_key(key: str) -> str:
    """An idempotency key.

    Raises:
        Refusal: unless it is 1 to 200 visible ASCII characters.
    """
    if not re.fullmatch(r"[!-~]{1,200}", key):
        raise Refusal(f"A key has 1 to 200 visible ASCII characters, not {key[:80]!r}.")
    return key
