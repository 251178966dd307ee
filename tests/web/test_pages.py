"""Pages: what is written in them stays text, and the index names what there is."""

import pytest
from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from killick.web.app import build
from killick.web.pages import TEMPLATES, page

part = APIRouter()
NASTY = "</title><script>alert(1)</script>"


@part.get("/first", response_class=HTMLResponse, summary=NASTY)
def first() -> HTMLResponse:
    """What it is for.

    And more of it.
    """
    return page("index.html.j2", pages=[{"path": "/", "title": NASTY, "line": '"><img src=x onerror=alert(1)>'}])


@part.get("/first/{number}", response_class=HTMLResponse)
def one(number: int) -> HTMLResponse:
    """No page to begin with."""
    return page("index.html.j2", pages=[])


@part.get("/numbers")
def numbers() -> list[int]:
    """No page at all."""
    return [1]


@part.post("/first", response_class=HTMLResponse)
def sent() -> HTMLResponse:
    """Sent, not opened."""
    return page("index.html.j2", pages=[])


@pytest.fixture
def client() -> TestClient:
    return TestClient(build([part]), base_url="http://127.0.0.1:8000")


def test_the_index_lists_each_page_with_title_and_one_line(client: TestClient) -> None:
    said = client.get("/")
    assert said.status_code == 200
    assert said.text.count('href="/first"') == 1
    assert "What it is for." in said.text
    for other in ("And more", "/numbers", "/first/", "Sent, not", NASTY):
        assert other not in said.text


def test_every_value_of_a_page_is_text(client: TestClient) -> None:
    said = client.get("/first").text
    assert "<script" not in said
    assert "<img" not in said
    assert "&lt;script&gt;" in said
    assert TEMPLATES.autoescape is True


def test_a_page_lets_nothing_foreign_in(client: TestClient) -> None:
    said = client.get("/").headers
    assert said["content-security-policy"].startswith("default-src 'none'; style-src 'self'; script-src 'self';")
    assert "unsafe" not in said["content-security-policy"]
    assert said["x-content-type-options"] == "nosniff"


def test_the_style_is_served_and_nothing_outside_its_folder(client: TestClient) -> None:
    said = client.get("/static/style.css")
    assert said.headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in said.text
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
