"""A person's variants: JSONL in both forms, CSV as spreadsheets save it, and one sentence with the line otherwise."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.recipes.best_of.candidates import Pool, read_pools
from killick.types import Refusal

POOLS = [Pool("a", ("one", "two, three"), (2, 4)), Pool("b", ("four",), (3,))]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", 'prompt,response\na,one\nb,four\na,"two, three"\n'),
        ("x.csv", 'PROMPT;note; Text \na;1;one\nb;2;four\na;3;two, three\n'),
        ("x.tsv", "prompt\tresponse\r\na\tone\r\nb\tfour\r\na\ttwo, three\r\n"),
        ("x.jsonl", '\n{"prompt": "a", "response": "one"}\n{"prompt": "b", "text": "four"}\n'
                    '{"prompt": "a", "response": "two, three", "id": 3}\n'),
        ("x", '\n{"prompt": "a", "response": "one"}\n{"prompt": "b", "responses": ["four"]}\n'
              '{"prompt": "a", "responses": ["two, three"]}'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig"])
def test_responses_are_gathered_by_prompt_in_the_files_order(name: str, text: str, mark: str) -> None:
    assert read_pools(text.encode(mark), name=name) == POOLS


def test_without_prompts_all_responses_are_one_pool() -> None:
    assert read_pools(b"text\nfirst\n\nsecond\n", name="x.csv") == [Pool("", ("first", "second"), (2, 4))]
    lines = b'{"text": "first"}\n{"prompt": null, "responses": ["second", ""]}'
    assert read_pools(lines, name="x.jsonl") == [Pool("", ("first", "second", ""), (1, 2, 2))]


def test_text_comes_through_as_it_stands() -> None:
    """Line breaks in a cell, letters that Python's splitlines would break at, signs of every script."""
    odd = "first\nsecond \u2028 \x85 \u202e «ä» 👩‍🚀"
    assert read_pools(json.dumps({"text": odd}, ensure_ascii=False).encode(), name="x.jsonl")[0].responses == (odd,)
    assert read_pools(f'text\n"{odd}"\n'.encode(), name="x.csv")[0].responses == (odd,)


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("x.csv", "", ["Line 1 names no response or text", "nothing"]),
        ("x.csv", "prompt,respnse\na,b\n", ["Line 1", "is it 'respnse'?"]),
        ("x.csv", "prompt,response\n", ["x.csv holds no response"]),
        ("x.csv", "prompt,response\na,b\nc,d,e\n", ["Line 3 has 3 cells", "2 columns"]),
        ("x.csv", 'prompt,response\na,"b\n', ["cannot be read"]),
        ("x.jsonl", "\n\n", ["x.jsonl holds no response"]),
        ("x.jsonl", '{"text": "a"}\n{"text": "b"', ["Line 2 is no JSON"]),
        ("x.jsonl", '{"text": "a"}\n["b"]', ["Line 2 is no object"]),
        (
            "x.jsonl",
            '{"text": "a"}\n\n{"prompt": "b"}',
            ["Line 3 names no response or text or responses", "has prompt"],
        ),
        ("x.jsonl", '{"text": 5}', ["Line 1: text must be a text, not int"]),
        ("x.jsonl", '{"response": null}', ["Line 1: response must be a text, not NoneType"]),
        ("x.jsonl", '{"prompt": ["a"], "text": "b"}', ["Line 1: prompt[0] must be a message"]),
        ("x.jsonl", '{"responses": "a"}', ["Line 1: responses must be a list", "not str"]),
        ("x.jsonl", '{"responses": ["a", {}]}', ["Line 1: responses[1] must be a text, not dict"]),
        ("x.jsonl", '{"responses": []}', ["holds no response"]),
        ("x.jsonl", "[" * 100_000, ["Line 1 is no JSON"]),
    ],
)
def test_what_cannot_be_read_is_one_sentence(name: str, text: str, parts: list[str]) -> None:
    with pytest.raises(Refusal) as error:
        read_pools(text.encode(), name=name)
    assert len(str(error.value).splitlines()) == 1
    for part in parts:
        assert part in str(error.value)


def test_another_encoding_is_told_by_line() -> None:
    with pytest.raises(Refusal, match="Line 2, character 2: byte 0xE9 is not UTF-8"):
        read_pools("text\nné".encode("latin-1"), name="x.csv")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100) | st.text(alphabet='{}[]":,textrespon \n', max_size=80).map(str.encode), st.booleans())
def test_whatever_comes_is_pools_or_one_sentence(data: bytes, lines: bool) -> None:
    with suppress(Refusal):
        pools = read_pools(data, name="x.jsonl" if lines else "x.csv")
        assert all(len(pool.responses) == len(pool.lines) > 0 for pool in pools)
