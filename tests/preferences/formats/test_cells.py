"""Cells of CSV: text as it is, everything else as JSON, and no cell that is read as something else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.preferences.formats.cells import dumps, from_cells, to_cells
from killick.preferences.formats.dialogues import BadField

VALUES = st.lists(st.text()) | st.integers() | st.floats(-9, 9)
MESSAGES = [{"role": "user", "content": "Hi"}]


def test_text_stays_as_it_is_and_the_rest_becomes_json() -> None:
    record = {"prompt": "a, b", "responses": ["x", "y"], "scores": [1.5, 2.0], "shown": False, "annotator": "ann"}
    cells = to_cells(record)
    assert list(cells.values()) == ["a, b", '["x", "y"]', "[1.5, 2.0]", "false", "ann"]
    assert from_cells(cells) == record


def test_messages_are_a_list_in_a_cell() -> None:
    assert from_cells(to_cells({"prompt": MESSAGES})) == {"prompt": MESSAGES}


@pytest.mark.parametrize(
    "text", ['[{"role": "user", "content": "a"}]', "[{}]", "[]", '[{"a": 1}]', "[{", "{}", "7", "null"]
)
def test_a_text_that_looks_like_json_stays_a_text(text: str) -> None:
    """One that would be read as messages is written as the content of a message."""
    found = from_cells(to_cells({"chosen": text, "prompt": text}))
    for name, role in (("chosen", "assistant"), ("prompt", "user")):
        assert found[name] in (text, [{"role": role, "content": text}])


def test_empty_cells_of_what_may_be_absent_are_absent() -> None:
    """An empty text stays, for the reader to refuse."""
    assert from_cells({"prompt": "", "margin": "", "annotator": "", "shown": ""}) == {"prompt": ""}


@pytest.mark.parametrize(
    ("name", "cell", "reason"),
    [
        ("scores", "[1, NaN]", "NaN"),
        ("ranking", "best first", "not JSON"),
        ("chosen", "[{'role': 'user', 'content': 'Hi'}]", "Python's notation"),
    ],
)
def test_a_cell_that_cannot_be_read_names_its_column(name: str, cell: str, reason: str) -> None:
    with pytest.raises(BadField, match=reason) as refused:
        from_cells({name: cell})
    assert refused.value.field == name


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["responses", "scores", "choice"]), VALUES))
def test_whatever_is_json_comes_back(record: dict[str, Any]) -> None:
    assert from_cells(to_cells(record)) == record


def test_no_infinity_is_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps(float("inf"))
