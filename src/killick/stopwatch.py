"""Where a process spends its time: each lap charges what has passed since the one before to a part.

There is one for each process, as there is one CPU clock; nothing that is computed depends on it, and no second of it
reaches a ledger.
"""

import time
from typing import NamedTuple


class Seconds(NamedTuple):
    """CPU seconds of this process, and seconds on the wall."""

    cpu: float
    wall: float


NONE = Seconds(0, 0)


def moment() -> Seconds:
    """Both clocks, now."""
    return Seconds(time.process_time(), time.monotonic())


class Stopwatch:
    """Seconds by part. Every moment belongs to exactly one part, so the parts add up to the time since the start.

    On a GPU, work is charged to the part that first waits for its result.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Forget everything; time counts from here."""
        self.spent: dict[str, Seconds] = {}
        self.last = moment()

    def lap(self, part: str) -> None:
        """Charge the time since the last lap (or the start) to a part."""
        now, before = moment(), self.spent.get(part, NONE)
        self.spent[part] = Seconds(before.cpu + now.cpu - self.last.cpu, before.wall + now.wall - self.last.wall)
        self.last = now

    def take(self) -> dict[str, Seconds]:
        """What was charged since the start or the last take, by part in order of appearance."""
        taken, self.spent = self.spent, {}
        return taken


stopwatch = Stopwatch()
"""This process's own."""
