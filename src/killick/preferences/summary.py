"""What is in a preference file, counted row by row: sizes, doubles, ties, who judged, and biases a fit would learn.

Memory holds one hash for each distinct row and prompt, and no text.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from killick.ops.shares import share_interval
from killick.preferences.rows import PreferenceRow, fingerprint, judged_pairs, prompt_key, prompt_text, response_texts
from killick.preferences.text_pairs import Seen, same

EDGES = (1.1, 1.25, 1.5, 2.0, 3.0)
"""Bounds of the bins of length: characters of the longer response over those of the shorter."""


@dataclass
class Summary:
    """Counts over rows; `add` each, then `figures`.

    Args:
        seen: what a reader sees of a prompt and a response after truncation; None looks at whole texts only.
        rows: counted.
        repeated: rows that are another row of the same annotator once more, word for word.
        sizes: responses of a row -> rows.
        annotators: name -> rows; rows without a name stand under the empty one.
        pairs: with a better and a worse response, from rankings too.
        ties: pairs without.
        equal: pairs of one text; equal_seen: of two texts that a reader cannot tell apart.
        prefixed: pairs whose responses both begin with the prompt.
        longer: bin of length -> [pairs in which the longer response is preferred, pairs]; same length: left out.
        first: [pairs in which the response that was shown first is preferred, pairs with a known order].
        prompts: hash of a prompt -> rows.
    """

    seen: Seen | None = None
    rows: int = 0
    repeated: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    annotators: Counter[str] = field(default_factory=Counter)
    pairs: int = 0
    ties: int = 0
    equal: int = 0
    equal_seen: int = 0
    prefixed: int = 0
    longer: list[list[int]] = field(default_factory=lambda: [[0, 0] for _ in range(len(EDGES) + 1)])
    first: list[int] = field(default_factory=lambda: [0, 0])
    prompts: Counter[bytes] = field(default_factory=Counter)
    marks: set[bytes] = field(default_factory=set)

    def add(self, row: PreferenceRow) -> None:
        """Count one row."""
        mark = bytes.fromhex(fingerprint(row))
        self.repeated += mark in self.marks
        self.marks.add(mark)
        self.rows += 1
        self.sizes[len(row.responses)] += 1
        self.annotators[row.annotator or ""] += 1
        self.prompts[prompt_key(row)] += 1
        for pair in judged_pairs(row):
            self.add_pair(pair)

    def add_pair(self, pair: PreferenceRow) -> None:
        """Count one pair."""
        prompt, (first, second) = prompt_text(pair), response_texts(pair)
        self.equal += pair.responses[0] == pair.responses[1]
        self.equal_seen += same(pair, self.seen)
        self.prefixed += first.startswith(prompt) and second.startswith(prompt)
        if pair.place[0] == pair.place[1]:
            self.ties += 1
            return
        self.pairs += 1
        wins = pair.place[0] < pair.place[1]
        if pair.shown:
            self.first[0] += wins
            self.first[1] += 1
        short, long = sorted((len(first), len(second)))
        if short < long:
            held = self.longer[sum(long > edge * short for edge in EDGES)]
            held[0] += wins == (len(first) == long)
            held[1] += 1

    def figures(self) -> dict[str, Any]:
        """All counts and shares as plain values."""
        longer = [sum(held[side] for held in self.longer) for side in (0, 1)]
        return {
            "rows": self.rows,
            "prompts": len(self.prompts),
            "pairs": self.pairs,
            "ties": self.ties,
            "duplicate_rows": self.repeated,
            "equal_pairs": self.equal,
            "equal_pairs_after_truncation": None if self.seen is None else self.equal_seen,
            "pairs_that_repeat_the_prompt": self.prefixed,
            "responses_per_row": {str(size): self.sizes[size] for size in sorted(self.sizes)},
            "rows_per_annotator": dict(self.annotators.most_common()),
            "longer_wins": rate(*longer),
            "first_wins": rate(*self.first),
            "longer_wins_by_length": [
                {"above": low, **rate(*held)} for low, held in zip((1.0, *EDGES), self.longer, strict=True)
            ],
        }


def rate(wins: int, pairs: int) -> dict[str, Any]:
    """A share with its 95 % interval; null where nothing was counted."""
    if not pairs:
        return {"share": None, "low": None, "high": None, "pairs": 0}
    low, high = share_interval(wins, pairs)
    return {"share": wins / pairs, "low": low, "high": high, "pairs": pairs}


def overlap(one: Summary, other: Summary) -> dict[str, int]:
    """Prompts that two files share, apart from case and outer white space, and the rows that they stand in."""
    both = one.prompts.keys() & other.prompts.keys()
    rows = (sum(each.prompts[prompt] for prompt in both) for each in (one, other))
    return {"prompts": len(both), **dict(zip(("rows_of_first", "rows_of_second"), rows, strict=True))}
