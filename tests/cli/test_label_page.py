"""`killick label FILE` and `killick label --world` as a user gives them."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import pytest

from commands import Command, command
from desks import browser, next_card
from killick.cli import label_page
from killick.preferences.store import Store
from killick.recipes.labelling import (
    items as world_items,  # here: under the tests' checks of shapes it is too deep to import in a command
)

killick = pytest.fixture(command)
assert world_items
ROWS = [{"prompt": f"Name bird {n}.", "chosen": "A heron.", "rejected": f"A trout {n}."} for n in range(3)]


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    path = tmp_path / "birds.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


@contextmanager
def labelling(*words: str, folder: Path, code: str = "") -> Iterator[tuple[str, list[str]]]:
    """The command in a process of its own until Ctrl-C: the address that it prints, and what it says at its end."""
    run = [sys.executable, "-c", f"{code}\nfrom killick.cli import main; main()", "label", *words, "--port", "0"]
    server = subprocess.Popen(run, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None
    said, address = "", None
    while address is None:
        line = server.stdout.readline()
        assert line, said + (server.stderr.read() if server.stderr else "")
        said += line
        address = re.search(r"^(http://\S+)/label  ", line, re.M)
    told = list[str]()
    try:
        yield address[1], told
    finally:
        os.kill(server.pid, signal.SIGINT)
        told.append(server.communicate(timeout=20)[1])
        assert server.returncode == 130


def test_a_file_is_labelled_on_a_page_until_ctrl_c_and_goes_on(birds: Path) -> None:
    for _ in range(2):
        with (
            labelling("birds.jsonl", folder=birds.parent) as (url, told),
            urllib.request.urlopen(f"{url}/label") as page,
        ):
            assert "Name bird 0." in page.read().decode()
        assert "birds.jsonl.labels.db" in told[0]
    with Store(birds.with_name("birds.jsonl.labels.db")) as store:
        assert store.progress().left == 3
        assert [one.name for one in store.annotators()] == ["me"]


@pytest.fixture
def unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the serving."""
    monkeypatch.setattr(label_page, "answer", lambda *_: None)


@pytest.mark.usefixtures("unserved")
def test_guidelines_overlap_and_what_is_left_out(killick: Command, birds: Path) -> None:
    birds.write_text(birds.read_text() + json.dumps({"prompt": "p", "responses": ["a", "a"]}) + "\n{\n")
    Path("rules.md").write_text("# Be kind\n", encoding="utf-8")
    said = killick("label", "birds.jsonl", "--port", "0", "--overlap", "2", "--guidelines", "rules.md", "--skip-bad")
    assert said.status == 130
    assert "1 rows without two different responses left out" in said.out
    assert "1 bad rows left out" in said.out
    assert "3 new items, 0 known in birds" in said.out
    with Store("birds.jsonl.labels.db") as store:
        assert store.progress().left == 6
        assert store.guidelines() == (1, "# Be kind\n")
    again = killick("label", "birds.jsonl", "--port", "0", "--skip-bad").out
    assert "0 new items, 3 known, which keep their overlap, in birds.jsonl.labels.db\n" in again
    with Store("birds.jsonl.labels.db") as store:
        assert store.progress().left == 6
    again = killick("label", "birds.jsonl", "--port", "0", "--skip-bad", "--overlap", "3").out
    assert "0 new items, 3 known, each for 3 annotators now, in" in again
    with Store("birds.jsonl.labels.db") as store:
        assert store.progress().left == 9


