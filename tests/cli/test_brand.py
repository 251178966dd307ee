"""`killick run brand` as a user gives it: with arms, without any, and what it refuses; a very small speaker answers."""

import json
from pathlib import Path

import pytest

from chatter import takes_the_place
from commands import Command, command, ledger
from killick.report.drawing import draw

killick = pytest.fixture(command)
SMALL = [
    "--quick", "--device", "cpu", "--pool", "6", "--fit.steps", "5", "--scalar-fit.steps", "1",
    "--ppo.iterations", "2", "--ppo.batch", "8", "--workers", "1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def small_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are forked, so they have it too."""
    takes_the_place(monkeypatch)


def test_arms_tables_and_claims_are_told_and_kept(killick: Command, tmp_path: Path) -> None:
    said = killick("run", "brand", *SMALL, "--betas", "0", "0.5", "--out", "r")
    assert (said.status, said.err) == (0, "")
    rows = ledger(tmp_path / "r")
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in (0, 1)
    ]
    results = json.loads((tmp_path / "r" / "results.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in results["claims"]] == [
        "pairs", "rm-accuracy", "first-flaws", "head-flaws", "reviewer-flaws",
    ]  # fmt: skip
    assert len(results["tables"]) == 7
    for table in results["tables"]:
        assert table["title"] in said.out


def test_without_a_beta_ppo_is_left_out_and_the_page_is_drawn_all_the_same(killick: Command, tmp_path: Path) -> None:
    """No row and no arm; claims, tables and the figure of best-of-n stand."""
    said = killick("run", "brand", *SMALL, "--betas", "--out", "r")
    assert (said.status, said.err) == (0, "")
    assert ledger(tmp_path / "r") == []
    assert "claims hold" in said.out
    assert draw(tmp_path / "r") == []
    assert [path.name for path in (tmp_path / "r" / "figures").glob("*.png")] == ["best-of-n.png"]
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "No policy was optimised in this run." in page
    assert "How far the policy went" not in page
    again = killick("run", "brand", *SMALL, "--betas", "--out", "r")
    assert "This run is finished" in again.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--betas", "-1"], "beta must be 0 or more and finite, not -1"),
        (["--betas", "many"], "--betas"),
        (["--seeds", "1", "1"], "none twice, not 1 1"),
        (["--seeds", "-3"], "A seed must be 0 or more, not -3"),
        (["--ns", "1", "65"], "--ns takes numbers from 1 to the --pool of 64, not 1 65"),
        (["--pool", "2"], "--pool must be at least 4, not 2"),
        (["--device", "tpu"], "--device must be auto, cpu, cuda or mps, not tpu"),
        (["--ppo.batch", "0"], "batch of at least 1, not 0"),
        (["--bets", "1"], "did you mean --betas?"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(killick: Command, words: list[str], sentence: str) -> None:
    """Exit 2 before anything is written."""
    said = killick("run", "brand", *words, "--out", "r")
    assert (said.status, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert sentence in said.err
    assert not Path("r").exists()
