"""Who may do what: strangers, annotators, the owner, and one alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desks import alone, client, fields
from killick.cli import label_page
from killick.preferences.store import Store
from killick.web.people import COOKIE, LOGIN, OWNER, PART, Desk
from stores import pairs


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "labels.db") as opened:
        opened.add_items(pairs(3))
        yield opened


def test_a_stranger_is_sent_to_the_login(store: Store) -> None:
    store.add_annotator("ada")
    web = client(Desk(store))
    for path in ("/label", "/label/owner", "/label/export.jsonl"):
        said = web.get(path)
        assert (said.status_code, said.headers["location"]) == (303, LOGIN)
    for path in ("/label/answer", "/label/undo"):
        data = {"item": "1", "key": "k", "digest": "d", "choice": "1"}
        assert web.post(path, data=data).headers["location"] == LOGIN
        assert web.post(path, data=data, headers={PART: "card"}).status_code == 401
    web.cookies.set(COOKIE, "guessed", path="/label")
    assert web.get("/label").status_code == 303


def test_the_right_token_opens_and_the_wrong_one_does_not(store: Store) -> None:
    token = store.add_annotator("ada")
    web = client(Desk(store))
    for wrong in ("", "x", token[:-1], token + "x", "' OR 1=1 --", "\ud83d"):
        assert web.post(LOGIN, data={"token": wrong.encode("utf-8", "replace").decode()}).status_code == 401
    said = web.post(LOGIN, data={"token": f" {token}\n"})  # as one pastes it
    assert (said.status_code, said.headers["location"]) == (303, "/label")
    kept = said.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert "path=/label" in kept
    assert "<bdi>ada</bdi>" in web.get("/label").text
    assert web.post("/label/logout").headers["location"] == LOGIN
    assert web.get("/label").status_code == 303


def test_a_renewed_token_ends_the_old_one(store: Store) -> None:
    web = client(Desk(store), store.add_annotator("ada"))
    store.renew_token("ada")
    assert web.get("/label").status_code == 303


def test_only_the_owner_sees_everybody(store: Store) -> None:
    ada, owner = (client(Desk(store), store.add_annotator(name)) for name in ("ada", OWNER))
    assert ada.get("/label/owner").status_code == 403
    assert ada.get("/label/export.jsonl").status_code == 403
    assert "Everybody" not in ada.get("/label").text
    assert owner.get("/label/owner").status_code == 200
    assert owner.get("/label/export.jsonl").status_code == 200
    # A name that only looks like the owner's is another name.
    assert client(Desk(store), store.add_annotator("Owner")).get("/label/owner").status_code == 403


def test_one_alone_owns_the_store_and_needs_no_token(store: Store) -> None:
    web = client(Desk(store, alone=alone(store)))
    assert web.get("/label").status_code == 200
    assert web.get("/label/owner").status_code == 200
    assert "Log out" not in web.get("/label").text


def test_a_token_counts_before_one_alone(store: Store) -> None:
    """Somebody joins while the page runs alone: her labels are hers, and she owns nothing."""
    desk = Desk(store, alone=alone(store))
    web = client(desk, store.add_annotator("zoe"))
    page = web.get("/label")
    assert "<bdi>zoe</bdi>" in page.text
    assert "Log out" in page.text
    web.post("/label/answer", data={**fields(page), "choice": "1"})
    assert [label.annotator for _, label in store.export()] == ["zoe"]
    assert web.get("/label/owner").status_code == web.get("/label/export.jsonl").status_code == 403
    web.post("/label/logout")
    assert "<bdi>me</bdi>" in web.get("/label").text
    assert client(desk, store.add_annotator(OWNER)).get("/label/owner").status_code == 200
    web.cookies.set(COOKIE, "of-another-store", path="/label")  # cookies know no port
    assert "<bdi>me</bdi>" in web.get("/label").text


def test_a_card_of_one_is_not_answered_by_another(store: Store) -> None:
    """A tab stays open while somebody else logs in: the responses stand in another order for each."""
    desk = Desk(store, alone=alone(store))
    web = client(desk)
    left_open = fields(web.get("/label"))
    web.post(LOGIN, data={"token": store.add_annotator("zoe")})
    said = web.post("/label/answer", data={**left_open, "choice": "1"})
    assert said.status_code == 400
    assert "here is one for zoe" in said.text
    assert list(store.export()) == []


def test_a_cookie_over_tls_stays_there(store: Store) -> None:
    token = store.add_annotator("ada")
    web = client(Desk(store))
    web.base_url = "https://127.0.0.1:8000"
    assert "secure" in web.post(LOGIN, data={"token": token}).headers["set-cookie"].lower()


def test_the_command_and_the_page_agree_on_names() -> None:
    assert (label_page.OWNER, label_page.LOGIN) == (OWNER, LOGIN)
