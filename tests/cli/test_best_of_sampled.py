"""`killick best-of --model`, as a person runs it: sampled, scored, chosen, stopped and taken up again."""

import json
import sys
from pathlib import Path

import pytest

from commands import Command, command
from killick.models.judging import PretrainedReward
from killick.preferences.store import Store
from llamas import llama_folder
from recipes.scores.test_loading import judge_folder
from stores import FIRST, said

killick = pytest.fixture(command)
RUBRIC = "def short(text): return -len(text)\ndef vowels(texts): return [sum(map(t.count, 'aeiou')) for t in texts]\n"
PROMPTS = ["Say hello.", "My honest review of the lamp:", "Why?"]
FILES = {
    "best_of.pdf", "best_of.png", "candidates.jsonl", "config.json", "curve.csv", "environment.json", "lock",
    "scores.jsonl", "winners.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and a judge."""
    made = tmp_path_factory.mktemp("models")
    llama_folder(made / "model")
    judge_folder(made / "judge")
    return made


@pytest.fixture
def folder(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """These, prompts, a rubric."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "rubric", raising=False)
    (tmp_path / "rubric.py").write_text(RUBRIC, encoding="utf-8")
    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS), encoding="utf-8")
    for name in ("model", "judge"):
        (tmp_path / name).symlink_to(models / name)
    return tmp_path


WORDS = ("best-of", "--model", "model", "--prompts", "prompts.txt", "--n", "4", "--tokens", "8")


def contents(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.name not in ("lock", "environment.json")}


def test_it_draws_scores_chooses_and_a_cut_run_goes_on_to_the_same_bytes(killick: Command, folder: Path) -> None:
    words = (*WORDS, "--reward", "rubric:vowels", "--reward", "0.1*rubric:short", "--gold", "rubric:short")
    begun = killick(*words, "--show-winners", "3", "--out", "kept")
    assert (begun.status, begun.err) == (0, "")
    assert "12 answers of up to 8 tokens to 3 prompts: about " in begun.out
    assert "Read the winners" in begun.out
    assert "killick" not in begun.err
    assert {path.name for path in (folder / "kept").iterdir()} == FILES
    rows = [json.loads(line) for line in (folder / "kept" / "candidates.jsonl").read_text("utf-8").splitlines()]
    for row, winner in zip(rows, (folder / "kept" / "winners.jsonl").read_text("utf-8").splitlines(), strict=True):
        expected = [sum(map(text.count, "aeiou")) - 0.1 * len(text) for text in row["responses"]]
        kept = json.loads(winner)
        assert kept["response"] == row["responses"][expected.index(max(expected))]
        assert kept["reward"] == pytest.approx(max(expected))
        assert kept["gold"] == -len(kept["response"])
    whole = contents(folder / "kept")
    assert killick(*words, "--out", "kept").out.count("answers of up to") == 0
    told = killick("report", "kept")
    assert told.status == 2
    assert "best_of.png" in told.err
    for name, keep in (("candidates.jsonl", 30), ("scores.jsonl", 0)):
        (folder / "kept" / name).write_bytes(whole[name][:keep])
    (folder / "kept" / "winners.jsonl").unlink()
    (folder / "kept" / "curve.csv").unlink()
    again = killick(*words, "--out", "kept")
    assert again.status == 0
    assert {name for name, data in contents(folder / "kept").items() if data != whole[name]} <= {"best_of.pdf"}
    other = killick("best-of", "--candidates", "kept/candidates.jsonl", "--reward", "rubric:short")
    assert other.status == 0
    assert killick(*words, "--seed", "1", "--out", "kept").err.startswith("killick: kept holds a run of other settings")


def test_a_reward_folder_chooses_by_the_scores_it_gives_alone(killick: Command, folder: Path) -> None:
    begun = killick(*WORDS, "--reward", "judge", "--out", "kept")
    assert (begun.status, begun.err) == (0, "")
    judge = PretrainedReward.load(folder / "judge")
    for line in (folder / "kept" / "winners.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        assert row["reward"] == pytest.approx(judge.scores([row["prompt"]], [row["response"]]).item(), abs=1e-6)


def test_people_say_whether_the_winners_are_better(killick: Command, folder: Path) -> None:
    words = (*WORDS, "--reward", "rubric:short", "--gold", "people", "--out", "kept")
    first = killick(*words)
    assert first.status == 0
    winners = [json.loads(line) for line in (folder / "kept" / "winners.jsonl").read_text("utf-8").splitlines()]
    drawn = [json.loads(line) for line in (folder / "kept" / "candidates.jsonl").read_text("utf-8").splitlines()]
    different = sum(row["response"] != all_["responses"][0] for row, all_ in zip(winners, drawn, strict=True))
    assert f"{different} new pairs are queued in kept/labels.db" in first.out
    assert f"people judged 0 of {different} pairs" in first.out
    assert "killick label --store kept/labels.db" in first.out
    with Store(folder / "kept" / "labels.db") as store:
        ada = store.annotator(store.add_annotator("ada"))
        assert ada is not None
        while (card := store.next_card(ada)) is not None:
            assert card.item.id is not None
            store.label(ada, card.item.id, judgement=said(FIRST), key=str(card.item.id))
    second = killick(*words)
    assert f"people judged {different} of {different} pairs" in second.out
    assert f"the policy won {different}, lost 0 and tied 0" in second.out
    assert "new pairs" not in second.out
    found = json.loads((folder / "kept" / "people.json").read_text("utf-8"))
    assert found["rate"] == pytest.approx((different + 0.5 * (3 - different)) / 3)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--model", "model", "--reward", "rubric:short"], "give both, or neither"),
        (["--model", "model", "--prompts", "prompts.txt", "--candidates", "x"], "Name what to choose from"),
        (["--model", "model", "--prompts", "prompts.txt"], "Name what chooses"),
        (["--model", "nowhere", "--prompts", "prompts.txt", "--reward", "vader"], "There is no model folder nowhere"),
        (["--model", "model", "--prompts", "nowhere.txt", "--reward", "vader"], "nowhere.txt cannot be read"),
        (["--model", "model", "--prompts", "empty.txt", "--reward", "vader"], "empty.txt holds no prompt"),
        (["--model", "model", "--prompts", "long.txt", "--reward", "vader"], "Prompt 1 has"),
        ([*WORDS[1:], "--reward", "model"], "lacks the weights score.weight"),
        ([*WORDS[1:], "--reward", "people"], "only --gold can be people"),
        ([*WORDS[1:], "--reward", "vader", "--n", "0"], "--n must be 1 or more, not 0"),
        ([*WORDS[1:], "--reward", "vader", "--temperature", "0"], "--temperature must be a positive number"),
        ([*WORDS[1:], "--reward", "vader", "--out", "model"], "model holds something that is no run"),
        ([*WORDS[1:], "--reward", "vader", "--ns", "8"], "--ns goes to 8, but each prompt gets only 4 answers"),
    ],
)
def test_what_cannot_be_is_one_sentence(killick: Command, folder: Path, words: list[str], part: str) -> None:
    (folder / "empty.txt").touch()
    (folder / "long.txt").write_text("word " * 300, encoding="utf-8")
    said = killick("best-of", *words)
    assert (said.status, len(said.err.splitlines())) == (2, 1)
    assert part in said.err
