"""Prompts from every kind of file are the same prompts; bad rows are told by line; a split goes by text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killick.preferences.rows import Turn
from killick.recipes.prompts import divide, read_prompts
from killick.types import Refusal

DIALOGUE = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And a fish?"}]
TURNS = (Turn("system", "Be brief."), Turn("user", "And a fish?"))
ANSWER = {"role": "assistant", "content": "A trout."}


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rows(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.txt", "Name a bird.\n\nName a tree.\r\nName a bird.\n"),
        ("p", b"\xef\xbb\xbfName a bird.\nName a tree."),
        ("p.jsonl", rows({"prompt": "Name a bird."}, {"prompt": [{"role": "user", "content": "Name a tree."}]})),
        ("p.jsonl", rows({"messages": [{"role": "user", "content": "Name a bird."}, ANSWER]},
                         {"messages": [{"role": "user", "content": "Name a tree."}]})),
        ("p.csv", "id,prompt\n1,Name a bird.\n2,Name a tree.\n3,Name a bird.\n"),
        ("p.csv", 'messages\n"[{""role"": ""user"", ""content"": ""Name a bird.""}]"\n'
                  '"[{""role"": ""user"", ""content"": ""Name a tree.""}]"\n'),
        ("p.jsonl", rows({"prompt": "Name a bird.", "chosen": "A heron.", "rejected": "A trout."},
                         {"prompt": "Name a tree.", "chosen": "An oak.", "rejected": "A fern."})),
        ("p.jsonl", rows({"chosen": [{"role": "user", "content": "Name a bird."}, ANSWER],
                          "rejected": [{"role": "user", "content": "Name a bird."}, ANSWER | {"content": "No."}]},
                         {"prompt": "Name a tree.", "chosen": "An oak.", "rejected": "A fern."})),
        ("p.jsonl", rows({"prompt": "Name a bird.", "responses": ["a", "b"], "ranking": [0, 1]},
                         {"prompt": "Name a tree.", "responses": ["a"], "ranking": [0]})),
        ("p.jsonl", rows({"prompt": "Name a bird.", "response": "a"}, {"prompt": "Name a tree.", "response": "b"})),
    ],
)  # fmt: skip
def test_every_kind_of_file_gives_the_same_prompts_once_each(tmp_path: Path, name: str, text: str | bytes) -> None:
    assert read_prompts(written(tmp_path, name, text)) == ["Name a bird.", "Name a tree."]


def test_a_dialogue_stays_turns(tmp_path: Path) -> None:
    path = written(tmp_path, "p.jsonl", rows({"prompt": DIALOGUE}, {"messages": [*DIALOGUE, ANSWER]}))
    assert read_prompts(path) == [TURNS]


def test_text_comes_through_as_it_stands(tmp_path: Path) -> None:
    """Only a line feed ends a line, and outer spaces are the person's own (a completion may need one)."""
    odd = " first \u2028 \x85 «ä» 👩‍🚀 "
    assert read_prompts(written(tmp_path, "p.txt", odd + "\n")) == [odd]
    assert read_prompts(written(tmp_path, "p.jsonl", json.dumps({"prompt": odd}, ensure_ascii=False))) == [odd]


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        ("p.txt", "", ["p.txt holds no prompt"]),
        ("p.txt", "\n  \n", ["p.txt holds no prompt"]),
        ("p.txt", b"one\ntw\xff\n", ["1 bad row (line 2", "not UTF-8 at byte 3"]),
        ("p.txt", b"a\0b", ["line 1, prompt: holds a null character"]),
        ("p.txt", "hello\n".encode("utf-16"), ["UTF-16"]),
        ("p.jsonl", rows({"prompt": "a"}, {"prompt": ""}, {"prompt": 7}, {"prompt": "b"}),
         ["2 bad rows (line 2, prompt: is empty; line 3, prompt: must be a string or a list of messages"]),
        ("p.jsonl", rows(*[{"prompt": ""}] * 5), ["5 bad rows (line 1", "line 3, prompt: is empty; ...)"]),
        ("p.jsonl", rows({"question": "a", "id": 1}), ["line 1, prompt: is missing", "the columns are question, id"]),
        ("p.jsonl", rows({"prompt": [*DIALOGUE, ANSWER]}), ["line 1, prompt: ends with an answer"]),
        ("p.jsonl", rows({"messages": [ANSWER]}), ["line 1, messages: ends with an answer"]),
        ("p.jsonl", '{"prompt": "a"}\n{"prompt": "b"', ["line 2, is not JSON"]),
        ("p.jsonl", rows({"prompt": "a", "chosen": "b", "rejected": "b"}), ["line 1, rejected: is the same as chosen"]),
        ("p.csv", "prompt\na,b\n", ["line 2, has 2 cells where the header names 1"]),
    ],
)  # fmt: skip
def test_what_is_no_prompt_is_told_by_line_field_and_reason(
    tmp_path: Path, name: str, text: str | bytes, parts: list[str]
) -> None:
    with pytest.raises(Refusal) as refused:
        read_prompts(written(tmp_path, name, text))
    for each in parts:
        assert each in str(refused.value)


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path: Path) -> None:
    for name in ("none.txt", "none.jsonl"):
        with pytest.raises(Refusal, match=name):
            read_prompts(tmp_path / name)
    with pytest.raises(Refusal, match="cannot be read"):
        read_prompts(tmp_path)


# Held out


@given(st.lists(st.text(min_size=1), min_size=30, max_size=40, unique_by=lambda text: text.strip().casefold()))
def test_adding_prompts_moves_none_across(prompts: list[str]) -> None:
    few, many = divide(prompts[:30], share=0.5, seed=0), divide(prompts, share=0.5, seed=0)
    assert few.train == [prompt for prompt in many.train if prompt in prompts[:30]]
    assert few.held_out == [prompt for prompt in many.held_out if prompt in prompts[:30]]
    assert sorted([*many.train, *many.held_out]) == sorted(prompts)


def test_case_and_outer_spaces_do_not_part_two_prompts_and_another_seed_parts_others() -> None:
    prompts = [f"{form}{number}" for number in range(20) for form in ("Prompt ", " prompt ")]
    found = divide(prompts, share=0.5, seed=0)
    numbers = [{str(prompt).split()[-1] for prompt in side} for side in (found.train, found.held_out)]
    assert numbers[0] & numbers[1] == set()
    assert divide(prompts, share=0.5, seed=1) != found


def test_no_share_holds_out_none() -> None:
    assert divide(["a", "b"], share=0, seed=0).train == ["a", "b"]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.001, "None of 2 prompts falls into the held-out share of 0.001"), (0.999, "All 2 prompts"), (1.0, "below 1")],
)
def test_too_few_prompts_for_two_sides_are_refused(share: float, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        divide(["a", "b"], share=share, seed=0)
