"""How far each annotator is, counted anew only now and then: the store's count walks over every open item."""

import time
from dataclasses import replace

from killick.preferences.store import Annotator, Outcome, Progress, Store

AGE = 2.0
"""Seconds that a count is kept up by hand."""
FEW = 5
"""Below so many labels every count is the store's own: the first pace would be stale at once."""


class Tally:
    """Progress by annotator.

    Args:
        store: what counts.
    """

    def __init__(self, store: Store):
        self._store = store
        self._seen: dict[int, tuple[float, Progress]] = {}

    def progress(self, annotator: Annotator) -> Progress:
        """As the store has it, or as it was at most two seconds ago with what came since."""
        at, seen = self._seen.get(annotator.id, (0.0, None))
        now = time.monotonic()
        if seen is None or now - at > AGE or seen.done < FEW or not seen.left:
            at, seen = now, self._store.progress(annotator)
            self._seen[annotator.id] = at, seen
        return seen

    def add(self, annotator: Annotator, outcome: Outcome) -> None:
        """One label more, if it is a new one."""
        at, seen = self._seen.get(annotator.id, (0.0, None))
        if seen is not None and outcome.status == "new":
            left, skip = max(0, seen.left - 1), int(outcome.label.judgement.skipped)
            seconds = left * 60 / seen.pace if seen.pace else None
            now = replace(seen, done=seen.done + 1, left=left, skipped=seen.skipped + skip, seconds_left=seconds)
            self._seen[annotator.id] = at, now

    def forget(self, annotator: Annotator) -> None:
        """Count anew: a label was taken back."""
        self._seen.pop(annotator.id, None)
