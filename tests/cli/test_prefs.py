"""`killick prefs` as a user runs it: what it says, how it ends, what it leaves on the disk."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Command, command
from killick.preferences.files import read_preferences
from killick.preferences.formats.forms import FORMS

killick = pytest.fixture(command)
ROOT = Path(__file__).parent.parent.parent
GOOD = '{"prompt": "a", "chosen": "b", "rejected": "c"}'
BAD = [GOOD, "", '{"prompt":"secret",}', "[1,2]", '{"prompt": "a", "chosen": "", "rejected": "c"}', GOOD + " ", '{"pro']

SPLIT = ["split", "bad.jsonl", "--out", "x"]


@pytest.fixture
def bad(tmp_path: Path) -> str:
    """Seven lines: 3, 4, 5 and 7 are bad, one is blank."""
    (tmp_path / "bad.jsonl").write_text("\n".join(BAD), encoding="utf-8")
    return "bad.jsonl"


# Help


@pytest.mark.parametrize("words", [(), ("-h",), ("--help",)])
def test_help_teaches_each_form_by_an_example_row(killick: Command, words: tuple[str, ...]) -> None:
    said = killick("prefs", *words)
    assert said.status == 0
    for name, form in FORMS.items():
        assert f"{name}: {form.about}\n  {form.example}\n" in said.out


@pytest.mark.parametrize(
    ("word", "flag"), [("check", "--report"), ("convert", "--to"), ("stats", "--tokenizer"), ("split", "--shares")]
)
def test_each_word_has_help(killick: Command, word: str, flag: str) -> None:
    said = killick("prefs", word, "--help")
    assert said.status == 0
    assert flag in said.out


# check


def test_check_lists_every_bad_row_and_ends_with_1(killick: Command, bad: str) -> None:
    """Line, field, reason; no content."""
    said = killick("prefs", "check", bad)
    assert said.status == 1
    lines = said.out.splitlines()
    assert [line[:13] for line in lines[:4]] == ["line 3 is not", "line 4 is JSO", "line 5, chose", "line 7 is not"]
    assert lines[2] == "line 5, chosen: is empty"
    assert lines[4].startswith("bad.jsonl: 4 of 6 rows bad; form pairs")
    assert "secret" not in said.out


def test_the_screen_has_a_limit_and_the_report_has_none(killick: Command, bad: str, tmp_path: Path) -> None:
    said = killick("prefs", "check", bad, "--limit", "1", "--report", "report.jsonl")
    assert said.status == 1
    assert "... and 3 more (report.jsonl has all)" in said.out
    found = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    assert [each["line"] for each in found] == [3, 4, 5, 7]
    assert found[2] == {"line": 5, "field": "chosen", "reason": "is empty"}
    said = killick("prefs", "check", bad, "--limit", "0", "--report", "report.csv")
    assert "more" not in said.out
    assert (tmp_path / "report.csv").read_text().splitlines()[3] == '"5","chosen","is empty"'


def test_a_good_file_ends_with_0(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    said = killick("prefs", "check", "good.jsonl")
    assert said.status == 0
    assert said.out.startswith("good.jsonl: 0 of 1 row bad; form pairs")
    (tmp_path / "good.jsonl").write_text(
        GOOD.rstrip("\n") + '\n{"prompt": "a", "responses": ["b", "c"], "scores": [1, 2]}\n'
    )
    said = killick("prefs", "check", "good.jsonl")
    assert said.out.startswith("good.jsonl: 0 of 2 rows bad; form pairs (")
    assert "; form scores (" in said.out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["check", "none.jsonl"], "There is no file none.jsonl"),
        (["check", "bad.json"], "ends in .jsonl"),
        (["check", "bad.jsonl", "--form", "pears"], "--form"),
        (["check", "bad.jsonl", "--limit", "-1"], "--limit must be 0"),
        (["check", "bad.jsonl", "--report", "no/where.jsonl"], "There is no folder no"),
        (["check", "bad.jsonl", "--report", "report.parquet"], "a report ends in"),
        (["check", "bad.jsonl", "--reprot", "x"], "did you mean --report"),
        (["chekc", "bad.jsonl"], "did you mean check"),
        (["convert", "bad.jsonl", "bad.jsonl", "--to", "pairs"], "nothing is written over"),
        (["convert", "bad.jsonl", "x.txt", "--to", "pairs"], "ends in .jsonl"),
        (["split", "bad.jsonl", "--out", "x", "--shares", "1", "1", "1"], "sum to 1"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    killick: Command, bad: str, tmp_path: Path, words: list[str], part: str
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    said = killick("prefs", *words)
    assert said.status == 2
    assert part in said.err
    assert len(said.err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [["convert", "bad.jsonl", "x.csv", "--to", "hh"], ["stats", "bad.jsonl"], SPLIT])
def test_bad_rows_stop_everything_else_and_skipping_is_counted(
    killick: Command, bad: str, tmp_path: Path, words: list[str]
) -> None:
    """Exit 1, nothing written; with --skip-bad the two good rows, and that four were left out."""
    said = killick("prefs", *words)
    assert said.status == 1
    assert "4 bad rows (line 3" in said.err
    assert len(said.err.splitlines()) == 1
    assert os.listdir(tmp_path) == [bad]
    said = killick("prefs", *words, "--skip-bad")
    assert said.status == 0
    assert any(left in said.out for left in ("left out: 4", "4 bad rows left out"))


# convert, split


def test_convert_says_what_is_lost(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "ranked.jsonl").write_text(FORMS["ranking"].example)
    said = killick("prefs", "convert", "ranked.jsonl", "pairs.csv", "--to", "pairs")
    assert said.status == 0
    assert said.out.splitlines()[0] == "pairs.csv: 2 rows in the form pairs."
    assert "  ties have no chosen response and are left out: 1" in said.out
    assert "those of a row with one group: 1" in said.out
    assert len({row.group for row in read_preferences(tmp_path / "pairs.csv")[0]}) == 1
    said = killick("prefs", "convert", "ranked.jsonl", "s.jsonl", "--to", "scores")
    assert said.status == 2
    assert "this row has no scores (1, the first at line 1)" in said.err


def test_convert_writes_messages_where_told(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GOOD)
    assert killick("prefs", "convert", "a.jsonl", "b.jsonl", "--to", "pairs", "--text", "messages").status == 0
    assert json.loads((tmp_path / "b.jsonl").read_text())["chosen"] == [{"role": "assistant", "content": "b"}]


def test_split_says_what_went_where(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "\n".join(GOOD.replace('"a"', f'"{n}"') for n in range(50)) + "\n" + GOOD + "\n" + GOOD
    )
    said = killick("prefs", "split", "a.jsonl", "--out", "parts", "--shares", "0.5", "0", "0.5", "--seed", "1")
    assert said.status == 0
    train, test, left = said.out.splitlines()
    assert (train.split()[0], test.split()[0]) == ("train", "test")
    assert int(train.split()[1]) + int(test.split()[1]) == 51
    assert left == "1 row left out that repeat another of the same annotator."
    assert sorted(os.listdir(tmp_path / "parts")) == ["test.jsonl", "train.jsonl"]


# The example, and a terminal that knows ASCII only


def test_the_commands_of_the_readme_run_on_the_example_as_printed(killick: Command, tmp_path: Path) -> None:
    """Every `killick prefs` line of README.md and docs/preferences.md, in a copy of examples/."""
    (tmp_path / "examples").mkdir()
    example = ROOT / "examples" / "preferences.jsonl"
    (tmp_path / "examples" / "preferences.jsonl").write_bytes(example.read_bytes())
    for page in (ROOT / "README.md", ROOT / "docs" / "preferences.md"):
        folder = tmp_path / page.stem
        text = page.read_text(encoding="utf-8").splitlines()
        lines = [line.partition("#")[0].split()[1:] for line in text if line.startswith("killick prefs ")]
        assert len(lines) >= 4
        for words in lines:
            said = killick(*words)
            assert said.status == 0, (words, said.err)
        folder.mkdir()
        for made in set(tmp_path.iterdir()) - {tmp_path / "examples", folder, tmp_path / "README"}:
            made.rename(folder / made.name)


def test_a_terminal_that_knows_ascii_only_shows_escapes(tmp_path: Path) -> None:
    """O-16."""
    (tmp_path / "a.jsonl").write_text(FORMS["soft"].example.replace("}", ', "annotator": "日本"}'), encoding="utf-8")
    strict = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "killick", "prefs", "stats", "a.jsonl"]
    said = subprocess.run(words, cwd=tmp_path, env=strict, capture_output=True, check=True)
    assert b"\\u65e5\\u672c: 1" in said.stdout
    assert said.stderr == b""
