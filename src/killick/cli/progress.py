"""How a long piece of work goes, on a line: what is done, and the time left."""

import sys
import time
from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")

EVERY = 10.0
"""Seconds between two lines where nobody looks at a terminal."""


class Watch:
    """Shows progress: a line that is redrawn on a terminal, a line every ten seconds elsewhere (O-55)."""

    def __init__(self) -> None:
        self.what, self.began, self.first, self.shown = "", 0.0, 0, 0.0
        self.open = False

    def progress(self, what: str, done: int, *, total: int) -> None:
        """Take up how far it is."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.began, self.first, self.shown = what, now, done, now
        terminal = sys.stdout.isatty()
        if not (done == total or now - self.shown >= (0.2 if terminal else EVERY)):
            return
        if done == total and not self.open and not terminal:
            return  # it was over before a line was worth its while
        self.shown = now
        text = f"{what}: {done:,} of {total:,}{self.left(now, done, total=total)}"
        if terminal:
            print(f"\r\x1b[K{text}", end="" if done < total else "\n", flush=True)
        else:
            print(text, flush=True)
        self.open = done < total

    def left(self, now: float, done: int, *, total: int) -> str:
        """Time left at the rate so far."""
        if done >= total or done <= self.first:
            return ""
        seconds = (now - self.began) / (done - self.first) * (total - done)
        return f", {seconds:.0f} s left" if seconds < 120 else f", {seconds / 60:.0f} min left"

    def say(self, text: str) -> None:
        """A sentence between."""
        if self.open and sys.stdout.isatty():
            print()
        self.open = False
        print(text, flush=True)


def watched(work: Generator[Any, None, Result]) -> Result:
    """Run a piece of work to its end, showing how it goes."""
    from killick.recipes.ledger import Note

    watch = Watch()
    while True:
        try:
            event = next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
        if isinstance(event, Note):
            watch.say(event.text)
        else:
            watch.progress(event.what, event.done, total=event.total)
