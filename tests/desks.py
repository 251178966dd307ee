"""The labelling page for tests: a desk over a store, asked in this process or served to a browser."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Error, Page, sync_playwright

from killick.preferences.store import Annotator, Item, Label, Store
from killick.web.app import build
from killick.web.labelling import labelling
from killick.web.people import PART, Desk

BASE = "http://127.0.0.1:8000"
HOSTS = ("127.0.0.1", "localhost", "::1")


def ranking(count: int, *, prompt: str = "Name a bird.") -> Item:
    """A question with so many responses."""
    return Item(prompt, tuple(f"Bird {number}" for number in range(count)), kind="ranking")


def client(desk: Desk, token: str = "") -> TestClient:
    """A browser without scripts, logged in where a token is given."""
    found = TestClient(build([labelling(desk)], body=200_000, hosts=HOSTS), base_url=BASE, follow_redirects=False)
    if token:
        assert found.post("/label/login", data={"token": token}).status_code == 303
    return found


def fields(page: Any) -> dict[str, str]:
    """The hidden fields of the card's form, as a browser would send them."""
    text = page if isinstance(page, str) else page.text
    form = text[text.index('id="answer"') : text.index("</form>", text.index('id="answer"'))]
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form)
    return {name: unescape(value) for name, value in found if name != "number"}


def undo_fields(page: Any) -> dict[str, str]:
    """The fields of the undo's form."""
    text = page if isinstance(page, str) else page.text
    form = text[text.index('id="undo"') :]
    return {name: unescape(value) for name, value in re.findall(r'name="(item|key)" value="([^"]*)"', form)}


@dataclass
class Hand:
    """An annotator without a browser, who reads the next card from the answer, as the page's script does."""

    client: Any
    page: str = field(default="")

    def open(self) -> None:
        """The first card."""
        self.page = self.client.get("/label").text

    def say(self, choice: str, **more: Any) -> Any:
        """Answer the card."""
        said = self.client.post(
            "/label/answer", data={**fields(self.page), "choice": choice, **more}, headers={PART: "card"}
        )
        self.page = said.text
        return said


def labels(store: Store) -> list[tuple[Item, Label]]:
    """What holds."""
    return list(store.export())


def alone(store: Store, name: str = "me") -> Annotator:
    """The one who labels without a token."""
    store.add_annotator(name)
    return next(one for one in store.annotators() if one.name == name)


@contextmanager
def served(desk: Desk) -> Iterator[str]:
    """The page on a port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    app = build([labelling(desk)], body=200_000, hosts=HOSTS)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True  # a connection that a browser keeps open is no reason to wait
        thread.join()


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's Chromium without a window."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium: .ci/services installs one")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield chromium
        finally:
            chromium.close()


def chromium_browser() -> Iterator[Browser]:
    """One for all tests of a file."""
    with browser() as found:
        yield found


def alone_desk(tmp_path: Path) -> Iterator[Desk]:
    """Somebody alone, and no items yet."""
    with Store(tmp_path / "labels.db") as store:
        yield Desk(store, alone=alone(store))


def opened_page(chromium: Browser, desk: Desk) -> Iterator[Page]:
    """The page of that desk, which the test opens; a dialog or an error on it fails the test."""
    with served(desk) as url:
        context = chromium.new_context(base_url=url)
        opened = context.new_page()
        opened.set_default_timeout(10_000)
        wrong: list[str] = []
        opened.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        yield opened
        context.close()
        assert wrong == []


def press(page: Page, *keys: str) -> None:
    """Keys, of which the last one sends, and the next card."""
    key = page.locator("[name=key]").first.get_attribute("value")
    for each in keys:
        page.keyboard.press(each)
    next_card(page, key)


def next_card(page: Page, key: str | None) -> None:
    """Wait until another card, or none, is shown.

    Asked from here: the page's own policy forbids what `wait_for_function` evaluates after its first look.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if page.evaluate("document.querySelector('[name=key]')?.value") != key:
                page.wait_for_load_state()
                return
        except Error:  # the old page is just being left
            pass
        page.wait_for_timeout(10)
    raise AssertionError("No next card came within a minute.")
