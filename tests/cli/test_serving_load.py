"""A server that others use for real: a learner's script, and many clients at once."""

import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server import Server, served

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "practice.py"
CLIENTS, QUESTIONS, ITEMS = 20, 10, 40
COPY = (
    "Meet the Kestrel rain jacket , built for coastal walks . It has taped seams and storm flaps . Good nylon gives it "
    "strength . Care tip : Wash it cold . It costs 149 euros . We repair it free for life ."
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with served() as found:
        yield found


def test_a_learners_script_runs_against_it(server: Server) -> None:
    """Only the host is given; the loss falls, most pairs are told apart, and choosing never beats the best of four."""
    command = [sys.executable, str(EXAMPLE), f"http://127.0.0.1:{server.port}", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    pairs, right, held = map(int, re.findall(r"(\d+) pairs; right about (\d+)% of (\d+) held-out", done.stdout)[0])
    assert 200 <= pairs <= 360
    assert 30 <= held <= 72
    assert right > 50  # the source has 69
    first, chosen, best = map(float, re.findall(r"first ([0-9.]+), .* 4 ([0-9.]+), .* ([0-9.]+)$", done.stdout)[0])
    assert 0 <= best <= min(first, chosen)


def ask(port: int, start: threading.Barrier) -> list[tuple[int, list[int]]]:
    """One client with one connection: the status and the numbers of flaws, question after question."""
    line, found = http.client.HTTPConnection("127.0.0.1", port, timeout=120), []
    items = [{"product": "Kestrel rain jacket", "text": COPY}, {"product": "Kestrel rain jacket", "text": "wool, wool"}]
    body = json.dumps({"items": items * (ITEMS // 2)})
    start.wait(60)
    for _ in range(QUESTIONS):
        line.request("POST", "/v1/brand-check", body, {"content-type": "application/json"})
        said = line.getresponse()
        found.append((said.status, [len(one["flaws"]) for one in json.loads(said.read())["results"]]))
    line.close()
    return found


def test_twenty_clients_at_once_are_all_answered_rightly_and_cheaply(server: Server) -> None:
    """8,000 texts. Bound in CPU seconds of the server, which another program on the machine does not move much.

    2,000 texts a CPU second would be 4 s; measured under 1 s (benchmarks/serve.py has the figures on the wall).
    """
    before, start = cpu_seconds(server), threading.Barrier(CLIENTS)
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(ask, server.port, start) for _ in range(CLIENTS)]
        found = [client.result() for client in clients]
    assert found == [[(200, [0, 4] * (ITEMS // 2))] * QUESTIONS] * CLIENTS
    assert cpu_seconds(server) - before < CLIENTS * QUESTIONS * ITEMS / 2000


def cpu_seconds(server: Server) -> float:
    """What the process has used, by `ps` ([[hours:]minutes:]seconds)."""
    used = subprocess.run(
        ["ps", "-o", "time=", "-p", str(server.process.pid)], capture_output=True, text=True, check=True
    )
    return sum(float(part) * 60**place for place, part in enumerate(reversed(used.stdout.strip().split(":"))))
