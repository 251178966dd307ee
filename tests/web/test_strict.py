"""Bodies as bytes: what is read, and what is refused with a reason."""

import json
from contextlib import suppress
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from killick.web.strict import Form, check_type, read, wrong

modest = settings(max_examples=50, deadline=None, derandomize=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@modest
@given(values)
def test_what_json_writes_is_read(value: Any) -> None:
    assert read(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "character 0"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b'{"a": 1, "b": 2, "a": 1}', "'a' twice"),
        (b'[{"b": {"a": 1, "a": 2}}]', "'a' twice"),
        (b'"\xc3"', "byte 1"),
        (b"[" * 100_000, "deeply"),
        (b"1" * 5000, "4300"),
        (b"{'a': 1}", "character 1"),
    ],
)
def test_what_is_no_strict_json_is_refused_with_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(RequestValidationError) as refused:
        read(body)
    (error,) = refused.value.errors()
    assert error["loc"] == ("body",)
    assert reason in error["msg"]


@modest
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(RequestValidationError):
        read(body)


@pytest.mark.parametrize("kind", ["", "text/json", "application", "application/jsonp", "application/jso", "json"])
def test_a_type_that_is_not_json_is_refused(kind: str) -> None:
    with pytest.raises(HTTPException) as refused:
        check_type(kind)
    assert refused.value.status_code == 415


@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON;charset=utf-8", "application/problem+json"])
def test_a_type_that_is_json_is_taken(kind: str) -> None:
    check_type(kind)


class Small(Form):
    """A number."""

    number: float = 0.0
    whole: int = 0


@pytest.mark.parametrize(
    "given", [{"number": float("nan")}, {"number": "1"}, {"number": True}, {"whole": 1.0}, {"x": 1}]
)
def test_a_form_takes_nothing_but_its_fields_as_they_are(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Small(**given)


def test_a_form_takes_a_whole_number_where_any_will_do() -> None:
    assert Small(number=2).number == 2.0


def test_a_reason_stands_at_its_field() -> None:
    (error,) = wrong("Too blue.", "items", 3).errors()
    assert (error["loc"], error["msg"]) == (("body", "items", 3), "Too blue.")
