"""What a policy keeps saying: the run of words that took over, and how many different runs are left."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Run: TypeAlias = tuple[str, ...]
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


@dataclass(frozen=True)
class Phrase:
    """A run of words, and the share of texts in which it stands."""

    words: str
    share: float


def words(text: str) -> list[str]:
    """The words of a text in small letters; punctuation parts them, apostrophes and the text's end do not."""
    return WORD.findall(text.casefold())


def runs(text: str, size: int) -> list[Run]:
    """All runs of so many words, over punctuation too, in reading order."""
    read = words(text)
    return list(zip(*(read[start:] for start in range(size)), strict=False))


def distinct(texts: Iterable[str], *, size: int = 3) -> float:
    """Different runs of words as a share of all, over all texts together: 1 where nothing is said twice.

    It falls with the number of texts, so compare only sets of one size. Texts without a run count for nothing; where
    none has one, 1.

    Source: Li et al. 2016, arXiv 1510.03055 (distinct-n).
    """
    found = [run for text in texts for run in runs(text, size)]
    return len(set(found)) / len(found) if found else 1.0


def holders(texts: Sequence[str], *, size: int) -> Counter[Run]:
    """In how many texts each run stands; twice in one text counts once."""
    return Counter(run for text in texts for run in set(runs(text, size)))


def commonest(texts: Sequence[str], *, sizes: Iterable[int] = range(3, 7)) -> Phrase | None:
    """The run of three to six words that stands in most texts; of several the longest, then the first by letter.

    None where no text is long enough.
    """
    counts: Counter[Run] = Counter()
    for size in sizes:
        counts.update(holders(texts, size=size))
    if not counts:
        return None
    run = min(counts, key=lambda run: (-counts[run], -len(run), run))
    return Phrase(" ".join(run), counts[run] / len(texts))


def longest_shared(texts: Sequence[str], *, least: float = 0.5) -> Phrase | None:
    """The longest run, of three words or more, that stands in at least this share of the texts; None where none does.

    A part of a shared run is shared, so the search stops at the first length without one.
    """
    best, size = None, 3
    while True:
        counts = holders(texts, size=size)
        shared = [run for run, count in counts.items() if count >= least * len(texts)]
        if not shared:
            return best
        run = min(shared, key=lambda run: (-counts[run], run))
        best, size = Phrase(" ".join(run), counts[run] / len(texts)), size + 1


def share_with(texts: Sequence[str], phrase: str) -> float:
    """Share of texts in which a run of words stands, whatever the punctuation between them; 0 without a text."""
    run = tuple(words(phrase))
    return sum(run in runs(text, len(run)) for text in texts) / len(texts) if texts else 0.0
