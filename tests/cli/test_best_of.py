"""`killick best-of` as a person with copy to choose from gives it."""

import csv
import json
import random
import re
import sys
from pathlib import Path

import pytest
import torch

from chatter import takes_the_place
from commands import Command, command

killick = pytest.fixture(command)
# Four prompts with four mails each; the rubric counts words, people want five of them and no promise.
MAILS = ["Buy it", "A warm coat for cold days", "Warm", "A coat with a promise and a promise and a promise"]
RUBRIC = """
def score(text):
    return len(text.split())

def people(prompt, text):
    return -abs(len(text.split()) - 6) - text.count("promise") + len(prompt) % 2

def noise(text):
    return float(text.split()[-1])

def failing(text):
    if "cold" in text:
        raise ValueError("the judge is away")
    return 1.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "rubric", raising=False)
    (tmp_path / "rubric.py").write_text(RUBRIC, encoding="utf-8")
    rows = [{"prompt": f"Mail {number}", "responses": MAILS[number:] + MAILS[:number]} for number in range(4)]
    (tmp_path / "mails.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


def test_it_scores_chooses_and_shows_where_gold_turns(killick: Command, folder: Path) -> None:
    """Words 2, 6, 1, 11: mean 5, best of two (11 + 11 + 11 + 6 + 6 + 2)/6 = 7.83, best 11. People: -4, 0, -5, -8:
    mean -4.25, best of two (3 x -8 + 2 x 0 - 4)/6 = -4.67, best -8."""
    words = ("--candidates", "mails.jsonl", "--reward", "rubric:score", "--gold", "rubric:people")
    said = killick("best-of", *words, "--show-winners", "2", "--out", "kept")
    assert (said.status, said.err) == (0, "")
    lines = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line.strip()}
    assert lines["1"] == ["0.000", "5.000", "5.000", "5.000", "-4.250", "-4.250", "-4.250"]
    assert lines["2"][:2] + lines["2"][4:5] == ["0.193", "7.833", "-4.667"]
    assert lines["4"][:2] + lines["4"][4:5] == ["0.636", "11.000", "-8.000"]
    assert "Gold turns: it is highest at n = 1" in said.out
    assert "Read the winners" in said.out
    assert said.out.count(MAILS[3]) == 2
    assert "first 5.000, mean 5.000, best 11.000 over all of them; gold first -4.250" in " ".join(said.out.split())
    rows = [json.loads(line) for line in (folder / "kept" / "winners.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["prompt"], row["response"], row["line"]) for row in rows] == [
        (f"Mail {number}", MAILS[3], number + 1) for number in range(4)
    ]
    with (folder / "kept" / "curve.csv").open(encoding="utf-8", newline="") as file:
        assert [float(row["gold"]) for row in csv.DictReader(file)] == pytest.approx([-4.25, -28 / 6, -8])
    assert sorted(path.name for path in (folder / "kept").iterdir()) == [
        "best_of.pdf", "best_of.png", "curve.csv", "winners.jsonl",
    ]  # fmt: skip
    again = killick("best-of", *words, "--out", "kept")
    assert (again.status, "holds winners.jsonl already" in again.err) == (2, True)


def test_without_prompts_and_gold_the_winner_is_told_with_its_ties(killick: Command, folder: Path) -> None:
    (folder / "mails.csv").write_text("text\none two\nthree four\nfive\x1b[2J\n", encoding="utf-8")
    said = killick("best-of", "--candidates", "mails.csv", "--reward", "rubric:score", "--show-winners", "20")
    assert said.status == 0
    assert "2.000, tied with 1 more, line 2\n    one two\n" in said.out
    told = " ".join(said.out.split())
    assert "1 prompt: first 2.000" in told
    assert "In 1 prompt others have the best score too" in told
    assert "One prompt alone has no interval" in told
    assert "only --gold or your own eyes can tell" in said.out
    assert "\x1b" not in said.out


def test_the_same_seed_gives_the_same_table_and_more_prompts_than_shown_are_counted(
    killick: Command, folder: Path
) -> None:
    rows = "".join(
        f"prompt {number},{'word ' * (number * 7 % 23 + place**2)}\n" for number in range(30) for place in range(3)
    )
    (folder / "many.csv").write_text("prompt,response\n" + rows + "short,one\n", encoding="utf-8")
    words = ("best-of", "--candidates", "many.csv", "--reward", "rubric:score")
    said = killick(*words)
    assert said.out == killick(*words).out
    assert said.out != killick(*words, "--seed", "1").out
    assert "31 prompts, of which 20 are shown" in " ".join(said.out.split())
    assert "30 of 31 prompts have responses enough for n = 2" in " ".join(said.out.split())


def test_noise_is_not_told_as_a_turn(killick: Command, folder: Path) -> None:
    """Lengths and letters that know nothing of each other: gold is highest somewhere, and that is all."""
    draws = random.Random(0)
    rows = "".join(f"{prompt},{'word ' * draws.randint(1, 60)}{draws.random():.6f}\n"
                   for prompt in range(12) for _ in range(16))  # fmt: skip
    (folder / "noise.csv").write_text("prompt,response\n" + rows, encoding="utf-8")
    said = killick("best-of", "--candidates", "noise.csv", "--reward", "rubric:score", "--gold", "rubric:noise")
    told = " ".join(said.out.split())
    assert "Gold turns" not in told
    assert "but whether it turns there is not sure: the interval reaches n = 16." in told


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--reward", "rubric:score"], ["--candidates FILE, or --model DIR with --prompts FILE"]),
        (["--candidates", "mails.jsonl"], ["Name what chooses: --reward DIR"]),
        (["--candidates", "mails.jsonl", "--reward", "vader", "--n", "4"], ["--n draws answers of a --model"]),
        (["--candidates", "mails.jsonl", "--reward", "vader", "--gold", "people"], ["--gold people is for answers"]),
        (["--candidates", "nowhere.csv", "--reward", "rubric:score"], ["nowhere.csv cannot be read"]),
        (["--candidates", "rubric.py", "--reward", "rubric:score"], ["Line 1 names no response"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:scor"], ["is it score?"]),
        (["--candidates", "mails.jsonl", "--reward", "."], ["is a folder without a reward model", "brand-head"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:failing"], ["line 1", "response 2", "judge is away"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--gold", "rubric:failing"], ["--gold", "line 1"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--ns", "8"], ["--ns goes to 8", "more than 4"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--ns", "0"], ["--ns", "0"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--out", "rubric.py"], ["--out rubric.py"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--show-winners", "-1"], ["--show-winners"]),
        (["--candidates", "mails.jsonl", "--reward", "rubric:score", "--winners", "1"], ["--winners"]),
    ],
)
def test_what_cannot_be_is_one_sentence(killick: Command, folder: Path, words: list[str], parts: list[str]) -> None:
    said = killick("best-of", *words)
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    for part in parts:
        assert part in said.err


def test_the_page_shows_how_a_head_chooses(killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and commands as docs/best-of-n.md has them; a very small speaker stands in for the chat model."""
    takes_the_place(monkeypatch)
    page = (Path(__file__).parents[2] / "docs" / "best-of-n.md").read_text(encoding="utf-8")
    part = page.partition("### By the brand's reward head")[2].partition("## The exact leash")[0]
    table, commands = re.findall(r"```(?:csv|bash)\n(.*?)```", part, re.DOTALL)
    (tmp_path / "copy.csv").write_text(table, encoding="utf-8")
    threads = torch.get_num_threads()
    said = [killick(*line.split()[1:]) for line in commands.splitlines()]
    torch.set_num_threads(threads)
    assert [(each.status, each.err) for each in said] == [(0, ""), (0, "")]
    assert said[0].out.endswith("brand-head is in head.\n")
    assert [path.name for path in (tmp_path / "head").iterdir()] == ["reward.safetensors"]
    assert said[1].out.count("Describe the Kestrel rain jacket .") == 2  # in the table and among the winners
    gold = killick("best-of", "--candidates", "copy.csv", "--reward", "head", "--gold", "head")
    assert "Gold does not turn up to n = 2" in gold.out


def test_its_help_shows_both_forms_of_a_file(killick: Command) -> None:
    said = killick("best-of", "--help")
    assert said.status == 0
    for word in ('"responses": [...]', "module:function", "brand-head", "--show-winners", "--gold"):
        assert word in said.out
