"""The page of the exact leash: right without a script, the same numbers with one, and a person's table kept nowhere."""

import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, FilePayload, Page, expect, sync_playwright

from killick.algorithms.listed import measure_tilted
from killick.algorithms.tilt import tilt
from killick.web.app import build
from killick.web.leash import leash, number, percent, reach
from killick.worlds.listed import FIVE, AnswerTable, numbers
from killick.worlds.listed_csv import read_table

OWN = "answer,p_ref,reward,gold\nshort,0.5,0,1\nlong,0.4,1,2\nflattery,0.1,3,-2\nnever,0,9,9\n"
NASTY = '</textarea><script>alert(1)</script><img src=x onerror="alert(2)">'


@pytest.fixture
def client() -> TestClient:
    return TestClient(build([leash()]), base_url="http://127.0.0.1:8000")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The page on a port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build([leash()]), log_level="error", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Page]:
    """A page whose script may not fail."""
    page = chromium.new_page(viewport={"width": 360, "height": 740})
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield page
    page.close()
    assert [fault for fault in faults if "422" not in fault] == []


def shown(text: str) -> dict[str, float]:
    """The exact figures that a page holds."""
    return {name: float(value) for name, value in re.findall(r'<output id="(\w+)"[^>]* data-value="([^"]+)"', text)}


# Without a script


def test_the_plain_page_has_the_numbers_of_the_source(client: TestClient) -> None:
    """Beta .5: 1.03, .39, .47, 25 %."""
    said = client.get("/leash?beta=0.5")
    assert said.status_code == 200
    assert shown(said.text) == pytest.approx(
        {"proxy": 1.0349, "gold": 0.3904, "kl": 0.4709, "gaming": 0.2479}, abs=5e-5
    )
    for figure in ("1.035", "0.390", "0.471", "24.8 %", "before: 0.430", "before: 5.0 %", "beta 0.953"):
        assert figure in said.text
    assert said.text.count("games the reward</span>") == 1
    assert 'method="get" action="/leash"' in said.text


def test_it_stands_in_the_index_and_on_the_server(client: TestClient) -> None:
    assert '<a href="/leash">The exact leash</a>' in client.get("/").text
    for file in ("leash.js", "leash.css", "style.css"):
        assert client.get(f"/static/{file}").status_code == 200


@pytest.mark.parametrize("beta", ["nan", "-1", "inf", "", "x", "1e999", "0x1", NASTY])
def test_a_beta_that_cannot_be_is_one_sentence_over_a_page_that_works(client: TestClient, beta: str) -> None:
    said = client.get("/leash", params={"beta": beta})
    assert said.status_code == 422
    assert 'role="alert">beta must be a number, 0 or more' in said.text
    assert shown(said.text)["proxy"] == pytest.approx(0.8335, abs=5e-5)
    assert "<img" not in said.text


def test_a_table_of_ones_own_pasted_or_as_a_file_and_then_another_beta(client: TestClient) -> None:
    pasted = client.post("/leash", data={"table": OWN, "beta": "1"})
    sent = client.post("/leash", data={"beta": "1"}, files={"file": ("own.csv", OWN.encode("utf-8-sig"), "text/csv")})
    for said in (pasted, sent):
        assert said.status_code == 200
        # .5, .4 e, .1 e^3 over 3.5959.
        assert shown(said.text)["proxy"] == pytest.approx((0.4 * 2.71828 + 0.3 * 20.08554) / 3.59587, abs=1e-4)
        assert unescape(said.text).count(OWN) == 1  # it goes back and forth with the form
    assert shown(client.post("/leash", data={"table": OWN, "beta": "0"}).text)["gaming"] == 1
    # Rewards from 0 to 3 have a slider from .01 to 100, whose middle is 1; a thousand times as far, 1000.
    assert 'required value="1"' in client.post("/leash", data={"table": OWN}).text
    far = OWN.replace(",3,", ",3000,").replace(",1,", ",1000,")
    assert 'required value="1000"' in client.post("/leash", data={"table": far}).text


def test_a_table_that_cannot_be_read_is_told_and_not_lost(client: TestClient) -> None:
    broken = OWN.replace("0.4", "x")
    said = client.post("/leash", data={"table": broken, "beta": "1"})
    assert said.status_code == 422
    assert "Line 3, column p_ref" in said.text
    assert broken in unescape(said.text)
    for data, part in (
        (b"", "empty"),
        (b"\xff\xfe", "UTF-8"),
        (b"p_ref,reward\n" + b"0.0009,1\n" * 1111, "killick tilt"),
    ):
        said = client.post("/leash", data={"beta": "1"}, files={"file": ("own.csv", data, "text/csv")})
        assert (said.status_code, part in said.text) == (422, True)


