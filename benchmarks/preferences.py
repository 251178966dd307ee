"""CPU seconds and memory of `killick prefs check` over a made-up file of preferences.

python benchmarks/preferences.py --rows 1000000
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = ("heron", "gull", "owl", "wren", "swift", "robin", "finch", "raven", "stork", "crane", "“quoted”", "日本", "👍")
"""A text of them is about as long, and about as often beyond ASCII, as an answer of one sentence."""


def make(path: Path, *, rows: int) -> None:
    """Write rows of three forms of pairs in turn: strings, messages, and messages with the prompt in both."""
    draws = random.Random(0)

    def text(words: int) -> str:
        return " ".join(draws.choices(WORDS, k=words))

    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            asked, good, poor = f"{number} {text(12)}", text(25), text(25)
            roles = ("user", "assistant", "assistant")
            user, *said = (
                {"role": role, "content": each} for role, each in zip(roles, (asked, good, poor), strict=True)
            )
            row = (
                {"prompt": asked, "chosen": good, "rejected": poor},
                {"prompt": [user], "chosen": said[:1], "rejected": said[1:]},
                {"chosen": [user, said[0]], "rejected": [user, said[1]]},
            )[number % 3]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def check(path: Path) -> tuple[float, float]:
    """CPU seconds and peak memory in MB of checking a file, in a process of its own."""
    child = subprocess.Popen([sys.executable, "-m", "killick", "prefs", "check", str(path)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit("the file was not found to be good")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Check a file of a tenth of the rows, then one of all: time grows with the rows, memory does not."""
    parser = argparse.ArgumentParser(description="Time the check of a preference file.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        for count in (rows // 10, rows):
            path = Path(folder) / "rows.jsonl"
            make(path, rows=count)
            spent, memory = check(path)
            size = path.stat().st_size / 1e6
            print(f"{count:>9,} rows, {size:6.0f} MB: {spent:6.1f} CPU s, {memory:5.0f} MB at most", flush=True)


if __name__ == "__main__":
    main()
