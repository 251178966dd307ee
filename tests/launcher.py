"""A server that has torch and killick loaded and forks the command, so that a test may start it a hundred times.

One JSON object a line: {"words", "log"} starts `killick words` in a group of its own and answers its number; with
"pause" every step of a cell takes so many seconds longer. {"wait", "seconds"} answers how the process ended, or null.
Modules named on the command line are imported before the first command.

Nothing draws: pictures are drawn from a folder that is whole by then, and other tests hold their bytes.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from killick import cli
from killick.cli import runs
from killick.recipes import pool, running
from killick.recipes.arithmetic import recipe as arithmetic
from killick.report import drawing

torch.set_num_threads(1)
assert arithmetic
steps = running.run_cell
setattr(drawing, "draw", lambda *_, **__: [])  # noqa: B010


def launch(asked: dict[str, Any]) -> int:
    """Fork the command; its outputs go to log.out and log.err."""
    child = os.fork()
    if child:
        os.setpgid(child, child)
        return child
    status = 1
    try:
        os.setpgid(0, 0)
        for number, kind in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{asked['log']}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.update(asked.get("environment", {}))
        if "pause" in asked:
            slow = lambda *given, **named: slowly(asked["pause"], steps(*given, **named))  # noqa: E731
            setattr(pool, "run_cell", slow)  # noqa: B010
        cli.main(asked["words"])
        status = 0
    except SystemExit as stop:
        status = int(str(stop.code or 0))
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def slowly(pause: float, loop: Any) -> Iterator[Any]:
    """The same events with rests between them."""
    with closing(loop):
        for event in loop:
            yield event
            time.sleep(pause)


def ended(child: int, seconds: float) -> int | None:
    """Its status once it has ended; None if it has not by then."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.005)


def drawn(folder: Path, *, show: bool) -> list[dict[str, Any]]:
    """Instead of the report, which costs more than the run: figures have tests of their own."""
    print(f"Drawn: {folder}")
    return []


def serve() -> None:
    """Answer line by line until there are no more."""
    for name in sys.argv[1:]:
        import_module(name)
    runs.finish = drawn
    running.EVERY = 4
    print("ready", flush=True)
    for text in sys.stdin:
        asked = json.loads(text)
        answer = ended(asked["wait"], asked["seconds"]) if "wait" in asked else launch(asked)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
