"""A file that grows chunk by chunk."""

from pathlib import Path
from typing import Any

import pytest

from killick.recipes.growing import grow, whole
from killick.types import Refusal


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"row": number, "text": "é" * number} for number in range(first, last)]


def test_it_ends_with_the_same_bytes_wherever_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    told = list(grow(path, 7, each=3, make=rows))
    assert [(one.done, one.of) for one in told] == [(0, 7), (3, 7), (6, 7), (7, 7)]
    assert (told[0].left, told[-1].left) == (None, 0)
    content = path.read_bytes()
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        made: list[int] = []

        def make(first: int, last: int, made: list[int] = made) -> list[dict[str, Any]]:
            made.append(first)
            return rows(first, last)

        list(grow(path, 7, each=3, make=make))
        assert path.read_bytes() == content
        assert len(made) == 3 - content[:cut].count(b"\n") // 3
    assert [one.done for one in grow(path, 7, each=3, make=make)] == [7]
    assert [row["row"] for row in whole(path, 7, each=3)] == list(range(7))


def test_a_line_that_is_damaged_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"row": 0}\nno\n{"row": 2}\n', encoding="utf-8")
    with pytest.raises(Refusal, match=r"rows.jsonl, line 2"):
        list(grow(path, 7, each=3, make=rows))
