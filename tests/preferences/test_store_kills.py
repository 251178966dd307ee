"""kill -9 under write load: no acknowledged label is lost, no ranking is partial, and the store is ready at once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from killick.preferences.store import Item, Store
from killick.preferences.storing.tables import items
from stores import join, place

__all__ = ["place"]

THREADS = 4
READY = 3.0
"""Seconds within which a store must take labels again."""


class Labellers:
    """Processes that label, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).parent.parent / "store_labeller.py")]
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout
        assert self.server.stdout.readline() == "ready\n"

    def ask(self, **asked: Any) -> int:
        assert self.server.stdin
        assert self.server.stdout
        print(json.dumps(asked), file=self.server.stdin, flush=True)
        return int(json.loads(self.server.stdout.readline()))


@pytest.fixture(scope="module")
def labellers() -> Iterator[Labellers]:
    found = Labellers()
    yield found
    found.server.communicate()


def lines(log: Path) -> list[Any]:
    """What was acknowledged."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def kill_one(labellers: Labellers, place: str, log: Path, *, after: float) -> None:
    """Start a labeller, let it label for a while, kill it."""
    before = len(lines(log))
    child = labellers.ask(place=place, log=str(log), threads=THREADS)
    deadline = time.monotonic() + 60
    while len(lines(log)) == before:
        assert time.monotonic() < deadline, "the labeller never began"
        time.sleep(0.002)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    assert labellers.ask(wait=child) == signal.SIGKILL


def examine(place: str, log: Path, *, kills: int) -> None:
    """Everything acknowledged is there; every ranking is whole; counts agree; the store takes labels again."""
    began = time.monotonic()
    with Store(place) as store:
        store.set_guidelines(f"after {time.time()}")  # a write
        ready = time.monotonic() - began
        kept = {(item.id, label.annotator): (item, label) for item, label in store.export(history=True)}
        acknowledged = lines(log)
        for number, annotator, ranking in acknowledged:
            stored = kept[number, annotator][1].judgement.ranking
            assert [list(group) for group in stored] == ranking
        for item, label in kept.values():
            named = sorted(number for group in label.judgement.ranking for number in group)
            assert named == list(range(len(item.candidates)))
            assert sorted(label.order) == named
        # Of each thread, at most one label was on its way when its process died.
        assert len(acknowledged) <= len(kept) <= len(acknowledged) + THREADS * kills
        with store._engine.connect() as connection:
            assert connection.scalar(select(func.sum(items.c.done))) == len(kept)
        assert store.progress().done == len(kept)
    assert ready < READY


def survive(labellers: Labellers, place: str, log: Path, *, kills: int) -> None:
    """Kill so often, and look after each."""
    draw = random.Random(kills)
    asked = [Item(f"p{n}", ("a", "b", "c", "d")[: 2 + n % 3], kind="ranking") for n in range(150 * kills)]
    with Store(place) as store:
        store.add_items(asked, overlap=THREADS)
        for number in range(THREADS):
            join(store, f"annotator {number}")
    for kill in range(kills):
        kill_one(labellers, place, log, after=draw.uniform(0, 0.25))
        examine(place, log, kills=kill + 1)
    assert len(lines(log)) >= kills


def test_fifteen_kills_lose_nothing(place: str, labellers: Labellers, tmp_path: Path) -> None:
    survive(labellers, place, tmp_path / "log", kills=15 if "://" not in place else 5)


@pytest.mark.slow
def test_sixty_kills_lose_nothing(place: str, labellers: Labellers, tmp_path: Path) -> None:
    survive(labellers, place, tmp_path / "log", kills=60)
