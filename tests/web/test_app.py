"""The server's frame: it answers, it bounds what it reads, and it says what is wrong."""

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from pydantic import BaseModel

from killick.web.app import build

part = APIRouter()


class Sum(BaseModel):
    """Two numbers."""

    first: float
    second: float


@part.post("/sum")
def add(numbers: Sum) -> float:
    """Their sum."""
    return numbers.first + numbers.second


@pytest.fixture
def client() -> TestClient:
    return TestClient(build([part], body=100), base_url="http://127.0.0.1:8000")


def test_it_answers_and_routes(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.post("/sum", json={"first": 1, "second": 2.5}).json() == 3.5


@pytest.mark.parametrize(
    ("body", "field"),
    [("{}", "body.first"), ('{"first": NaN, "second": "x"}', "body.second"), ("[", "body.1"), ("[1]", "body")],
)
def test_a_wrong_body_is_told_by_field(client: TestClient, body: str, field: str) -> None:
    said = client.post("/sum", content=body, headers={"content-type": "application/json"})
    assert said.status_code == 422
    assert field in [one["field"] for one in said.json()["errors"]]


def test_a_long_body_is_refused_whether_or_not_it_says_its_length(client: TestClient) -> None:
    assert client.post("/sum", content=b"1" * 101).status_code == 413
    assert client.post("/sum", content=iter([b"1" * 60, b"1" * 60])).status_code == 413
    assert client.post("/sum", content=b"{}", headers={"content-length": "-2"}).status_code == 413


def test_pages_of_other_origins_may_not_write(client: TestClient) -> None:
    numbers = {"first": 1, "second": 1}
    assert client.post("/sum", json=numbers, headers={"origin": "http://elsewhere"}).status_code == 403
    assert client.post("/sum", json=numbers, headers={"origin": "null"}).status_code == 403
    assert client.post("/sum", json=numbers, headers={"origin": "http://127.0.0.1:8000"}).json() == 2


def test_what_is_not_there_is_told_in_the_same_form(client: TestClient) -> None:
    said = client.get("/nowhere")
    assert (said.status_code, said.json()) == (404, {"errors": [{"field": "", "reason": "Not Found"}]})
