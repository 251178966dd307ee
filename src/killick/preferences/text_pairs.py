"""From rows to what a fit needs, still without tokens: texts, pairs, labels, margins and groups, as plain lists. Pure.

A recipe encodes the texts into a `Rollout`, makes tensors of the lists, and has a `Preference`.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from killick.preferences.rows import PreferenceRow, Turns, fingerprint, judged_pairs

Seen: TypeAlias = Callable[[Turns, Turns], Hashable]


@dataclass(frozen=True)
class TextPairs:
    """Judged pairs of texts: the fields of a `Preference`, with texts in place of its rollout.

    Args:
        prompts, responses: one entry for each distinct response to a prompt, however many pairs it stands in.
        chosen, rejected: numbers of entries.
        label: probability that `chosen` is preferred: 1 where it is sure, 0.5 for a tie.
        margin: score difference that the loss should ask for, 0 where none was given.
        strength: how much better the chosen response is by the row's own word, in its own unit; None where it has none.
        group: pairs with one number come from one ranking and are averaged first; numbered from 0.
        counts: what was left out, and why: words -> how often.
    """

    prompts: list[Turns] = field(default_factory=list)
    responses: list[Turns] = field(default_factory=list)
    chosen: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    label: list[float] = field(default_factory=list)
    margin: list[float] = field(default_factory=list)
    strength: list[float | None] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.chosen)


def text_pairs(
    rows: Iterable[PreferenceRow],
    *,
    ties: Literal["half", "out"] = "half",
    equal: Literal["out", "keep"] = "out",
    seen: Seen | None = None,
) -> TextPairs:
    """All pairs of the rows, those of a ranking in one group (O-06); the same row of one annotator counts once (O-12).

    Args:
        rows: judgements.
        ties: keep a tie with label 0.5, or leave it out (O-05).
        equal: leave out pairs whose two responses are one to the reader, or keep them: loss log 2, no gradient (O-04).
        seen: what a reader sees of a prompt and a response, as the ids that are left after truncation; all of the text
            where none is given.
    """
    found = TextPairs()
    entries: dict[tuple[Turns, Turns], int] = {}
    groups: dict[Hashable, int] = {}
    known: set[str] = set()
    for row in rows:
        mark = fingerprint(row)
        if mark in known:
            found.counts["duplicate rows"] += 1
            continue
        known.add(mark)
        if len(row.responses) == 1:
            found.counts["rows with one response"] += 1
        for pair in judged_pairs(row):
            first, second = (0, 1) if label_first(pair) >= 0.5 else (1, 0)
            label = max(label_first(pair), 1 - label_first(pair))
            if label == 0.5 and ties == "out":
                found.counts["ties"] += 1
                continue
            if equal == "out" and same(pair, seen):
                found.counts["equal responses"] += 1
                continue
            found.chosen.append(entry(pair, first, entries=entries, found=found))
            found.rejected.append(entry(pair, second, entries=entries, found=found))
            found.label.append(label)
            found.margin.append(pair.margin or 0.0)
            found.strength.append(strength(pair))
            key = (len(groups),) if pair.group is None else (pair.prompt, pair.group)
            found.group.append(groups.setdefault(key, len(groups)))
    return found


def label_first(pair: PreferenceRow) -> float:
    """Probability that the first of two responses is preferred: as given, else 1, 0, or 0.5 for a tie."""
    if pair.probability is not None:
        return pair.probability
    return 0.5 if pair.place[0] == pair.place[1] else float(pair.place[0] < pair.place[1])


def strength(pair: PreferenceRow) -> float | None:
    """How much better one of two responses is: steps of a strength, else the difference of scores, else the margin."""
    if pair.strength is not None:
        return float(abs(pair.strength))
    if pair.scores is not None:
        return abs(pair.scores[0] - pair.scores[1])
    return pair.margin


def same(pair: PreferenceRow, seen: Seen | None) -> bool:
    """Whether a reader cannot tell the two responses apart."""
    first, second = pair.responses
    return first == second or (seen is not None and seen(pair.prompt, first) == seen(pair.prompt, second))


def entry(pair: PreferenceRow, side: int, *, entries: dict[tuple[Turns, Turns], int], found: TextPairs) -> int:
    """The number of a response, which is listed when it is first met."""
    key = (pair.prompt, pair.responses[side])
    if key not in entries:
        entries[key] = len(entries)
        found.prompts.append(pair.prompt)
        found.responses.append(pair.responses[side])
    return entries[key]
