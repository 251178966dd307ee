"""The table of forms: each is found by its columns, and its example is a row of it."""

import json
from typing import get_args

import pytest

from killick.preferences.formats.forms import ALIASES, FORMS, FormName, detect
from killick.preferences.formats.reading import READERS, read
from killick.preferences.formats.writing import WRITERS


def test_every_form_can_be_read_and_written() -> None:
    assert list(FORMS) == list(READERS) == list(WRITERS) == list(get_args(FormName))


@pytest.mark.parametrize("name", FORMS)
def test_the_example_of_a_form_is_a_row_of_it_and_its_columns_show_it(name: str) -> None:
    record = json.loads(FORMS[name].example)
    found = detect(record)
    assert found == ("pairs" if name in ("implicit", "hh") else name)
    assert read(record, name) == read(record, found or "")


def test_columns_of_no_form_are_found_out() -> None:
    assert detect({"prompt": 1, "answer": 2, "Chosen": 3}) is None


def test_the_names_of_helpsteer3_show_signed_strengths() -> None:
    assert detect(dict.fromkeys(ALIASES)) == "strength"


def test_a_strength_beside_a_list_of_responses_is_no_form() -> None:
    assert detect(["prompt", "responses", "ranking", "strength"]) == "ranking"
    assert detect(["prompt", "responses", "strength"]) is None
    assert detect(["prompt", "responses", "first", "second", "strength"]) == "strength"
