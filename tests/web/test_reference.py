"""The page at /docs: told from the schema alone, and its examples can be sent."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from typing import Annotated

import pytest
import uvicorn
from fastapi import APIRouter, Query
from fastapi.testclient import TestClient
from playwright.sync_api import expect, sync_playwright
from pydantic import BaseModel, ConfigDict, Field

from killick.web.app import build
from killick.web.reference import Endpoint, endpoints, example

part = APIRouter()


class Thing(BaseModel):
    """One of several."""

    name: str = Field(max_length=9, description="What it is called.")


class Things(BaseModel):
    """Several."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"things": [{"name": "it's"}]}]})
    things: list[Thing] = Field(max_length=3)
    count: int | None = Field(default=None, ge=1)


@part.post("/things", responses={409: {"description": "There is one <already>."}})
def send(things: Things) -> Things:
    """Keep things.

    All of them.
    """
    return things


@part.get("/things")
def get(limit: Annotated[int, Query(le=7)] = 2) -> list[int]:
    """Things by number."""
    return list(range(limit))


@pytest.fixture
def client() -> TestClient:
    return TestClient(build([part]), base_url="http://127.0.0.1:8000")


def found(client: TestClient) -> dict[str, Endpoint]:
    told = endpoints(client.get("/openapi.json").json())
    return {f"{one.method} {one.path}": one for one in told}


def test_every_endpoint_is_told_with_its_fields_and_limits(client: TestClient) -> None:
    told = found(client)
    assert list(told) == ["GET /healthz", "POST /things", "GET /things"]
    post = told["POST /things"]
    assert post.summary == "Keep things.\n\nAll of them."
    assert [(one.name, one.kind, one.needed, one.about) for one in post.fields] == [
        ("things", "array", True, "at most 3"),
        ("things[].name", "string", True, "What it is called; at most 9 characters"),
        ("count", "integer", False, "at least 1"),
    ]
    assert post.statuses == [("409", "There is one <already>."), ("422", "Validation Error")]
    (limit,) = told["GET /things"].fields
    assert (limit.name, limit.kind, limit.about) == ("limit", "integer", "2 if not said; at most 7")


def test_the_example_is_a_line_for_a_shell(client: TestClient) -> None:
    told = found(client)
    assert told["POST /things"].curl("http://h:1") == (
        'curl http://h:1/things -H \'content-type: application/json\' -d \'{"things": [{"name": "it\'"\'"\'s"}]}\''
    )
    assert told["GET /things"].curl("http://h:1") == "curl http://h:1/things"
    assert example({}) is None


def test_the_page_needs_nothing_from_elsewhere_and_keeps_text_text(client: TestClient) -> None:
    said = client.get("/docs")
    assert said.status_code == 200
    assert "There is one &lt;already&gt;." in said.text
    assert "http" not in said.text.replace("http://127.0.0.1:8000", "")
    assert said.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.fixture
def address() -> Iterator[str]:
    """A real server in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        server = uvicorn.Server(uvicorn.Config(build([part]), log_level="error"))
        thread = threading.Thread(target=server.run, args=([door],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_an_example_is_sent_from_the_page_and_its_reply_is_shown(address: str) -> None:
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{address}/docs")
        post = page.locator(".endpoint", has_text="Keep things.")
        post.get_by_role("button", name="Send").click()
        post.locator(".reply").wait_for()
        assert '"name": "it\'s"' in str(post.locator(".reply").text_content())
        assert str(post.locator("output").text_content()).startswith("200 after")
        post.locator("textarea").fill('{"things": 1}')
        post.get_by_role("button", name="Send").click()
        expect(post.locator("output")).to_have_text(re.compile("^422"))
        assert "body.things" in str(post.locator(".reply").text_content())
        get = page.locator(".endpoint", has_text="Things by number.")
        get.get_by_role("button", name="Send").click()
        get.locator(".reply").wait_for()
        assert str(get.locator(".reply").text_content()).split() == ["[", "0,", "1", "]"]
        browser.close()
