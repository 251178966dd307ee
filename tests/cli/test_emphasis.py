"""`killick run emphasis` as a user gives it: families and shapes side by side, its tables, its figures' data."""

import json
from pathlib import Path

import pytest

from commands import Command, command, ledger

killick = pytest.fixture(command)
SMALL = [
    "--quick", "--device", "cpu", "--betas", "0", "--pairs", "40", "--validation", "20", "--hidden", "4",
    "--sft.steps", "2", "--sft.batch", "8", "--fit.steps", "5", "--ppo.iterations", "2", "--ppo.batch", "8",
]  # fmt: skip


def test_families_and_shapes_are_arms_and_their_tables_are_printed_and_kept(killick: Command, tmp_path: Path) -> None:
    said = killick(
        "run", "emphasis", *SMALL, "--families", "relu", "minimum", "--shapes", "source", "llama", "--out", "r"
    )
    assert (said.status, said.err) == (0, "")
    arms = ["beta=0", "beta=0+llama", "beta=0+minimum", "beta=0+minimum+llama"]
    assert sorted({row["arm"] for row in ledger(tmp_path / "r")}) == arms
    results = json.loads((tmp_path / "r" / "results.json").read_text(encoding="utf-8"))
    assert [len(table["rows"]) for table in results["tables"]][:2] == [4, 4]
    for table in results["tables"]:
        assert table["title"] in said.out
    stages = json.loads((tmp_path / "r" / "stages.json").read_text(encoding="utf-8"))
    assert list(stages["42"]["llama"]["families"]) == ["relu", "minimum"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--families", "median"], "--families"),
        (["--families", "relu", "relu"], "none twice, not relu relu"),
        (["--shapes", "gpt"], "--shapes"),
        (["--betas", "-1"], "beta must be 0 or more and finite, not -1"),
        (["--seeds", "42", "42"], "none twice, not 42 42"),
        (["--pairs", "0"], "--pairs, --validation and --hidden must be at least 1"),
        (["--network.outputs", "12"], "12 outputs, the vocabulary 24 tokens"),
        (["--network.inputs", "24"], "reads 24 tokens, but the vocabulary needs 25"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(killick: Command, words: list[str], sentence: str) -> None:
    """Exit 2 before anything is written; twelve outputs have no emphasis token, which is number 12."""
    said = killick("run", "emphasis", *words, "--out", "r")
    assert (said.status, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    assert sentence in said.err
    assert not Path("r").exists()