def part(text: str, charset: str) -> dict[str, Any]:
    """A form with the table in another charset."""
    lines = ("--x", 'content-disposition: form-data; name="table"', "", text, "--x--", "")
    return {
        "content": "\r\n".join(lines).encode(),
        "headers": {"content-type": f"multipart/form-data; boundary=x; charset={charset}"},
    }


@pytest.mark.parametrize(("text", "line"), [("", 1), (OWN, 6)])
def test_half_a_character_is_told_and_the_rest_comes_back(client: TestClient, text: str, line: int) -> None:
    """A charset that knows escapes makes six letters half a character, which no UTF-8 holds."""
    said = client.post("/leash", **part(text + r"\ud800,1,1", "unicode_escape"))
    assert said.status_code == 422
    assert f"Line {line} holds half a character" in said.text
    assert f"{text}?,1,1</textarea>" in unescape(said.text)


@pytest.mark.parametrize("kind", ["typed", "multipart"])
def test_a_table_may_be_as_long_as_a_body_and_a_longer_one_is_refused_in_one_way(client: TestClient, kind: str) -> None:
    """Twenty long answers of 1.9 MB together, then of 2.1: one bound, one sentence, however the form is sent."""
    for size, status in ((1_900_000, 200), (2_100_000, 413)):
        table = "answer,p_ref,reward\n" + "".join(f"{row}{size // 20 * 'x'},0.05,{row}\n" for row in range(20))
        form = {"data": {"table": table}} if kind == "typed" else part(table, "utf-8")
        said = client.post("/leash", **form)
        assert said.status_code == status
    assert said.json() == {"errors": [{"field": "body", "reason": "A body may have 2000000 bytes at most."}]}


def test_text_never_becomes_markup(client: TestClient) -> None:
    table = 'answer,p_ref,reward\n"' + NASTY.replace('"', '""') + '",0.5,1\nb,0.5,2\n'
    for text in (table, NASTY):
        said = client.post("/leash", data={"table": text, "beta": NASTY})
        assert "<script>" not in said.text
        assert "<img" not in said.text
        assert "onerror=&#34;" in said.text


@pytest.mark.parametrize("rewards", [(1.0, 1.0), (-1e100, 1e100), (0.0, 1e-9), (1e-300, 2e-300)])
def test_rewards_of_any_size_make_a_page(client: TestClient, rewards: tuple[float, float]) -> None:
    table = f"p_ref,reward,gold\n0.9,{rewards[0]},1\n0.1,{rewards[1]},0\n"
    said = client.post("/leash", data={"table": table, "beta": "1"})
    assert said.status_code == 200
    assert "nan" not in said.text.lower().replace("unanswered", "")


def test_numbers_are_written_as_a_browser_writes_them() -> None:
    """A half goes up, as in toFixed; powers of ten without a leading zero, as in toExponential."""
    assert [number(value) for value in (0.0625, -0.0625, 1125000.0, 0.00012, 1e-15)] == [
        "0.063", "-0.063", "1.13e+6", "1.20e-4", "0.000",
    ]  # fmt: skip
    assert percent(0.0625) == "6.3 %"
    assert reach(FIVE) == pytest.approx((0.01, 10))
    assert reach(AnswerTable(("a", "b"), numbers(0.5, 0.5), numbers(0, 1000))) == pytest.approx((10, 10_000))


# With one


def by_script(tab: Page, beta: str) -> tuple[dict[str, float], list[float]]:
    """The figures and the policy after a beta is typed."""
    tab.fill("#beta", beta)
    told = tab.evaluate("[...document.querySelectorAll('output')].map((one) => [one.id, Number(one.dataset.value)])")
    shares = tab.evaluate("[...document.querySelectorAll('td.policy')].map((one) => Number(one.dataset.value))")
    return dict(told), shares


@pytest.mark.parametrize("own", [False, True])
def test_the_browser_computes_what_the_server_computes(tab: Page, address: str, own: bool) -> None:
    """Thirty betas from 0 to 10^8, over the five answers and over a table with an answer that is never given."""
    tab.goto(f"{address}/leash")
    table = FIVE
    if own:
        tab.fill("#table", OWN)
        tab.click("text=Show my answers")
        table = read_table(OWN.encode())
    betas = ["0", "1e-9", "1e-3", *(f"{10 ** (place / 8):.4g}" for place in range(-16, 9)), "1e4", "1e8"]
    for beta in betas:
        told, shares = by_script(tab, beta)
        right = measure_tilted(table, beta=float(beta))
        policy = tilt(table.reference.log(), table.reward, beta=float(beta)).exp().tolist()
        assert shares == pytest.approx(policy, rel=1e-9, abs=1e-12)
        assert told == pytest.approx(
            {"proxy": right.proxy, "gold": right.gold, "kl": right.kl, "gaming": right.gaming}, rel=1e-9, abs=1e-12
        )
    if not own:
        for beta in ("0", "0.25", "7"):
            by_script(tab, beta)
            moved = tab.evaluate(SEEN)
            tab.goto(f"{address}/leash?beta={beta}")
            assert tab.evaluate(SEEN) == moved


