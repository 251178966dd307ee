"""`killick serve` as a user starts it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from commands import Command, command

killick = pytest.fixture(command)


def test_it_answers_until_it_is_stopped() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "killick", "serve", "--port", str(port)], stdout=subprocess.PIPE)
    try:
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as said:
                    assert said.read() == b'{"status":"ok"}'
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail("the server never answered")
    finally:
        os.kill(server.pid, signal.SIGINT)
        out, _ = server.communicate(timeout=20)
    assert f"http://127.0.0.1:{port}" in out.decode()


@pytest.mark.parametrize(
    ("words", "part"),
    [(["--port", "99999"], "0..65535"), (["--host", "0.0.0.0"], "not the loopback"), (["--prot", "1"], "--port")],
)
def test_where_it_cannot_listen_is_one_sentence(killick: Command, words: list[str], part: str) -> None:
    said = killick("serve", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1
