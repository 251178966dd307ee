"""Text as sentences of words: what is left when case, accents, width, punctuation and plurals are put aside.

It knows no catalogue and no guideline. Everything is one pass, so time grows with the text's length and nothing else.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

Words: TypeAlias = tuple[str, ...]

ENDS = frozenset(".!?\u203c\u3002\u061f\u06d4\u0964")
"""Where sentences end, in this script and in some others."""
APOSTROPHES = frozenset("'`\u2018\u2019\u02bc\u00b4\u2032")
SHORT = re.compile(r"'(?:s|t|re|ve|ll|d|m)?(?![^ .])")
DECIMAL = re.compile(r"\.(?<=\d\.)(?=\d)")
KEPT = 50_000
"""Words whose ending is looked at once: texts repeat theirs."""
PLURALS = {
    "aches": "ache", "axes": "axe", "buses": "bus", "caches": "cache", "canvases": "canvas", "gases": "gas",
    "lens": "lens", "lenses": "lens", "niches": "niche", "quizzes": "quiz",
}  # fmt: skip
"""What the rule of `singular` would spell wrongly."""
SILENT = re.compile("(?<=[sxzo])e$|(?<=[cs]h)e$|(?<=z)z$")

FUNCTION_WORDS = frozenset(
    """
    about above after again all also and any are aren because been before being below between both but can could
    couldn did didn does doesn doing don down during each either every few for from had hadn has hasn have haven
    having her here hers him his how into isn its itself just many may might more most much must neither nor not
    now off once one only onto other our ours out over own per same shall she should shouldn since some such
    than that the their theirs them then there these they this those through too under until upon very via was
    wasn were weren what when where which while who whom whose why will with within without won would wouldn yet
    you your yours
    """.split()  # noqa: SIM905
)
"""Words that carry a sentence rather than say something; none is shorter than three letters."""


class Letters(dict[int, str]):
    """What becomes of each character, found out when it is first met: `str.translate` takes this as its table.

    Decomposing each character alone and dropping every accent makes canonically equal texts the same text without
    reordering marks, whose cost would grow with the square of a run of them.
    """

    def __missing__(self, code: int) -> str:
        folded = "".join(map(kept, unicodedata.normalize("NFKD", chr(code))))
        if len(self) < 50_000:  # all that people write; the rest of Unicode need not stay in memory
            self[code] = folded
        return folded


def kept(character: str) -> str:
    """A letter, digit or vowel sign folded; an end of sentence as a dot; nothing for accents; else a space."""
    if character in ENDS:
        return "."
    if character in APOSTROPHES:
        return "'"
    kind = unicodedata.category(character)
    if kind == "Cf" or unicodedata.combining(character):
        return ""
    return character.casefold() if kind[0] in "LNM" else " "


LETTERS = Letters()


def sentences(text: str) -> list[Words]:
    """The words of each sentence, folded and in the singular. A sentence ends at . ! ? or a blank line.

    The end of a line is a space, since people and mails wrap lines. A dot between digits is no end. Hyphens part words;
    apostrophes do not, but 's, n't, 're and their like fall away.
    """
    lines = text.replace("\u2029", "\n\n").splitlines()
    joined = " ".join("." if not line or line.isspace() else line for line in lines)
    spelled = DECIMAL.sub(",", joined).translate(LETTERS)
    parts = SHORT.sub("", spelled).replace("'", "").split(".")
    read = (tuple(singular(word) if word[-1] == "s" else word for word in part.split()) for part in parts if part)
    return [words for words in read if words]


@lru_cache(KEPT)
def singular(word: str) -> str:
    """A folded word without its ending for several; a word that only looks so stays itself.

    It is a rule for catalogue English, not a dictionary: batteries, boxes, jackets; never glass, canvas or lens.
    """
    if word in PLURALS:
        return PLURALS[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is", "as")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "tzes")):
        return word[:-2]
    return word[:-1]


@lru_cache(KEPT)
def stem(word: str) -> str:
    """What a singular shares with the spelling that `singular` makes of its plural where that is not the word itself.

    To compare, not to show: house and buse lose their e, cookie and cooky become one, quizz loses a z. Words that end
    in neither e nor z stay.
    """
    if word.endswith("ie"):
        return word[:-2] + "y"
    return SILENT.sub("", word)


def content(words: Iterable[str]) -> list[str]:
    """The words that say something: at least three letters, beginning with a letter, and no function word."""
    return [word for word in words if len(word) > 2 and word[0].isalpha() and word not in FUNCTION_WORDS]


class Phrases:
    """Given phrases, found in sentences as whole words, the longest first, and never two on the same word.

    Attributes:
        known: the words of each phrase, and how it was given; a phrase without a word is none.
    """

    def __init__(self, phrases: Iterable[str]):
        spelled = ((tuple(chain.from_iterable(sentences(phrase))), phrase) for phrase in phrases)
        self.known = {words: phrase for words, phrase in spelled if words}
        self.longest = max(map(len, self.known), default=0)
        self.begin = {words[0] for words in self.known}

    def find(self, words: Words) -> Iterator[str]:
        """The phrases of one sentence from left to right, spelled as they were given."""
        at = 0 if not self.begin.isdisjoint(words) else len(words)
        while at < len(words):
            if words[at] in self.begin:
                for size in range(min(self.longest, len(words) - at), 0, -1):
                    if (found := self.known.get(words[at : at + size])) is not None:
                        yield found
                        at += size - 1
                        break
            at += 1
