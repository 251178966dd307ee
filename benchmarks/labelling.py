"""Labels a second over HTTP: annotators that answer without a pause, against a server in a process of its own.

Each client is a thread with one connection kept open. It reads the next card from each response, as the page's script
does; a share of its answers is sent twice, as after a lost response. At the end the store is counted.
"""

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from killick.preferences.store import Item, Store

FIELD = re.compile(r'name="(item|digest|key|shown)" value="([^"]*)"')
SERVER = """
import sys
from killick.cli.label_page import BODY
from killick.cli.listening import LOOPBACK, answer, listening
from killick.preferences.store import Store
from killick.web.app import build
from killick.web.labelling import labelling
from killick.web.people import Desk
with Store(sys.argv[1]) as store, listening("127.0.0.1", 0) as door:
    print(door.getsockname()[1], flush=True)
    answer(build([labelling(Desk(store))], body=BODY, hosts=LOOPBACK), door)
"""


@dataclass
class Load:
    """What came of it.

    Attributes:
        began: when the first card was there, by the clock.
        ended: when the last answer was acknowledged.
        cpu: CPU seconds of the server, its start among them.
        sent: answers, second sendings among them.
        labels: different answers, each acknowledged.
        stored: labels in the store afterwards, of all revisions.
        times: seconds from sending an answer to having the next card.
        wrong: statuses that are no success, and connections that broke.
    """

    began: float = 0.0
    ended: float = 0.0
    cpu: float = 0.0
    sent: int = 0
    labels: int = 0
    stored: int = 0
    times: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """From the first card to the last answer."""
        return self.ended - self.began

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        return 1000 * statistics.quantiles(self.times, n=1000)[round(share * 1000) - 1]

    def __str__(self) -> str:
        return (
            f"{self.labels} labels in {self.seconds:.2f} s: {self.labels / self.seconds:.0f} a second; median "
            f"{self.percentile(0.5):.0f} ms, p95 {self.percentile(0.95):.0f} ms, p99 {self.percentile(0.99):.0f} ms; "
            f"{self.cpu:.1f} CPU s of the server; {self.sent} sent, {self.stored} stored, {len(self.wrong)} wrong"
        )


def annotate(
    port: int, token: str, *, count: int, twice: int, pause: float, start: threading.Barrier, load: Load
) -> None:
    """One annotator: answer so many cards, one each `pause` seconds, each `twice`-th sent again under the same key.

    A time runs from when the answer was due, so that a slow server cannot hide behind answers that it held up.
    """
    form = {"content-type": "application/x-www-form-urlencoded", "x-killick-part": "card"}
    cookie = {"cookie": f"killick-label={token}"}
    try:
        line = HTTPConnection("127.0.0.1", port, timeout=60)
        line.request("GET", "/label", headers=cookie)
        page = line.getresponse().read().decode()
        start.wait(60)  # everybody has a card
        load.began = time.perf_counter()
        due = load.began + pause * (hash(token) % 1000) / 1000
        for number in range(count):
            due = max(due + pause, 0.0 if pause else time.perf_counter())
            time.sleep(max(0.0, due - time.perf_counter()))
            fields = {
                name: unescape(value)
                for name, value in FIELD.findall(page.partition('id="answer"')[2].partition("</form>")[0])
            }
            body = urlencode({**fields, "choice": "12="[number % 3], "seconds": "1.5"})
            for again in range(2 if twice and number % twice == 0 else 1):
                due = time.perf_counter() if again else due
                line.request("POST", "/label/answer", body, {**form, **cookie})
                answer = line.getresponse()
                page = answer.read().decode()
                load.times.append(time.perf_counter() - due)
                if answer.status != 200:
                    load.wrong.append(str(answer.status))
            load.labels += 1
        load.ended = time.perf_counter()
        line.close()
    except (OSError, ValueError, threading.BrokenBarrierError) as error:
        load.wrong.append(repr(error))


def press(place: str, *, clients: int, each: int, twice: int = 0, rate: float = 0.0) -> Load:
    """Fill a new store, serve it from a process of its own, and let everybody answer at once.

    Args:
        place: of the store: a new file, or a postgresql:// URL of an empty database.
        clients: annotators at once.
        each: answers of each.
        twice: every so many-th answer is sent twice; 0 for none.
        rate: labels a second of all together; 0 for no pause.
    """
    with Store(place) as store:
        store.add_items(
            Item(f"Name bird {n}.", (f"Heron {n}.", f"Trout {n}.")) for n in range(clients * (each + 1))
        )  # one in each hand
        tokens = [store.add_annotator(f"annotator {n}") for n in range(clients)]
    server = subprocess.Popen([sys.executable, "-c", SERVER, place], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    loads = [Load() for _ in tokens]
    pace: dict[str, Any] = {
        "count": each,
        "twice": twice,
        "pause": clients / rate if rate else 0.0,
        "start": threading.Barrier(clients),
    }
    people = [
        threading.Thread(target=annotate, args=(port, token), kwargs={**pace, "load": load})
        for token, load in zip(tokens, loads, strict=True)
    ]
    for one in people:
        one.start()
    for one in people:
        one.join()
    total = Load(min(load.began for load in loads), max(load.ended for load in loads))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.terminate()
    server.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    for load in loads:
        total.labels += load.labels
        total.times += load.times
        total.wrong += load.wrong
    total.sent = len(total.times)
    with Store(place) as store:
        total.stored = sum(1 for _ in store.export(history=True))
    return total


def main() -> None:
    """Twenty annotators at a given pace and without a pause, then fifty with every fifth answer sent twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=150, help="of each of the twenty annotators")
    parser.add_argument("--rate", type=float, default=160.0, help="labels a second of the twenty together")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paced = press(str(Path(folder) / "paced.db"), clients=20, each=given.labels, rate=given.rate)
        print(f"20 annotators at {given.rate:g} labels a second: {paced}")
        print("20 annotators without a pause:", press(str(Path(folder) / "all.db"), clients=20, each=given.labels))
        fifty = press(str(Path(folder) / "fifty.db"), clients=50, each=100, twice=5)
        print("50 annotators, a fifth sent twice:", fifty)


if __name__ == "__main__":
    main()
