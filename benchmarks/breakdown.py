"""Where the seconds of one `killick run RECIPE` go, with an empty cache: the whole command, part by part.

The command runs in a process of its own. Its cells tell their time in `timing.jsonl`; the parent's own shares (imports,
watching the cells, drawing) are read off its CPU clock around the calls that do them. CPU seconds of all processes come
from the system's account, so what no part claims is shown as the rest.

    python benchmarks/breakdown.py arithmetic
    python benchmarks/breakdown.py emphasis --seeds 42
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = {"ledger": "ledger and states", "states": "ledger and states"}
"""Parts of a cell that are shown as one."""


def inside(words: list[str], told: Path) -> None:
    """Run the command in this process and write down what its parts cost the parent, in CPU seconds."""
    from killick import cli
    from killick.cli import runs

    spent: dict[str, float] = {}

    def timed(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            spent.setdefault("imports and settings", began)  # all that this process did before its first part
            try:
                return call(*given, **named)
            finally:
                spent[part] = time.process_time() - began

        return run

    for name, part in (("work", "start and watch the cells"), ("finish", "figures and page")):
        setattr(runs, name, timed(part, getattr(runs, name)))
    cli.main(words)
    told.write_text(json.dumps(spent), encoding="utf-8")


def measure(words: list[str], place: Path) -> tuple[dict[str, float], float, resource.struct_rusage]:
    """CPU seconds by part, wall seconds, and the system's account of all processes of one run."""
    command = [sys.executable, __file__, "--inside", str(place / "parent.json"), *words, "--out", str(place / "run")]
    began = time.monotonic()
    with (place / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, env={**os.environ, "KILLICK_CACHE": str(place / "cache")})
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    if status:
        raise SystemExit(f"The run failed: {(place / 'log').read_text(encoding='utf-8')[-500:]}")
    parts: dict[str, float] = json.loads((place / "parent.json").read_text(encoding="utf-8"))
    for line in (place / "run" / "timing.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        part = NAMES.get(row["part"], row["part"])
        parts[part] = parts.get(part, 0.0) + row["cpu_s"]
    parts["rest (start and end of the processes)"] = used.ru_utime + used.ru_stime - sum(parts.values())
    return parts, wall, used


def main() -> None:
    """Run once, print the table."""
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[3:], Path(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description="Time one whole run of a recipe, part by part.")
    parser.add_argument("recipe", help="its name; whatever follows goes to killick run")
    recipe, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as place:
        before = os.getloadavg()[0]
        parts, wall, used = measure(["run", recipe.recipe, "--device", "cpu", *more], Path(place))
    cpu = used.ru_utime + used.ru_stime
    for part, seconds in sorted(parts.items(), key=lambda pair: -pair[1]):
        print(f"{part:<40} {seconds:7.2f} CPU s  {seconds / cpu:6.1%}")
    print(f"{'all':<40} {cpu:7.2f} CPU s")
    print(f"{wall:.1f} s on the wall, {os.cpu_count()} cores, load {before:.1f} before the run")
    print(f"{used.ru_maxrss / 1024:.0f} MB at most in any of its processes")


if __name__ == "__main__":
    main()
