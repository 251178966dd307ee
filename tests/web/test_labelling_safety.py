"""The labelling page in a real Chromium, and people who mean harm: script in every field, tokens, and who sees what."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from desks import alone, alone_desk, chromium_browser, labels, opened_page, press, served
from killick.preferences.store import Item, Store
from killick.web.people import Desk
from stores import pairs

chromium = pytest.fixture(scope="module")(chromium_browser)
desk = pytest.fixture(alone_desk)
page = pytest.fixture(opened_page)
HARM = '"><script>document.title="owned";alert(1)</script><img src=x onerror="alert(2)"><b onclick=alert(3)>{{7*7}}'


def test_text_never_becomes_markup(page: Page, desk: Desk) -> None:
    """Script in every field: prompt, responses, code, guidelines, note, name, and what the owner sees of them."""
    desk.store.add_items([Item(HARM, (f"{HARM} a", f"```\n</code></pre>{HARM}\n```")), Item(HARM, tuple(
        f"{n}</li></form>{HARM}" for n in range(3)), kind="ranking", sources=(HARM,) * 3, metadata={HARM: HARM}
    )], overlap=2)  # fmt: skip
    desk.store.set_guidelines(f"</details>{HARM}")
    page.goto("/label")
    assert page.locator(".asked .words").inner_text() == HARM
    assert page.locator("aside .text").inner_text() == f"</details>{HARM}"
    page.get_by_label("Note").fill(f"</textarea>{HARM}")
    page.keyboard.press("Escape")
    press(page, "1")
    press(page, "u")
    expect(page.get_by_label("Note")).to_have_value(f"</textarea>{HARM}")
    press(page, "2")
    press(page, "1", "2", "3", "Enter")
    for item, ordered in ((1, ((1,), (0,))), (2, ((2,), (1,), (0,)))):
        other = desk.store.annotators()[-1] if item == 2 else alone(desk.store, "ada")
        judged = replace(labels(desk.store)[0][1].judgement, ranking=ordered, note=HARM, flags=("flagged",))
        desk.store.label(other, item, judgement=judged, key=f"{item}")
    page.goto("/label/owner")
    expect(page.get_by_text(HARM).first).to_be_visible()
    assert page.title() == "killick: everybody's work"
    assert page.locator("script:not([src]), main img, [onclick], main b[onclick]").count() == 0
    page.goto("/label/login#" + "%3Cscript%3Ealert(9)%3C/script%3E")
    expect(page.get_by_label("Your token")).to_have_value("<script>alert(9)</script>")


def test_an_inline_script_would_not_run_even_in_the_page(page: Page, desk: Desk) -> None:
    """The policy of the page, tried from within."""
    page.goto("/label")
    page.evaluate(
        "() => { const s = document.createElement('script'); s.text = 'window.owned = 1'; document.body.append(s); }"
    )
    assert page.evaluate("window.owned") is None


def test_tokens_by_link_login_owner_and_logout(chromium: Browser, tmp_path: Path) -> None:
    with Store(tmp_path / "team.db") as store:
        store.add_items(pairs(2), overlap=2)
        tokens = {name: store.add_annotator(name) for name in ("ada", "owner")}
        with served(Desk(store)) as url:
            context = chromium.new_context(base_url=url)
            page = context.new_page()
            page.goto("/label")
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            page.get_by_label("Your token").fill("wrong")
            page.get_by_role("button", name="Begin").click()
            expect(page.get_by_role("alert")).to_contain_text("nobody's")
            page.goto(f"/label/login#{tokens['ada']}")
            expect(page.get_by_label("Your token")).to_have_value(tokens["ada"])
            assert tokens["ada"] not in page.url
            page.get_by_role("button", name="Begin").click()
            page.wait_for_url("**/label")
            page.keyboard.press("1")
            expect(page.locator("#answer [name=item]")).to_have_value("2")
            cookie = context.cookies()[0]
            assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/label")
            assert page.evaluate("document.cookie") == ""
            assert page.goto("/label/owner").status == 403  # type: ignore[union-attr]
            page.goto("/label")
            context.clear_cookies()
            page.keyboard.press("2")  # the answer waits for a new login
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            page.get_by_label("Your token").fill(tokens["ada"])
            page.get_by_role("button", name="Begin").click()
            expect(page.get_by_role("heading", name="All done")).to_be_visible()
            assert len(labels(store)) == 2
            page.get_by_role("button", name="Log out").click()
            page.get_by_label("Your token").fill(tokens["owner"])
            page.get_by_role("button", name="Begin").click()
            expect(page.get_by_role("heading", name="Everybody's work")).to_be_visible()
            with page.expect_download() as saved:
                page.get_by_role("link", name="Export").click()
            assert saved.value.suggested_filename == "labels.jsonl"
            assert len(Path(saved.value.path()).read_text().splitlines()) == 2
            context.close()
