"""A text as a reader needs it: what is code apart from what is prose, and nothing that could break a page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
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
    """Prose and what stands between fences, in turn; a fence that nobody closes runs to the end."""
    lines, fence = list[str](), ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and (mark[1].startswith(fence) and not mark[2].strip() if fence else "`" not in mark[2]):
            yield from passage(lines, code=bool(fence))
            lines, fence = [], "" if fence else mark[1]
        else:
            lines.append(line)
    yield from passage(lines, code=bool(fence))


def passage(lines: list[str], *, code: bool) -> Iterator[Passage]:
    """These lines, unless they are empty."""
    text = "\n".join(lines)
    if text.strip():
        yield Passage(code, text if code else text.strip("\n"))


def looks_like_code(text: str) -> bool:
    """Three lines or more, one of them indented, and most indented or ended as statements are."""
    lines = [line for line in text.split("\n") if line.strip()]
    indented = [bool(INDENTED.match(line)) for line in lines]
    marked = [deep or bool(CODE_END.search(line)) for line, deep in zip(lines, indented, strict=True)]
    return len(lines) >= 3 and any(indented) and 2 * sum(marked) > len(lines)
