"""How many texts `killick serve` reviews: clients that ask at once, each again as soon as it is answered.

.venv/bin/python benchmarks/serve.py --clients 20 --items 20 --seconds 10
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

COPY = (
    "Meet the Kestrel rain jacket , built for coastal walks . It has taped seams and storm flaps . Good nylon gives it "
    "strength . Care tip : Wash it cold . It costs 149 euros . We repair it free for life ."
)


@dataclass(frozen=True)
class Seen:
    """What clients saw.

    Args:
        seconds: on the wall, from the first question to the last answer.
        waits: seconds of each question.
        wrong: questions without a right answer.
        items: texts reviewed.
    """

    seconds: float
    waits: list[float]
    wrong: int
    items: int

    def quantile(self, share: float) -> float:
        """Seconds within which this share of the questions was answered."""
        return sorted(self.waits)[min(len(self.waits) - 1, int(share * len(self.waits)))]


def ask(port: int, body: bytes, *, items: int, until: float) -> tuple[list[float], int]:
    """One client with one connection: how long each question took, and how many went wrong."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    waits, wrong = [], 0
    while time.monotonic() < until:
        begun = time.perf_counter()
        line.request("POST", "/v1/brand-check", body, {"content-type": "application/json"})
        said = line.getresponse()
        found = json.loads(said.read())
        waits.append(time.perf_counter() - begun)
        wrong += said.status != 200 or [len(one["flaws"]) for one in found["results"]] != [0] * items
    line.close()
    return waits, wrong


def load(port: int, *, clients: int, items: int, seconds: float) -> Seen:
    """All clients at once."""
    body = json.dumps({"items": [{"product": "Kestrel rain jacket", "text": COPY}] * items}).encode()
    begun = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        futures = [pool.submit(ask, port, body, items=items, until=begun + seconds) for _ in range(clients)]
        found = [future.result() for future in futures]
    waits = [wait for each, _ in found for wait in each]
    return Seen(time.monotonic() - begun, waits, sum(wrong for _, wrong in found), len(waits) * items)


def server() -> tuple["subprocess.Popen[str]", int]:
    """`killick serve` on a free port, once it answers."""
    command = [sys.executable, "-m", "killick", "serve", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(process.stdout.readline().split(":")[-1].strip("/\n"))
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", "/healthz")
    assert line.getresponse().status == 200
    line.close()
    return process, port


def main() -> None:
    """Start a server, load it, tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, value in (("clients", int, 20), ("items", int, 20), ("seconds", float, 10.0)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    given = parser.parse_args()
    process, port = server()
    try:
        load(port, clients=given.clients, items=given.items, seconds=1)
        seen = load(port, clients=given.clients, items=given.items, seconds=given.seconds)
    finally:
        process.send_signal(signal.SIGINT)
        _, _, used = os.wait4(process.pid, 0)
    rate = seen.items / seen.seconds
    print(f"{given.clients} clients, {given.items} texts a question: {rate:,.0f} texts a second, {seen.wrong} wrong")
    print(f"answered within: median {1e3 * seen.quantile(0.5):.0f} ms, p99 {1e3 * seen.quantile(0.99):.0f} ms")
    seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(f"server: {seconds:.1f} CPU s, {memory:.0f} MB; load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
