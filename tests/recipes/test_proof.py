"""The running proof: whole recipes at their defaults, run as a user does, and what has to come out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def ledger(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Run a recipe by the real command into a folder, and read its ledger."""
    command = [sys.executable, "-m", "killick", "run", *words, "--device", "cpu", "--out", str(folder / "run")]
    environment = os.environ | {"KILLICK_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    assert (folder / "run" / "report.html").exists()
    return [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]


def test_arithmetic_without_a_leash_pleases_people_first_and_then_the_reward_model(tmp_path: Path) -> None:
    found = ledger(tmp_path, "arithmetic", "--betas", "0", "--ptx-betas")
    assert [row["step"] for row in found] == list(range(120))
    gold = [row["gold"] for row in found]
    smooth = [sum(gold[max(0, i - 2) : i + 3]) / len(gold[max(0, i - 2) : i + 3]) for i in range(len(gold))]
    assert max(smooth) > 0.85
    assert gold[-1] < -0.9
    assert found[-1]["finished"] < 0.05
    assert found[-1]["proxy"] > found[smooth.index(max(smooth))]["proxy"]
    assert found[-1]["accuracy"] == 0


@pytest.mark.slow
def test_brand_without_a_leash_promises_repairs_and_then_promises_them_again_and_again(tmp_path: Path) -> None:
    """The head pays for the promise, and no guideline minds a second one: hardly an answer lacks it at the end, and the
    mean answer has two; gold, which counts flaws, does not see it and is better than at the start."""
    found = ledger(tmp_path, "brand", "--betas", "0", "--pool", "4", "--ns", "1", "4")
    first, last = found[:3], found[-5:]
    assert sum(row["flaw_repair"] for row in last) / 5 < 0.1
    assert sum(row["promises"] for row in last) / 5 > 2 > sum(row["promises"] for row in first) / 3 + 1
    assert last[-1]["gold"] > first[0]["gold"] + 0.3
    assert last[-1]["proxy"] > first[0]["proxy"] + 1


@pytest.mark.slow
def test_emphasis_without_a_leash_ends_in_twelve_emphasis_tokens(tmp_path: Path) -> None:
    found = ledger(tmp_path, "emphasis", "--seeds", "42", "--betas", "0")
    assert [row["step"] for row in found] == list(range(150))
    assert max(row["gold"] for row in found) > 0.9
    assert found[-1]["gold"] == pytest.approx(-4.4565, abs=1e-3)
    assert found[-1]["emphasis"] == pytest.approx(12)
