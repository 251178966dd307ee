"""A real `killick serve` on a free port, as a user starts it."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Server(NamedTuple):
    """A process, its port, and what it said when it began."""

    process: "subprocess.Popen[str]"
    port: int
    greeting: str


@contextmanager
def served(*words: str) -> Iterator[Server]:
    """A server, once it answers; asked to stop at the end."""
    command = [sys.executable, "-m", "killick", "serve", "--port", "0", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        greeting = "".join(process.stdout.readline() for _ in range(5 if "--labels" in words else 4))
        port = int(greeting.splitlines()[0].split(":")[-1].strip("/"))
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        line.request("GET", "/healthz")
        assert line.getresponse().read() == b'{"status":"ok"}'
        line.close()
        yield Server(process, port, greeting)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
