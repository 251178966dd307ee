"""`killick serve` as a user starts it."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from commands import Command, command
from killick.cli.serving import app
from killick.preferences.store import Item, Store
from llamas import llama_folder
from recipes.scores.test_loading import judge_folder
from server import served

killick = pytest.fixture(command)


def test_it_says_where_it_is_answers_and_ends_at_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is the ordinary end: status 0, no traceback, at once even while it samples for somebody."""
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path))  # so that the pairs are not at hand
    with served() as server:
        url = f"http://127.0.0.1:{server.port}"
        assert f"curl '{url}/v1/preferences?limit=2'" in server.greeting
        with urllib.request.urlopen(f"{url}/v1/models", timeout=60) as said:
            assert b"tiny-gpt-chat" in said.read()
        with socket.create_connection(("127.0.0.1", server.port)) as busy:
            busy.sendall(b"GET /v1/preferences HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            time.sleep(0.5)
            server.process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            out, errors = server.process.communicate(timeout=60)
            assert time.monotonic() - begun < 10  # measured 1.1 s
        assert server.process.returncode == 0
        assert (out.strip(), errors) == ("Stopped.", "")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--port", "99999"], "0..65535"),
        (["--host", "0.0.0.0"], "not the loopback"),
        (["--prot", "1"], "--port"),
        (["--labels", "none.db"], "There is no store none.db"),
        (["--reward", "none"], "There is no model folder none"),
        (["--model", "none"], "none is no folder of a causal language model"),
        (["--reward", "reviewer"], "the name 'reviewer' is not to be had"),
    ],
)
def test_where_it_cannot_listen_is_one_sentence(killick: Command, words: list[str], part: str) -> None:
    said = killick("serve", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1


def test_a_port_that_is_taken_is_told_with_another(killick: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = killick("serve", "--port", str(port))
    assert said.status == 2
    assert f"Port {port} of 127.0.0.1 cannot be had (address already in use); give another" in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("missing", ["uvicorn", "fastapi"])
def test_a_missing_extra_is_named(missing: str) -> None:
    """In a process of its own, since modules are imported once."""
    program = f"import sys; sys.modules[{missing!r}] = None; from killick.cli import main; main(['serve'])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert said.returncode == 2
    assert f"needs {missing}, which is missing: pip install 'killick[web]'" in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_it_serves_the_labelling_page_of_a_store_too(tmp_path: Path) -> None:
    """Beside the rest, on the index as well; whoever calls this machine by another name is not answered."""
    with Store(tmp_path / "labels.db") as store:
        store.add_items([Item("Describe a kestrel .", ("A small falcon .", "A bird ."), kind="pair")])
    with served("--labels", str(tmp_path / "labels.db")) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert f"Label   {url}/label" in server.greeting
        with urllib.request.urlopen(f"{url}/label", timeout=60) as page:
            assert b"A small falcon ." in page.read()
        with urllib.request.urlopen(f"{url}/", timeout=60) as page:
            index = page.read()
            assert b'href="/label"' in index
            assert b'href="/leash"' in index
        asked = urllib.request.Request(f"{url}/label", headers={"Host": "elsewhere.example"})
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(asked, timeout=60)


def test_help_teaches(killick: Command) -> None:
    said = killick("serve", "--help")
    assert said.status == 0
    for part in ("--port", "practice API", "TestClient", "loopback", "--labels"):
        assert part in said.out


def test_the_app_can_be_called_without_a_port() -> None:
    client = TestClient(app(), base_url="http://127.0.0.1:8000")
    item = {"product": "Kestrel rain jacket", "text": "The Kestrel rain jacket . Repairs are free ."}
    assert client.post("/v1/brand-check", json={"items": [item]}).json() == {"results": [{"flaws": []}]}


def test_best_of_takes_ones_own_reward_folder_from_a_server_as_from_the_disk(killick: Command, tmp_path: Path) -> None:
    """O-09: the same answers, the same numbers; the greeting says what to give as --reward or --gold."""
    judge_folder(tmp_path / "judge")
    rows = "prompt,response\n" + "".join(f"Say {word}.,{word * n}\n" for word in ("ho", "ha") for n in range(3))
    (tmp_path / "mails.csv").write_text(rows, encoding="utf-8")
    with served("--reward", str(tmp_path / "judge"), "--model", str(llama_folder(tmp_path / "mine"))) as server:
        assert server.process.stdout is not None
        url = f"http://127.0.0.1:{server.port}?model=judge"
        assert url in server.greeting + server.process.stdout.readline()
        chosen = killick("best-of", "--candidates", "mails.csv", "--reward", "judge", "--gold", url, "--out", "kept")
    assert chosen.status == 0
    for line in (tmp_path / "kept" / "winners.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert row["gold"] == pytest.approx(row["reward"], abs=1e-6)
