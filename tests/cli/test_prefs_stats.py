"""`killick prefs stats` as a user runs it."""

import json
import sys
from pathlib import Path

import pytest

from commands import Command, command

killick = pytest.fixture(command)
GOOD = '{"prompt": "a", "chosen": "b", "rejected": "c"}'


def test_stats_draws_and_counts_what_truncation_makes_equal(
    killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine words in the answers, differing in the ninth, behind a prompt of one (O-04)."""
    row = {"prompt": "p", "chosen": "1 2 3 4 5 6 7 8 9", "rejected": "1 2 3 4 5 6 7 8 ten"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (tmp_path / "cut.py").write_text("def letters(text):\n    return list(text)\n")
    said = killick("prefs", "stats", "a.jsonl", "--max-words", "9", "--out", "seen")
    assert said.status == 0
    assert "equal within 9 words   1" in said.out
    assert "longer one wins        0.000 (0.000 to 0.793) of 1 pair" in said.out
    found = json.loads((tmp_path / "seen" / "stats.json").read_text())
    assert found["files"][0]["equal_pairs_after_truncation"] == 1
    assert (tmp_path / "seen" / "length.png").read_bytes()[:4] == b"\x89PNG"
    assert killick("prefs", "stats", "a.jsonl", "--out", "seen").status == 2
    said = killick("prefs", "stats", "a.jsonl", "--max-tokens", "18", "--tokenizer", "cut:letters")
    assert "equal within 18 tokens 0" in said.out
    monkeypatch.delitem(sys.modules, "cut")


def test_stats_of_two_files_tells_the_prompts_that_they_share(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD)
    (tmp_path / "b.jsonl").write_text(GOOD.replace('"a"', '" A"') + "\n" + GOOD.replace('"a"', '"z"'))
    said = killick("prefs", "stats", "a.jsonl", "b.jsonl")
    assert said.out.splitlines()[-3:] == [
        "1 prompt in both files, apart from case and outer white space",
        "  1 row of 1 in a.jsonl",
        "  1 row of 2 in b.jsonl",
    ]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["a.jsonl", "a.jsonl", "a.jsonl"], "one file or two"),
        (["a.jsonl", "--max-words", "0"], "at least 1"),
        (["a.jsonl", "--max-words", "1", "--max-tokens", "1", "--tokenizer", "a:b"], "one of them"),
        (["a.jsonl", "--max-tokens", "9"], "go together"),
        (["a.jsonl", "--max-tokens", "9", "--tokenizer", "nothing.here:f"], "cannot be imported"),
        (["a.jsonl", "--max-tokens", "9", "--tokenizer", "json:__name__"], "is no function"),
        (["a.jsonl", "--out", "no/where"], "There is no folder no for where"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(killick: Command, tmp_path: Path, words: list[str], part: str) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD)
    said = killick("prefs", "stats", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
