"""`killick models` as a user calls it."""

from dataclasses import replace

import pytest
import torch

from commands import Command, command
from killick.algorithms.sft import SFTConfig
from killick.models.chat import Chat
from killick.recipes import tiny_gpt_chat

killick = pytest.fixture(command)


def test_help_teaches_both_words(killick: Command) -> None:
    for words in ([], ["--help"], ["-h"]):
        said = killick("models", *words)
        assert said.status == 0
        assert "killick models list" in said.out
        assert "killick models make NAME --out DIR" in said.out
    assert "--out" in killick("models", "make", "--help").out


def test_list_says_what_there_is(killick: Command) -> None:
    said = killick("models", "list")
    assert said.status == 0
    assert "tiny-gpt-chat: 1.05 million parameters, 426 tokens" in said.out
    assert "killick models make brand-head --out DIR" in said.out


def test_make_trains_into_a_folder(killick: Command, tmp_path, monkeypatch) -> None:
    """The same path with a smaller network and fewer steps."""
    few = SFTConfig(steps=2, batch=4)
    small = replace(tiny_gpt_chat.Config(), reading=few, answering=few, hidden=16, layers=1, heads=2, feed_forward=24)
    monkeypatch.setattr(tiny_gpt_chat, "Config", lambda: small)
    threads = torch.get_num_threads()
    said = killick("models", "make", "tiny-gpt-chat", "--out", "made/here")
    torch.set_num_threads(threads)
    assert said.status == 0
    assert "reading, step 2 of 2" in said.out
    assert said.out.endswith("tiny-gpt-chat is in made/here.\n")
    assert Chat.load(tmp_path / "made" / "here").network.config.hidden == 16


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["mkae"], "no 'mkae' (did you mean make?)"),
        (["make", "tiny-gtp", "--out", "x"], "no model 'tiny-gtp' (did you mean tiny-gpt-chat?)"),
        (["make", "tiny-gpt-chat"], "out DIR"),
        (["make", "tiny-gpt-chat", "--uot", "x"], "out DIR"),
        (["make", "--out", "x"], "NAME"),
        (["list", "all"], "'all' is too much"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(killick: Command, words: list[str], part: str) -> None:
    said = killick("models", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_one_sentence(killick: Command, tmp_path, monkeypatch) -> None:
    few = SFTConfig(steps=1, batch=2)
    small = replace(tiny_gpt_chat.Config(), reading=few, answering=few, hidden=16, layers=1, heads=2, feed_forward=24)
    monkeypatch.setattr(tiny_gpt_chat, "Config", lambda: small)
    (tmp_path / "file").write_text("")
    said = killick("models", "make", "tiny-gpt-chat", "--out", "file")
    assert said.status == 2
    assert "--out file is no folder" in said.err
    assert "step" not in said.out
