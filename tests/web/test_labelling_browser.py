"""The labelling page in a real Chromium: keys, clicks, drags, thumbs, a lost connection, and text that means harm."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from desks import alone_desk, chromium_browser, labels, opened_page, press, ranking, served
from killick.preferences.store import Item
from killick.web.people import Desk
from stores import pairs

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 640}, "is_mobile": True, "has_touch": True}
DOUBLE = 400
"""Milliseconds after which a click on a new card is meant."""


chromium = pytest.fixture(scope="module")(chromium_browser)
desk = pytest.fixture(alone_desk)
page = pytest.fixture(opened_page)


def number(page: Page) -> str:
    """The item on the card; nothing at the end."""
    found = page.locator("#answer [name=item]")
    return str(found.get_attribute("value")) if found.count() else ""


def test_a_scripted_annotator_answers_a_hundred_pairs_by_keys(page: Page, desk: Desk) -> None:
    """Every click is in the store, and says what was pressed: the bird with the even number is preferred."""
    desk.store.add_items([Item(f"Pair {n}", (f"Bird {2 * n}", f"Bird {2 * n + 1}")) for n in range(100)])
    page.goto("/label")
    pressed = []
    for _ in range(100):
        first = page.locator(".said .words").first.inner_text()
        pressed.append((page.locator(".asked .words").inner_text(), "1" if int(first.split()[1]) % 2 == 0 else "2"))
        press(page, pressed[-1][1])
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    said = labels(desk.store)
    assert len(said) == 100
    assert [item.prompt for item, _ in said] == [prompt for prompt, _ in pressed]
    assert all(label.judgement.ranking == ((0,), (1,)) for _, label in said)
    shown_first = [choice for _, choice in pressed].count("1")
    assert 30 <= shown_first <= 70  # either side first: a fair coin strays further once in 30,000 times
    assert all(0 < label.judgement.seconds < 20 for _, label in said)


def test_tie_skip_flag_strength_note_and_undo_by_keys(page: Page, desk: Desk, chromium: Browser) -> None:
    desk.store.add_items(pairs(4))
    with served(replace(desk, strength=True)) as url:
        page.goto(f"{url}/label")
        press(page, "=")
        press(page, "f", "s")
        press(page, "n", *"1 = u", "Escape", "e", "2")  # in a note, keys are letters
        press(page, "w", "1")
        said = [label.judgement for _, label in labels(desk.store)]
        assert [len(each.ranking) for each in said] == [1, 0, 2, 2]
        assert [each.flags for each in said] == [(), ("flagged",), (), ()]
        assert [each.strength for each in said] == [None, None, 3, 2]
        assert [each.note for each in said] == ["", "", "1 = u", ""]
        press(page, "u")
        press(page, "u")
        assert (number(page), len(labels(desk.store))) == ("3", 2)
        expect(page.locator("[name=note]")).to_have_value("1 = u")
        expect(page.locator("[name=strength][value='3']")).to_be_checked()
        press(page, "1")
        assert labels(desk.store)[-1][1].judgement.note == "1 = u"


def test_a_held_key_answers_one_card(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(5))
    page.goto("/label")
    for _ in range(6):
        page.keyboard.down("1")  # playwright repeats a key that is held
        page.wait_for_timeout(30)
    page.keyboard.up("1")
    page.wait_for_timeout(200)
    assert len(labels(desk.store)) == 1


def test_a_double_click_is_one_label(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(5))
    page.goto("/label")
    page.wait_for_timeout(DOUBLE)
    page.get_by_role("button", name="First").dblclick()
    page.wait_for_timeout(DOUBLE)
    assert len(labels(desk.store)) == 1
    assert number(page) == "2"


def test_a_ranking_by_keys_with_a_tie_and_a_step_back(page: Page, desk: Desk) -> None:
    desk.store.add_items([ranking(5)])
    page.goto("/label")
    press(page, "3", "5", "Backspace", "1", "=", "4", "2", "5", "Enter")
    ((_, label),) = labels(desk.store)
    at = label.order
    assert label.judgement.ranking == ((at[2],), tuple(sorted((at[0], at[3]))), (at[1],), (at[4],))


def test_a_ranking_is_not_sent_before_all_have_a_place(page: Page, desk: Desk) -> None:
    desk.store.add_items([ranking(3)])
    page.goto("/label")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("each response a place")
    assert labels(desk.store) == []
    press(page, "s")
    assert labels(desk.store)[0][1].judgement.skipped


def test_a_ranking_by_drag(page: Page, desk: Desk) -> None:
    """The last is dragged to the top, then the one that was first to the end, then two are tied by a button."""
    desk.store.add_items([ranking(4)])
    page.goto("/label")
    drag(page, "4", "1", above=True)  # 4 1 2 3
    assert order(page) == ["4", "1", "2", "3"]
    drag(page, "1", "3", above=False)  # 4 2 3 1
    assert order(page) == ["4", "2", "3", "1"]
    page.get_by_role("button", name="response 3 as good").click()
    assert [page.locator(".ranking select").nth(at).input_value() for at in range(4)] == ["1", "2", "2", "3"]
    page.wait_for_timeout(DOUBLE)
    page.get_by_role("button", name="Send the ranking").click()
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    ((_, label),) = labels(desk.store)
    at = label.order
    assert label.judgement.ranking == ((at[3],), tuple(sorted((at[1], at[2]))), (at[0],))


def test_a_ranking_by_the_buttons_of_a_phone(chromium: Browser, desk: Desk) -> None:
    desk.store.add_items([ranking(3)])
    with served(desk) as url:
        context = chromium.new_context(base_url=url, **PHONE)
        page = context.new_page()
        page.goto("/label")
        page.get_by_role("button", name="response 3 up").tap()
        page.get_by_role("button", name="response 1 down").tap()
        assert order(page) == ["3", "1", "2"]
        page.get_by_role("button", name="response 1 as good").tap()
        page.get_by_role("button", name="response 1 as good").tap()  # and not
        page.wait_for_timeout(DOUBLE)
        page.get_by_role("button", name="Send the ranking").tap()
        expect(page.get_by_role("heading", name="All done")).to_be_visible()
        context.close()
    ((_, label),) = labels(desk.store)
    at = label.order
    assert label.judgement.ranking == ((at[2],), (at[0],), (at[1],))


def order(page: Page) -> list[str]:
    """The responses as they stand."""
    return page.locator(".ranking h2").all_inner_texts()


def drag(page: Page, what: str, to: str, *, above: bool) -> None:
    """By the handle, in steps as a hand does."""
    grips = {name: page.locator(f".ranking li:has(h2:text-is('{name}'))") for name in (what, to)}
    start, end = grips[what].locator(".grip").bounding_box(), grips[to].bounding_box()
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    page.mouse.move(start["x"] + 5, end["y"] + (2 if above else end["height"] - 2), steps=12)
    page.mouse.up()


def test_it_works_without_scripts(chromium: Browser, desk: Desk) -> None:
    """Forms and their buttons; the keyboard walks by Tab."""
    desk.store.add_items([*pairs(3), ranking(3)])
    with served(desk) as url:
        context = chromium.new_context(base_url=url, java_script_enabled=False)
        page = context.new_page()
        page.goto("/label")
        with page.expect_navigation():  # the address is the same before and after
            page.get_by_role("button", name="First").click()
        assert page.url == f"{url}/label"
        page.reload()
        page.get_by_label("Note").fill("by hand")
        page.get_by_label("Something is wrong").check()
        page.get_by_role("button", name="Tie").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Skip").click()
        assert page.locator(".moves").first.is_hidden()
        for shown, place in enumerate("213", 1):
            page.get_by_label(f"place of response {shown}").select_option(place)
        page.get_by_role("button", name="Send").click()
        page.get_by_role("button", name="Undo").click()
        for shown, place in enumerate("112", 1):
            page.get_by_label(f"place of response {shown}").select_option(place)
        page.get_by_role("button", name="Send").click()
        assert page.get_by_text("All done").is_visible()
        context.close()
    said = [label.judgement for _, label in labels(desk.store)]
    assert [len(each.ranking) for each in said] == [2, 1, 0, 2]
    assert (said[1].note, said[1].flags) == ("by hand", ("flagged",))
    at = labels(desk.store)[-1][1].order
    assert said[3].ranking == (tuple(sorted(at[:2])), (at[2],))


def test_two_tabs_of_one_annotator(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(3))
    other = page.context.new_page()
    page.goto("/label")
    other.goto("/label")
    assert number(page) == number(other) == "1"
    press(page, "1")
    press(other, "2")
    expect(other.get_by_role("alert").filter(has_text="answered that card before")).to_be_visible()
    assert number(other) == "2"
    press(other, "1")
    assert [label.item for _, label in labels(desk.store)] == [1, 2]
    assert len(list(desk.store.export(history=True))) == 2


def test_a_reload_in_the_middle_shows_the_same_card(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(3))
    page.goto("/label")
    press(page, "1")
    seen = page.locator(".said .words").all_inner_texts()
    page.reload()
    assert (number(page), page.locator(".said .words").all_inner_texts()) == ("2", seen)


def test_a_lost_connection_is_told_and_the_click_is_sent_again(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(3))
    page.goto("/label")
    page.context.set_offline(True)
    page.keyboard.press("1")
    expect(page.locator("#wire")).to_contain_text("No connection")
    page.keyboard.press("2")  # what is on its way stays
    assert labels(desk.store) == []
    page.context.set_offline(False)
    expect(page.locator("#answer [name=item]")).to_have_value("2")
    expect(page.locator("#wire")).to_be_hidden()
    ((_, label),) = labels(desk.store)
    assert label.judgement.ranking == ((label.order[0],), (label.order[1],))


def test_an_answer_that_was_stored_but_not_heard_is_stored_once(page: Page, desk: Desk) -> None:
    """The first response is lost on the way back, the second is a server in trouble, the third arrives."""
    desk.store.add_items(pairs(3))
    page.goto("/label")
    seen: list[str] = []

    def lossy(route: Route) -> None:
        seen.append(str(route.request.post_data))
        if len(seen) == 1:
            route.fetch()
            route.abort()
        elif len(seen) == 2:
            route.fulfill(status=503, body="later")
        else:
            route.continue_()

    page.route("**/label/answer", lossy)
    page.keyboard.press("1")
    expect(page.locator("#answer [name=item]")).to_have_value("2")
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert len(list(desk.store.export(history=True))) == 1


def test_a_tab_that_closed_without_a_connection_sends_when_it_opens_again(page: Page, desk: Desk) -> None:
    desk.store.add_items(pairs(3))
    page.goto("/label")
    page.context.set_offline(True)
    page.keyboard.press("2")
    expect(page.locator("#wire")).to_contain_text("kept")
    context = page.context
    page.close()
    context.set_offline(False)
    again = context.new_page()
    again.goto("/label")
    expect(again.locator("#answer [name=item]")).to_have_value("2")
    assert len(labels(desk.store)) == 1


def test_long_texts_scroll_inside_and_the_buttons_stay_in_reach(chromium: Browser, desk: Desk) -> None:
    words = "The harbour wakes slowly. " * 800
    wide = "def f():\n    return 1\n" + "x" * 3000 + " = 1;\n"
    desk.store.add_items([Item(words, (words, f"```\n{wide}\n```")), *pairs(1)])
    with served(desk) as url:
        for size in ({"viewport": {"width": 1300, "height": 800}}, PHONE):
            context = chromium.new_context(base_url=url, **size)
            page = context.new_page()
            page.goto("/label")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            button = page.get_by_role("button", name="Second")
            expect(button).to_be_in_viewport()
            page.mouse.wheel(0, 300)
            expect(button).to_be_in_viewport()
            tall = page.locator(".said .words").first.bounding_box()
            assert tall is not None
            assert tall["height"] < page.viewport_size["height"]  # type: ignore[index]
            context.close()


def test_right_to_left_text_and_code_have_their_own_ways(page: Page, desk: Desk) -> None:
    code = "Here:\n```python\nif x:\n    y = 1\n```"
    desk.store.add_items([Item("ما هو؟", ("طائر (كبير)", code))])
    page.goto("/label")
    arabic = page.locator(".text", has_text="طائر")
    assert arabic.evaluate("e => getComputedStyle(e).direction") == "rtl"
    pre = page.locator("pre")
    assert pre.inner_text().rstrip("\n") == "if x:\n    y = 1"
    assert "mono" in pre.locator("code").evaluate("e => getComputedStyle(e).fontFamily").lower()