SEEN = """() => {
  const all = (what) => [...document.querySelectorAll(what)];
  const place = (one, name) => parseFloat(one.getAttribute(name)).toFixed(4);
  return [
    all('output, td').map((one) => one.textContent),
    all('rect.policy').map((one) => place(one, 'width')),
    all('.dot').flatMap((one) => [place(one, 'cx'), place(one, 'cy')]),
  ];
}"""
"""All that a person sees of a beta: figures, shares, bars and dots."""


def test_the_slider_moves_bars_and_figures_by_hand_and_by_key(tab: Page, address: str) -> None:
    """Log scale from .01 to 10: its ends, and one step from the keyboard; a screen reader and the address follow."""
    tab.goto(f"{address}/leash")
    slider = tab.locator("#slider")
    expect(slider).to_be_visible()
    expect(tab.locator("#show")).to_be_hidden()
    slider.focus()
    tab.keyboard.press("Home")
    assert tab.input_value("#beta") == "0.01"
    expect(tab.locator("#gaming")).to_have_text("100.0 %")
    assert slider.get_attribute("aria-valuetext") == "beta 0.01"
    tab.keyboard.press("End")
    expect(tab.locator("#proxy")).to_have_text("0.483")
    tab.keyboard.press("ArrowLeft")
    assert float(tab.input_value("#beta")) == pytest.approx(10**0.99, rel=0.01)
    expect(tab.locator("#said")).to_contain_text("Gaming share 5.6 %")
    expect(tab).to_have_url(f"{address}/leash?beta=9.77")


def test_what_is_no_beta_leaves_the_page_as_it_is(tab: Page, address: str) -> None:
    tab.goto(f"{address}/leash?beta=1")
    for typed in ("-3", ""):
        tab.fill("#beta", typed)
        expect(tab.locator("#proxy")).to_have_text("0.834")


def test_without_a_script_the_form_asks_the_server(chromium: Browser, address: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/leash")
    page.fill("#beta", "0.25")
    page.click("#show")
    expect(page.locator("#gold")).to_have_text("-0.186")
    file: FilePayload = {"name": "own.csv", "mimeType": "text/csv", "buffer": OWN.encode()}
    page.set_input_files("#file", file)
    page.click("text=Show my answers")
    expect(page.locator("#answers tbody tr")).to_have_count(4)
    page.fill("#beta", "0")
    page.click("#show")
    expect(page.locator("#gaming")).to_have_text("100.0 %")
    context.close()


@pytest.mark.parametrize("width", [320, 768])
def test_nothing_is_wider_than_the_window(tab: Page, address: str, width: int) -> None:
    """A long answer and a long number included."""
    tab.set_viewport_size({"width": width, "height": 740})
    tab.goto(f"{address}/leash")
    tab.fill("#table", f"answer,p_ref,reward,gold\n{'unbroken' * 30},0.5,-123456.789,1\nb,0.5,123456.789,2\n")
    tab.click("text=Show my answers")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_every_field_has_a_name_and_the_page_one_heading(tab: Page, address: str) -> None:
    tab.goto(f"{address}/leash")
    for label in ("beta, reward units per nat", "beta, short leash to the right", "Paste a table", "or choose a file"):
        expect(tab.get_by_label(label, exact=True)).to_have_count(1)
    expect(tab.get_by_role("heading", level=1)).to_have_count(1)
    expect(tab.get_by_role("table")).to_have_count(2)
    tab.keyboard.press("Tab")
    expect(tab.locator(".skip")).to_be_focused()


def test_the_ring_of_the_slider_in_focus_stands_clear_of_what_is_above_and_below(tab: Page, address: str) -> None:
    tab.goto(f"{address}/leash")
    slider = tab.locator("input[type=range]")
    slider.focus()
    ring = slider.evaluate(
        "e => parseFloat(getComputedStyle(e).outlineWidth) + parseFloat(getComputedStyle(e).outlineOffset)"
    )
    place, ends, box = (
        tab.locator(name).first.bounding_box() for name in ("input[type=range]", ".ends", ".beta input[type=number]")
    )
    assert place is not None
    assert ends is not None
    assert box is not None
    assert ring > 0
    assert box["y"] + box["height"] <= place["y"] - ring
    assert place["y"] + place["height"] + ring <= ends["y"]


def test_a_reward_that_no_computer_can_raise_to_a_power_is_told_and_not_a_fault(client: TestClient) -> None:
    """Rewards of 1e308 either side once made the page answer 500."""
    far = OWN.replace(",3,", ",1e308,").replace(",1,", ",-1e308,")
    said = client.post("/leash", data={"table": far, "beta": "1"})
    assert said.status_code == 422
    assert "Line 3, column reward" in said.text
