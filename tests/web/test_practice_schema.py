"""Requests that a machine makes up from the API's own page: no crash, and nothing that the page does not tell."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from killick.models.asking import Answer, Question
from killick.types import Refusal
from killick.web.app import build
from killick.web.practice import Practice, practice

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
"""Requests as the page describes them, and requests with something wrong."""
ROWS = [{"prompt": "Describe the Lark day pack .", "chosen": "good", "rejected": "bad"}] * 5


def speak(questions: list[Question]) -> list[list[Answer] | Refusal]:
    """Says the prompt back; refuses those with a full stop."""
    return [
        Refusal("No full stops.") if "." in asked.prompt else [Answer(asked.prompt, True)] * asked.n
        for asked in questions
    ]


def judge(prompts: Any, answers: Any) -> list[float]:
    """Infinite for long answers."""
    return [float(len(answer)) if len(answer) < 20 else float("inf") for answer in answers]


def operations() -> Iterator[Any]:
    """Every address of the server with the practice API, small functions behind it."""
    names = {"tiny-gpt-chat": speak}, {"reviewer": judge}
    schema = schemathesis.openapi.from_asgi("/openapi.json", build([practice(Practice(lambda: ROWS, *names))]))
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        yield found.ok()


def search(count: int, mode: Any) -> int:
    """Send `count` requests to each address that takes anything, one to the others; how many were sent."""
    sent = 0
    for operation in operations():
        if mode is NEGATIVE and not (operation.query or operation.body):
            continue  # nothing to get wrong

        @settings(
            max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def one(case: Any) -> None:
            nonlocal sent
            sent += 1
            case.call_and_validate(checks=CHECKS)

        one()
    return sent


def test_two_hundred_requests_find_nothing() -> None:
    assert sum(search(25, mode) for mode in (POSITIVE, NEGATIVE)) >= 200


@pytest.mark.slow
def test_two_thousand_requests_find_nothing() -> None:
    assert sum(search(300, mode) for mode in (POSITIVE, NEGATIVE)) >= 2000
