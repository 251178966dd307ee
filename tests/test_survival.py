"""Runs that survive: killed, stopped and taken up again at any moment, they come to the same bytes."""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
WORDS = [
    "run", "arithmetic", "--quick", "--device", "cpu", "--betas", "0", "1", "--ptx-betas", "0.1", "--rankings", "20",
    "--network.hidden", "16", "--network.layers", "1", "--network.heads", "2", "--network.feed-forward", "16",
    "--sft.steps", "10", "--sft.batch", "32", "--ppo.iterations", "16", "--ppo.batch", "8", "--ppo.epochs", "2",
]  # fmt: skip
FILES = ("metrics.jsonl", "samples.jsonl", "stages.json")


class Runs:
    """Commands started by the launcher, and how they ended."""

    def __init__(self, place: Path, *modules: str):
        command = [sys.executable, str(HERE / "launcher.py"), *modules]
        self.place, self.logs = place, 0
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout
        assert self.server.stdout.readline() == "ready\n"

    def ask(self, **asked: Any) -> Any:
        assert self.server.stdin
        assert self.server.stdout
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def start(self, *words: str, **asked: Any) -> "Run":
        self.logs += 1
        log = self.place / f"log-{self.logs}"
        return Run(self, self.ask(words=list(words), log=str(log), **asked), log)

    def close(self) -> None:
        self.server.communicate()


class Run:
    """One command."""

    def __init__(self, runs: Runs, number: int, log: Path):
        self.runs, self.number, self.log = runs, number, log

    def ended(self, seconds: float = 60) -> int | None:
        """Its status, or None if it still runs by then."""
        status = self.runs.ask(wait=self.number, seconds=seconds)
        assert status is None or isinstance(status, int)
        return status

    def signal(self, number: int) -> None:
        """To its whole group, as a terminal does."""
        os.killpg(self.number, number)

    def killed(self) -> bool:
        """kill -9 for the group, unless it has ended by itself; then it must have ended well."""
        status = self.ended(0)
        if status is None:
            self.signal(signal.SIGKILL)
            status = self.ended()  # it may have ended by itself just before the signal
        if status == -signal.SIGKILL:
            return True
        assert status == 0, self.said("err")
        return False

    def said(self, kind: str) -> str:
        return Path(f"{self.log}.{kind}").read_text(encoding="utf-8")

    def until(self, words: str, seconds: float = 60) -> None:
        """Wait for words on its standard output."""
        wait(lambda: Path(f"{self.log}.out").exists() and words in self.said("out"), seconds)


