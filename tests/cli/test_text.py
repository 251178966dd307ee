"""`killick run text` as a user gives it, with a very small model: arms, tables, texts, going on, what it refuses."""

import json
from pathlib import Path

import pytest

from commands import Command, command, ledger
from killick.report.drawing import draw
from writers import counts_letters, folder

killick = pytest.fixture(command)
SMALL = [
    "--quick", "--device", "cpu", "--learnt", "6", "--held-out", "4", "--n", "4", "--pool", "4", "--pairs", "20",
    "--time", "6", "--spoken", "60", "--train-layers", "1", "--fit.steps", "10", "--ppo.iterations", "3",
    "--ppo.batch", "6", "--workers", "1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def gold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are forked, so they have it too."""
    counts_letters(monkeypatch)


def test_arms_tables_texts_and_the_page(killick: Command, tmp_path: Path) -> None:
    said = killick("run", "text", "--model", str(folder()), *SMALL, "--betas", "0.5", "--relabel", "--out", "r")
    assert (said.status, said.err) == (0, "")
    rows = ledger(tmp_path / "r")
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0+relabel", "beta=0.5") for step in (0, 1, 2)
    ]
    results = json.loads((tmp_path / "r" / "results.json").read_text(encoding="utf-8"))
    assert results["claims"] == []
    assert len(results["tables"]) == 5
    for table in results["tables"]:
        assert table["title"] in said.out
    texts = [json.loads(line) for line in (tmp_path / "r" / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(texts) == 2 * (3 * 6 + 2 * 4 * 2)
    assert draw(tmp_path / "r") == []
    names = {path.stem for path in (tmp_path / "r" / "figures").glob("*.png")}
    assert {"overview", "held-out", "watching-heads", "phrase", "best-of-n"} <= names
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "The hack in words" in page
    again = killick("run", "text", "--model", str(folder()), *SMALL, "--betas", "0.5", "--relabel", "--out", "r")
    assert "This run is finished" in again.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--betas", "-1"], "beta must be 0 or more and finite, not -1"),
        (["--pairs", "100000"], "--pairs must be between 1 and 36"),
        (["--gold", "warm"], "--gold"),
        (["--model", "nowhere"], "--model nowhere is no model folder; killick models get smollm2 fetches one"),
        (["--paris", "5"], "has no option --paris (did you mean --pairs?)"),
    ],
)
def test_what_cannot_run_is_one_sentence(killick: Command, words: list[str], sentence: str) -> None:
    said = killick("run", "text", "--model", str(folder()), *SMALL, *words, "--out", "r")
    assert said.status == 2
    assert sentence in said.err
    assert "Traceback" not in said.err


def test_help_tells_what_each_setting_is(killick: Command) -> None:
    said = killick("run", "text", "--help")
    assert said.status == 0
    for word in ("--relabel", "--gold {sincere,vader}", "--pairs", "--betas", "killick models get smollm2"):
        assert word in " ".join(said.out.split())
