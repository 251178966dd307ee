"""A process that reads a store over and over until its input ends, as a training does; prints how often it read."""

import select
import sys

from killick.preferences.store import Store

if __name__ == "__main__":
    rounds = 0
    with Store(sys.argv[1]) as store:
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            rows = sum(1 for _, label in store.export() if label.judgement.ranking)
            assert rows <= store.progress().done
            rounds += 1
    print(rounds)