def wait(true: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


def left(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def to(folder: Path, *more: str) -> list[str]:
    return [*WORDS, *more, "--out", str(folder)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    started = Runs(tmp_path_factory.mktemp("logs"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def whole(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    """What a run leaves that nobody disturbs, one process after another; and the seconds that it takes."""
    place = tmp_path_factory.mktemp("whole")
    for name in ("cold", "warm"):
        began = time.monotonic()
        run = runs.start(*to(place / name, "--workers", "1"))
        assert run.ended() == 0, run.said("err")
        spent = time.monotonic() - began
    assert left(place / "cold") == left(place / "warm")
    assert len(left(place / "cold")["metrics.jsonl"].splitlines()) == 3 * 16
    return left(place / "cold"), spent


def survive(runs: Runs, place: Path, whole: tuple[dict[str, bytes], float], *, kills: int) -> None:
    """Kill a run at random moments until it is done, with one to three processes; then the next folder."""
    chance, killed, folder = random.Random(3), 0, 0
    while killed < kills:
        folder += 1
        while True:
            workers = str(chance.randint(1, 3))
            run = runs.start(*to(place / str(folder), "--workers", workers))
            if killed < kills:
                time.sleep(chance.uniform(0, whole[1]))
                if run.killed():
                    killed += 1
                    continue
            else:
                assert run.ended() == 0, run.said("err")
            break
        assert left(place / str(folder)) == whole[0], f"after {killed} kills"
        names = [str(path.relative_to(place)) for path in place.rglob("*") if path.name.endswith(".partial")]
        assert names == []


# kill -9


def test_fifteen_kills_at_random_moments_change_no_byte(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    """The whole group at once, at any moment between its first and its last."""
    survive(runs, tmp_path, whole, kills=13)


def test_two_kills_of_the_real_command_change_no_byte(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    """As a user starts it, from a fresh interpreter; killed after its first rows, and again after more."""
    chance, killed = random.Random(4), 0
    for rows in (1, 24):
        ledgers = (tmp_path / "run" / "cells").glob
        command = [sys.executable, "-m", "killick", *to(tmp_path / "run", "--workers", "2")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            wait(lambda: process.poll() is not None or count(ledgers("*=?.jsonl")) >= rows)  # noqa: B023
            time.sleep(chance.uniform(0, 0.1))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                killed += 1
    assert killed == 2
    run = runs.start(*to(tmp_path / "run"))
    assert run.ended() == 0, run.said("err")
    assert "Going on with the run in this folder." in run.said("out")
    assert left(tmp_path / "run") == whole[0]


def count(paths: Iterator[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def test_a_parent_that_is_killed_alone_leaves_nothing_that_hinders_the_next(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    """Its children end by themselves, while the next one already goes on: it waits for them and names nobody."""
    run = runs.start(*to(tmp_path / "run", "--workers", "2"), pause=0.05)
    wait(lambda: count((tmp_path / "run" / "cells").glob("*=?.jsonl")) >= 6)
    os.kill(run.number, signal.SIGKILL)
    run.ended()
    again = runs.start(*to(tmp_path / "run"))
    assert again.ended() == 0, again.said("err")
    assert left(tmp_path / "run") == whole[0]


@pytest.mark.slow
def test_fifty_kills_at_random_moments_change_no_byte(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    survive(runs, tmp_path, whole, kills=50)


# Ctrl-C and SIGTERM


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_stop_ends_within_ten_seconds_and_says_how_to_go_on(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float], number: int
) -> None:
    """Exit 130, one sentence; the very words of it, with a folder that has a space in its name, come to the same
    bytes. SIGTERM goes to the parent alone, Ctrl-C to the group."""
    run = runs.start(*to(tmp_path / "my run", "--workers", "2"), pause=0.2)
    wait(lambda: count((tmp_path / "my run" / "cells").glob("*=?.jsonl")) >= 4)
    began = time.monotonic()
    run.signal(number) if number == signal.SIGINT else os.kill(run.number, number)
    assert run.ended(12) == 130
    assert time.monotonic() - began < 10
    said = run.said("err").strip()
    assert said.startswith("killick: stopped. ")
    assert len(said.splitlines()) == 1
    assert str(tmp_path / "my run") in said
    rows = count((tmp_path / "my run" / "cells").glob("*=?.jsonl"))
    assert len((tmp_path / "my run" / "metrics.jsonl").read_bytes().splitlines()) == rows
    words = shlex.split(said.partition("To go on: ")[2])
    assert words[0] == "killick"
    again = runs.start(*words[1:])
    assert again.ended() == 0, again.said("err")
    assert "Going on from step" in again.said("out")
    assert left(tmp_path / "my run") == whole[0]


@pytest.mark.parametrize("seed", range(4))
def test_a_stop_at_any_moment_is_one_sentence(runs: Runs, tmp_path: Path, seed: int) -> None:
    """While processes start, stages load and cells run: never a traceback, and no process stays behind."""
    chance = random.Random(seed)
    run = runs.start(*to(tmp_path / "run", "--workers", "3"), pause=0.2)
    run.until("about")
    time.sleep(chance.uniform(0, 0.3) if seed else 0)
    run.signal(signal.SIGINT)
    assert run.ended(12) == 130
    said = run.said("err").strip()
    assert said.startswith("killick: stopped. ")
    assert len(said.splitlines()) == 1
    with pytest.raises(ProcessLookupError):
        run.signal(0)


def test_a_stop_while_a_stage_is_built_and_others_wait_for_it_is_as_quick(runs: Runs, tmp_path: Path) -> None:
    """An empty cache and a long SFT: one cell builds, the others wait for it."""
    words = [word if word != "10" else "5000" for word in to(tmp_path / "run", "--workers", "3")]
    run = runs.start(*words, environment={"KILLICK_CACHE": str(tmp_path / "cache")})
    run.until("SFT step 25")
    began = time.monotonic()
    run.signal(signal.SIGINT)
    assert run.ended(12) == 130
    assert time.monotonic() - began < 10
    assert len(run.said("err").strip().splitlines()) == 1
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == b""


# The same folder


def test_a_second_process_on_the_same_folder_is_refused_with_the_number_of_the_first(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    """And does not disturb it."""
    first = runs.start(*to(tmp_path / "run", "--workers", "2"), pause=0.03)
    first.until("Run folder")
    second = runs.start(*to(tmp_path / "run"))
    assert second.ended() == 2
    said = second.said("err")
    assert said == f"killick: {tmp_path / 'run'} is in use by process {first.number}; wait for it or stop it.\n"
    assert first.ended() == 0, first.said("err")
    assert left(tmp_path / "run") == whole[0]


def test_other_settings_are_refused_and_a_finished_run_is_only_drawn_again(
    runs: Runs, tmp_path: Path, whole: tuple[dict[str, bytes], float]
) -> None:
    """One sentence that names the difference; no file of the folder is touched but the lock."""
    folder = tmp_path / "run"
    assert runs.start(*to(folder)).ended() == 0
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"}
    other = runs.start(*to(folder, "--seeds", "1", "--ppo.clip-range", "0.1"))
    assert other.ended() == 2
    said = other.said("err")
    assert len(said.splitlines()) == 1
    assert "seeds is [0] there and [1] here; ppo.clip_range is 0.2 there and 0.1 here" in said
    again = runs.start(*to(folder, "--workers", "7"))
    assert again.ended() == 0
    assert "This run is finished; it is drawn again." in again.said("out")
    assert f"Drawn: {folder}" in again.said("out")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "lock"} == before
    assert left(folder) == whole[0]


def test_a_run_that_was_stopped_cannot_be_taken_up_with_other_settings(runs: Runs, tmp_path: Path) -> None:
    """What is there stays as it is."""
    run = runs.start(*to(tmp_path / "run"), pause=0.1)
    wait(lambda: count((tmp_path / "run" / "cells").glob("*=?.jsonl")) >= 2)
    run.signal(signal.SIGTERM)
    assert run.ended(12) == 130
    before = left(tmp_path / "run")
    other = runs.start(*to(tmp_path / "run", "--kappa", "3"))
    assert other.ended() == 2
    assert "kappa is 2.0 there and 3.0 here" in other.said("err")
    assert left(tmp_path / "run") == before
