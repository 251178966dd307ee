"""A process that starts labellers to be killed: it has killick loaded and forks them, so that one costs little.

A line {"place", "log", "threads"} starts one and answers its number; every label that the store acknowledged is a line
of the log. {"wait"} answers how it ended.
"""

import json
import os
import sys
import threading
from typing import Any

from killick.preferences.store import Judgement, Store

ACKNOWLEDGED = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def label(store: Store, who: int, log: int) -> None:
    """Label what comes, until killed; rankings among it, with ties, in an order that depends on item and annotator."""
    me = store.annotators()[who]
    while (card := store.next_card(me)) is not None:
        number = card.item.id or 0
        order = sorted(range(len(card.item.candidates)), key=lambda n: (n * 7 + number + who) % 5)
        ranking = tuple((n,) for n in order) if number % 3 else (tuple(order[:-1]), (order[-1],))
        stored = store.label(me, number, judgement=Judgement(ranking, 1.0), key=f"{number}").label
        line = json.dumps([number, stored.annotator, stored.judgement.ranking])
        os.write(log, f"{line}\n".encode())  # one write, to the kernel: it outlives the process


def launch(asked: dict[str, Any]) -> int:
    """Fork a labeller."""
    child = os.fork()
    if child:
        return child
    log = os.open(asked["log"], ACKNOWLEDGED)
    store = Store(asked["place"], reserve=0.0)  # whoever is killed must not keep cards
    threads = [threading.Thread(target=label, args=(store, who, log)) for who in range(asked["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)


if __name__ == "__main__":
    print("ready", flush=True)
    for text in sys.stdin:
        order = json.loads(text)
        answer = os.waitpid(order["wait"], 0)[1] if "wait" in order else launch(order)
        print(json.dumps(answer), flush=True)
