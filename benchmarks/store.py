"""How many labels a store takes: clients as threads of one process, each card handed out, each label on the disk.

Prints labels a second, and the median and 95th percentile of the time that one label took, with every commit synced.
Twice: as the store does it, many labels a commit; and with one commit for each label.

    python benchmarks/store.py --clients 20 --labels 100
    python benchmarks/store.py --store postgresql://user@host/database
"""

import argparse
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from killick.preferences.store import Annotator, Item, Judgement, Store
from killick.preferences.storing import writer as store_writer


class Measured(NamedTuple):
    """Labels a second, and milliseconds per label: median and 95th percentile."""

    rate: float
    middle: float
    p95: float


def measure(place: str, *, clients: int, labels: int, cards: bool = True) -> Measured:
    """Let so many clients give so many labels each, as fast as they can."""
    run = uuid.uuid4().hex[:8]
    with Store(place) as store:
        people = [join(store, f"{run}-{n}") for n in range(clients)]
        store.add_items((Item(f"{run} {n}", ("a" * 200, "b" * 200)) for n in range(labels * 2)), overlap=clients)
        first = next(card.item.id for card in [store.next_card(people[0])] if card) or 1

        def client(n: int) -> list[float]:
            took = []
            for step in range(labels):
                card = store.next_card(people[n]) if cards else None
                item = card.item.id if card and card.item.id else first + step
                began = time.perf_counter()
                store.label(people[n], item, judgement=Judgement(((0,), (1,)), 1.0), key=f"{item}")
                took.append(1000 * (time.perf_counter() - began))
            return took

        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            took = [one for each in pool.map(client, range(clients)) for one in each]
            spent = time.perf_counter() - began
    return Measured(len(took) / spent, median(took), quantiles(took, n=20)[-1])


def join(store: Store, name: str) -> Annotator:
    """A new annotator."""
    found = store.annotator(store.add_annotator(name))
    assert found
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--labels", type=int, default=100, help="of each client")
    parser.add_argument("--store", default="", help="a URL or a file; otherwise a file in this folder, removed after")
    given = parser.parse_args()
    print(f"{given.clients} clients, {given.labels} labels each   labels/s   median ms   p95 ms")
    with tempfile.TemporaryDirectory(dir=".") as folder:  # a real disk: the system's own may be memory
        for about, gather in (("many labels a commit", store_writer.GATHER), ("one label a commit", 1)):
            for cards in (True, False):
                store_writer.GATHER = gather
                place = given.store or str(Path(folder) / f"{gather}{cards}.db")
                seen = measure(place, clients=given.clients, labels=given.labels, cards=cards)
                words = f"{about}{', a card before each' if cards else ''}"
                print(f"{words:<43}{seen.rate:>6.0f}{seen.middle:>12.1f}{seen.p95:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
