"""Alignment runs that survive: killed at any moment and taken up, they leave the same ledger and the same policy."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aligning import setting
from test_survival import Runs

FILES = ("metrics.jsonl", "samples.jsonl", "stages.json")
SHORT = [
    "--reward", "aligning:letters", "--gold", "aligning:brevity", "--beta", "0", "0.1", "--held-out", "0.25",
    "--evaluated", "4", "--answers", "1", "--every", "3", "--steps", "6", "--responses", "8", "--tokens", "6",
    "--train-layers", "1", "--device", "cpu", "--choose", "held-out-gold", "--learning-rate", "1e-2",
]  # fmt: skip
KILLS = 20


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    started = Runs(tmp_path_factory.mktemp("logs"), "warm")
    yield started
    started.close()


def left(folder: Path) -> dict[str, bytes]:
    """All that a run is for: its ledger, its answers, its policies."""
    policies = sorted(path for path in (folder / "policy").rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in [*(folder / name for name in FILES), *policies]
    }


def test_twenty_kills_at_random_moments_change_no_byte(runs: Runs, tmp_path: Path) -> None:
    """The whole group at once: while it measures a step, trains, looks, puts down or delivers; one process or two."""
    place = setting(tmp_path / "setting")
    words = ["align", "--model", str(place / "model"), "--prompts", str(place / "prompts.txt"), *SHORT]
    began = time.monotonic()
    run = runs.start(*words, "--out", str(tmp_path / "whole"), "--workers", "1")
    assert run.ended(300) == 0, run.said("err")
    spent = time.monotonic() - began
    whole = left(tmp_path / "whole")
    assert len(whole["metrics.jsonl"].splitlines()) == 2 * 7
    assert {name.split("/")[1] for name in whole if name.startswith("policy")} == {"beta=0", "beta=0.1"}
    chance, killed, folder = random.Random(5), 0, 0
    while killed < KILLS:
        folder += 1
        while True:
            workers = str(chance.randint(1, 2))
            run = runs.start(*words, "--out", str(tmp_path / str(folder)), "--workers", workers)
            if killed < KILLS:
                time.sleep(chance.uniform(0, spent))
                if run.killed():
                    killed += 1
                    continue
            else:
                assert run.ended(300) == 0, run.said("err")
            break
        assert left(tmp_path / str(folder)) == whole, f"after {killed} kills"
        assert list((tmp_path / str(folder)).rglob("*.partial")) == []
