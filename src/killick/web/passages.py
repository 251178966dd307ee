"""A text as a reader needs it: what is code apart from what is prose, and nothing that could break a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

OPENING = re.compile(r" {0,3}(`{3,}|~{3,})\s*[^\s`]*\s*")
"""Marks and nothing or one word behind them: the language. More words are something that was said."""
CODE_END = re.compile(r"[{}();:,]\s*$")
INDENTED = re.compile(r"(?:\t| {2,})\S")


@dataclass(frozen=True)
class Passage:
    """A run of lines.

    Attributes:
        code: shown in one width, and wide lines scroll instead of breaking.
        text: as it was written, the marks of a fence left out and the empty lines before and behind it.
    """

    code: bool
    text: str


def passages(text: str) -> list[Passage]:
    """Split a text at its code fences; a text without any that looks like code is one passage of code.

    Half of a character pair that lost its other half becomes a question mark on a black ground: it has no place in a
    page's encoding.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\r\n", "\n")
    found = list(fenced(whole)) or [Passage(False, whole)]
    if len(found) == 1 and not found[0].code and looks_like_code(whole):
        return [Passage(True, whole)]
    return found


def fenced(text: str) -> Iterator[Passage]:
    """Prose and what stands between fences, in turn; a fence that nobody closes runs to the end.

    Nothing is left out but the marks of a fence and its language: fences around nothing are prose.
    """
    lines, prose, at = text.split("\n"), list[str](), 0
    while at < len(lines):
        mark = OPENING.fullmatch(lines[at])
        end = closing(lines, at, mark=mark[1]) if mark else at
        inside = "\n".join(lines[at + 1 : end])
        if inside.strip():
            yield from plain(prose)
            yield Passage(True, inside)
            prose = []
        else:
            prose += lines[at : end + 1]
        at = end + 1
    yield from plain(prose)


def closing(lines: list[str], at: int, *, mark: str) -> int:
    """The number of the line that closes the fence of line `at`; that behind the last where none does."""
    close = re.compile(rf" {{0,3}}{mark}{mark[0]}*\s*")
    return next((place for place in range(at + 1, len(lines)) if close.fullmatch(lines[place])), len(lines))


def plain(lines: list[str]) -> Iterator[Passage]:
    """These lines as prose, unless they are empty."""
    text = "\n".join(lines)
    if text.strip():
        yield Passage(False, text.strip("\n"))


def looks_like_code(text: str) -> bool:
    """Three lines or more, one of them indented, and most indented or ended as statements are."""
    lines = [line for line in text.split("\n") if line.strip()]
    indented = [bool(INDENTED.match(line)) for line in lines]
    marked = [deep or bool(CODE_END.search(line)) for line, deep in zip(lines, indented, strict=True)]
    return len(lines) >= 3 and any(indented) and 2 * sum(marked) > len(lines)
