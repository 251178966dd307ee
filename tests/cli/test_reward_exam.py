"""`killick reward exam` as a user would run it."""

import json
from pathlib import Path

import pytest

import exams
from killick.cli import main
from llamas import llama_folder

JUDGES = """
import exams
def good(text): return exams.quality(text)
def length(text): return len(text) / 20
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a preference file and two judges, which one stands in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(Path(__file__).parents[1]), *__import__("sys").path])
    exams.write(tmp_path / "prefs.jsonl", exams.rows(60, seed=0))
    (tmp_path / "exam_judges_here.py").write_text(JUDGES, encoding="utf-8")
    return tmp_path


def test_a_judge_of_length_is_examined_and_drawn_again_from_its_folder(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    llama_folder(here / "speaker")
    capsys.readouterr()
    words = "reward exam exam_judges_here:length prefs.jsonl --policy speaker --gold exam_judges_here:good"
    words += " --out done --n 4 --prompts 5 --tokens 8"
    main(words.split())
    said = capsys.readouterr().out
    assert "VERDICT: Do not optimise against it." in said
    assert "Examined on 60 pairs of 60 prompts: all of the file" in said
    folder = here / "done"
    facts = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert facts["verdict"]["level"] == "no"
    assert facts["ceiling"]["ceiling"] is None
    assert "annotators" in facts["ceiling"]["reason"]
    assert len((folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines()) == 60
    assert len((folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()) == 5 * 4
    stems = {path.stem for path in (folder / "figures").glob("*.png")}
    assert stems == {"slope", "probes", "accuracy", "length", "reliability", "spread"}
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "May one optimise against it, and how far? No." in page
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (here / "prefs.jsonl").unlink()  # everything shown is redrawn from the folder alone
    main(["report", "done"])
    assert "VERDICT: Do not optimise against it." in capsys.readouterr().out
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    monkeypatch.setattr("killick.report.exam.draw_figures", lambda *_: ([], []))
    main(words.split())
    assert "This exam is finished; it is drawn again." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere prefs.jsonl", "REWARD nowhere is neither a folder nor module:function"),
        ("exam_judges_here:good missing.jsonl", "There is no preference file missing.jsonl."),
        ("exam_judges_here:good prefs.jsonl --policy nowhere", "nowhere"),
        ("exam_judges_here:good prefs.jsonl --gold vader", "--gold is read off the answers of a policy"),
        ("exam_judges_here:good prefs.jsonl --device gpu", "--device must be auto, cpu, cuda or mps, not gpu"),
        ("exam_judges_here:good prefs.jsonl --n 1", "--n must lie in 2..1024, not 1"),
        ("exam_judges_here:good few.jsonl", "few.jsonl holds 4 pairs with a winner; an exam needs 10 or more."),
        ("exam_judges_here:good prefs.jsonl --out taken", "taken holds something that is no run"),
    ],
)
def test_what_cannot_be_examined_is_one_sentence(
    here: Path, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exams.write(here / "few.jsonl", exams.rows(4, seed=0))
    (here / "taken").mkdir()
    (here / "taken" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main(["reward", "exam", *words.split()])
    told = capsys.readouterr().err
    assert stop.value.code == 2
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (here / "runs").exists()