def test_every_bad_row_is_told(killick: Command) -> None:
    rows = [{"prompt": "p", "responses": ["a", "b"]}, {"prompt": "p"}, {"prompt": "", "first": "a", "second": "b"}]
    Path("unjudged.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "[]\n")
    said = killick("label", "unjudged.jsonl", "--port", "0")
    starts = ["line 2, responses:", "line 3, prompt:", "line 4 "]
    for line, start in zip(said.out.splitlines(), starts, strict=True):
        assert line.startswith(start)
    assert said.err.count("\n") == 1
    assert "unjudged.jsonl: 3 bad rows" in said.err
    assert "--skip-bad" in said.err
    assert not Path("unjudged.jsonl.labels.db").exists()


@pytest.mark.usefixtures("unserved")
def test_a_team_brings_tokens_and_one_alone_does_not(killick: Command, birds: Path) -> None:
    assert "You label as me" in killick("label", "birds.jsonl", "--port", "0").out
    assert "You label as eve" in killick("label", "birds.jsonl", "--port", "0", "--annotator", "eve").out
    store = "birds.jsonl.labels.db"
    token = killick("label", "add-annotator", "ada", "--store", store).out
    assert "/label/login#" + token.split()[0] in token
    told = killick("label", "--store", store, "--port", "0").out
    assert "Each annotator brings a token; the store knows me, eve, ada." in told
    assert "add-annotator owner" in told
    killick("label", "add-annotator", "owner", "--store", store)
    assert "add-annotator" not in killick("label", "--store", store, "--port", "0").out
    assert "You label as me" in killick("label", "--store", store, "--port", "0", "--annotator", "me").out


@pytest.mark.usefixtures("unserved")
def test_another_address_needs_tokens_and_an_owner(killick: Command, birds: Path) -> None:
    words = ("label", "birds.jsonl", "--port", "0", "--host", "0.0.0.0")
    assert "named owner" in killick(*words).err
    assert list(birds.parent.iterdir()) == [birds]
    for name in ("ada", "owner"):
        refused = killick(*words)
        assert refused.status == 2
        assert "named owner" in refused.err
        killick("label", "add-annotator", name, "--store", "birds.jsonl.labels.db")
    assert "labels without a token" in killick(*words, "--annotator", "me").err
    told = killick(*words)
    assert told.status == 130
    assert "TLS" in told.out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["page"], "Name a FILE"),
        (["birds.jsonl", "--world", "arithmetic"], "not both"),
        (["nothing.jsonl"], "no file"),
        (["birds.txt"], "ends in"),
        (["--store", "none.db"], "no store none.db"),
        (["--world", "arithmetik"], "arithmetic, emphasis, answers"),
        (["--world", "answers", "--items", "0"], "at least 1 item"),
        (["birds.jsonl", "--port", "99999"], "0..65535"),
        (["birds.jsonl", "--overlap", "0"], "--overlap"),
        (["birds.jsonl", "--guidelines", "none.md"], "none.md cannot be read (no such file or directory)"),
        (["birds.jsonl", "--anotator", "x"], "--annotator"),
        (["birds.jsonl", "--annotator", "../x"], "letters, digits"),
        (["birds.jsonl", "--store", "birds.jsonl"], "store"),
        (["bird"], "killick label --help"),
    ],
)
def test_what_cannot_be_labelled_is_one_sentence(killick: Command, birds: Path, words: list[str], part: str) -> None:
    said = killick("label", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1
    assert list(birds.parent.iterdir()) == [birds]


def test_a_port_that_is_taken_is_told(killick: Command, birds: Path) -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        said = killick("label", "birds.jsonl", "--port", str(taken.getsockname()[1]))
    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert "give another" in said.err
    assert list(birds.parent.iterdir()) == [birds]


def test_help_teaches(killick: Command) -> None:
    assert "--world arithmetic" in killick("label", "--help").out
    page = killick("label", "page", "--help").out
    for flag in ("--overlap", "--guidelines", "--strength", "--annotator", "--host"):
        assert flag in page


SHORT = """
from dataclasses import replace
from killick.recipes.arithmetic import recipe as arithmetic
config = arithmetic.Config(device="cpu", sft_accuracy=0.0)
config = replace(config, sft=replace(config.sft, steps=20, batch=32))
arithmetic.Config = lambda **_: config
"""
"""A policy that has begun to learn sums: the path is the same, and much shorter."""


def test_from_a_world_through_a_person_to_a_reward_model(tmp_path: Path, killick: Command) -> None:
    """`killick label --world arithmetic`, a scripted annotator in Chromium, then `killick reward fit` on what is there.

    The annotator likes even digits and nothing else, which a weight for each digit can learn.
    """
    with (
        browser() as chromium,
        labelling("--world", "arithmetic", "--items", "100", folder=tmp_path, code=SHORT) as (url, _),
    ):
        page = chromium.new_page()
        page.goto(f"{url}/label")
        assert "even last digit" in page.locator("aside").inner_text()
        for _ in range(100):
            key = page.locator("[name=key]").first.get_attribute("value")
            first, second = map(liking, page.locator(".said .words").all_inner_texts())
            page.keyboard.press("1" if first > second else "2" if second > first else "=")
            next_card(page, key)
        assert page.get_by_role("heading", name="All done").is_visible()
    with Store(tmp_path / "arithmetic.labels.db") as store:
        said = list(store.export())
    assert len(said) == 100
    for item, label in said:
        likings = [liking(text) for text in item.candidates]
        best = [number for number in (0, 1) if likings[number] == max(likings)]
        assert sorted(label.judgement.ranking[0]) == best
    fitted = killick("reward", "fit", "--from-store", "arithmetic.labels.db", "--world", "arithmetic")
    assert fitted.status == 0, fitted.err
    assert "100 labels by me" in fitted.out
    assert float(re.findall(r"accuracy  ([\d.]+)", fitted.out)[0]) > 0.8
    assert "ceiling" in fitted.out


def liking(text: str) -> int:
    """Even digits less odd ones."""
    return sum(1 - 2 * (int(sign) % 2) for sign in text if sign.isdecimal())
