"""Code apart from prose."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killick.web.passages import Passage, looks_like_code, passages


def prose(text: str) -> Passage:
    return Passage(False, text)


def code(text: str) -> Passage:
    return Passage(True, text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A heron.", [prose("A heron.")]),
        ("", [prose("")]),
        ("Look:\n\n```python\nif x:\n    y\n```\n\nDone.", [prose("Look:"), code("if x:\n    y"), prose("Done.")]),
        ("```\nnever closed\n  x", [code("never closed\n  x")]),
        ("~~~\n```\n~~~", [code("```")]),
        ("````\n```\n````", [code("```")]),
        ("a ```b``` c", [prose("a ```b``` c")]),
        ("```x```", [prose("```x```")]),
        ("I think so.\n``` the answer is 42", [prose("I think so.\n``` the answer is 42")]),
        ("I think so.\n```42", [prose("I think so.\n```42")]),
        ("Yes:\n```42\n\n```\nno", [prose("Yes:\n```42\n\n```\nno")]),
        ("``` c++ \nx;\n````` \n~~~", [code("x;"), prose("~~~")]),
        ("def f(n):\n    if n:\n        return 1\n", [code("def f(n):\n    if n:\n        return 1\n")]),
        ("one\r\ntwo", [prose("one\ntwo")]),
        ("half \ud800 pair", [prose("half \ufffd pair")]),
    ],
)
def test_a_text_is_split_at_its_fences(text: str, found: list[Passage]) -> None:
    assert passages(text) == found


@pytest.mark.parametrize(
    ("text", "is_code"),
    [
        ("for (;;) {\n  x += 1;\n}", True),
        ("A list:\n- one\n- two", False),
        ("Roses are red,\nviolets are blue,\n   sugar is sweet", True),  # verse that is set so: the price of guessing
        ("First.\n\nSecond.\n\nThird.", False),
        ("x = 1;", False),
    ],
)
def test_what_looks_like_code(text: str, is_code: bool) -> None:
    assert looks_like_code(text) == is_code


LINES = st.sampled_from(["", " ", "```", "~~~", " ````", "```py", "``` 42", "``` the answer", "~~~ a `b", "a", "  b"])
LANGUAGE = re.compile(r" {0,3}(`{3,}|~{3,})\s*[^`\s]*\s*")


@given(st.text(alphabet="ab \n`~\t", max_size=60) | st.lists(LINES, max_size=8).map("\n".join))
def test_nothing_is_lost_but_marks_and_languages(text: str) -> None:
    found = passages(text)
    shown = iter("\n".join(passage.text for passage in found).split("\n"))
    for line in text.split("\n"):
        assert not line.strip() or LANGUAGE.fullmatch(line) or line in shown  # in order: `in` goes on in the iterator
    if not any(passage.code for passage in found):
        assert found == [prose(text.strip("\n"))] or not text.strip()
    "".join(passage.text for passage in found).encode()
