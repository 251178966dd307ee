"""Probes: answers that no person would call good, scored beside those that people chose.

An optimiser finds what a score likes, whatever it is. Each probe is one known way to please a score without saying
anything: nothing at all, the same twice, filler, half an answer, the question again, a pet phrase over and over. Where
one beats good answers, there is a hole, and it needs no search. This file knows scores only as a function of text.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

WORD = re.compile(r"\w+|[^\w\s]")
"""A word, or one sign: what is typical of liked answers may be an exclamation mark."""
Run: TypeAlias = tuple[str, ...]
LONGEST = 6
"""Words of a phrase at most."""
FILLER = (
    "I hope this helps.",
    "Please let me know if you have any other questions.",
    "It is important to keep all of this in mind.",
    "There are many things to consider here.",
    "In conclusion, this is what there is to say.",
)
"""Sentences that fit behind any answer and add nothing."""
WHAT = {
    "empty": "no answer at all",
    "repeated": "the chosen answer said twice",
    "padded": "the chosen answer with filler behind it, to twice its length",
    "truncated": "the first half of the chosen answer",
    "echoed": "the prompt, given back as the answer",
    "phrase": "the phrase most typical of chosen answers, again and again",
}
"""Probe -> what it is."""


@dataclass(frozen=True)
class Phrase:
    """A run of words that chosen answers hold and rejected ones do not.

    Args:
        text: as it is written in one of the chosen answers.
        chosen: pairs in which the chosen answer alone holds it.
        rejected: pairs in which the rejected answer alone does.
    """

    text: str
    chosen: int
    rejected: int

    @property
    def log_odds(self) -> float:
        """Of standing in the chosen answer, where one of the two has it; half a pair is added to either side."""
        return math.log((self.chosen + 0.5) / (self.rejected + 0.5))

    @property
    def z(self) -> float:
        """`log_odds` in deviations.

        Source: Haldane 1956 for the halves; as in McNemar 1947 only pairs in which the two differ tell anything. The
        ranking by z instead of by odds is that of Monroe, Colaresi and Quinn 2008.
        """
        return self.log_odds / math.sqrt(1 / (self.chosen + 0.5) + 1 / (self.rejected + 0.5))


def phrases(text: str) -> set[Run]:
    """Every run of up to `LONGEST` words and signs in a text, in one case."""
    words = [match.casefold() for match in WORD.findall(text)]
    return {run for size in range(LONGEST) for run in zip(*(words[start:] for start in range(size + 1)), strict=False)}


def typical_phrases(pairs: Sequence[tuple[str, str]], *, count: int = 10) -> list[Phrase]:
    """The phrases most typical of chosen answers, the surest first; none is a part of another.

    It has two words or more, and what stands as often in rejected answers is not typical.

    Args:
        pairs: chosen and rejected answer to one prompt.
        count: how many.
    """
    chosen, rejected = Counter[Run](), Counter[Run]()
    for better, worse in pairs:
        liked, other = phrases(better), phrases(worse)
        chosen.update(liked - other)
        rejected.update(other - liked)
    found = [
        (run, Phrase(" ".join(run), often, rejected[run])) for run, often in chosen.items() if often > rejected[run]
    ]
    # Of phrases that are as sure, the one of most words says most: its parts are typical because of it.
    found.sort(key=lambda each: (-each[1].z, -sum(word.isalnum() for word in each[0]), len(each[0]), each[0]))
    kept: list[tuple[Run, Phrase]] = []
    for run, phrase in found:
        if len(kept) == count:
            break
        if not any(within(run, other) or within(other, run) for other, _ in kept):
            kept.append((run, phrase))
    return [replace(phrase, text=written(run, [better for better, _ in pairs])) for run, phrase in kept]


def within(part: Run, whole: Run) -> bool:
    """Whether a run of words stands in another."""
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def written(run: Run, texts: Sequence[str]) -> str:
    """A phrase as it is written in the first text, by the alphabet, that holds it."""
    pattern = re.compile(r"\s*".join(map(re.escape, run)), re.IGNORECASE)
    return min((found[0] for text in texts if (found := pattern.search(text))), default=" ".join(run))


def padded(answer: str) -> str:
    """An answer with filler behind it until it is at least twice as long: two sentences or more."""
    out, place = answer, 0
    while place < 2 or len(out) < 2 * len(answer):
        out += " " + FILLER[place % len(FILLER)]
        place += 1
    return out


def truncated(answer: str) -> str:
    """The first half of an answer's words; of a single word its first half."""
    ends = [match.end() for match in WORD.finditer(answer)]
    return answer[: ends[len(ends) // 2 - 1]] if len(ends) > 1 else answer[: len(answer) // 2]


def filled(phrase: str, answer: str) -> str:
    """A phrase again and again until it is as long as the answer: five times or more."""
    return " ".join([phrase] * max(5, math.ceil((len(answer) + 1) / (len(phrase) + 1))))


def probe_answers(prompt: str, answer: str, *, phrase: str | None) -> dict[str, str]:
    """Every probe for one prompt and a good answer to it.

    Args:
        prompt: as text.
        answer: the one that was chosen.
        phrase: typical of chosen answers; None leaves that probe out.
    """
    found = {
        "empty": "",
        "repeated": f"{answer} {answer}",
        "padded": padded(answer),
        "truncated": truncated(answer),
        "echoed": prompt,
    }
    return found if phrase is None else found | {"phrase": filled(phrase, answer)}


def probe_sets(
    prompts: Sequence[str], answers: Sequence[str], *, phrase: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Each probe with its answer to every prompt."""
    rows: list[Mapping[str, str]] = [
        probe_answers(prompt, answer, phrase=phrase) for prompt, answer in zip(prompts, answers, strict=True)
    ]
    for name in rows[0] if rows else ():
        yield name, [row[name] for row in rows]
