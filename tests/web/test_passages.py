"""Code apart from prose."""

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


@given(st.text(alphabet="ab \n`~\t", max_size=60))
def test_no_word_is_lost_and_all_can_be_sent(text: str) -> None:
    shown = "\n".join(passage.text for passage in passages(text))
    for word in ("a", "b"):
        assert shown.count(word) >= text.count(word) - sum(
            line.count(word) for line in text.split("\n") if line.lstrip().startswith(("```", "~~~"))
        )
    shown.encode()
