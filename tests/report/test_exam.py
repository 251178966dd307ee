"""The page of an exam: the verdict first, every text escaped, nothing but the folder needed."""

import json
from pathlib import Path

import pytest

import exams
from killick.report import drawing
from killick.report.exam import draw_exam
from killick.rundir.ledger import plain
from killick.types import Refusal


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """Numbers of an exam of a good judge, without a policy."""
    held = exams.held(tmp_path_factory.mktemp("exam") / "p.jsonl", 40)
    return plain({"reward": "my:judge", "file": "p.jsonl", "cpu_s": 1.5, "wall_s": 2.0,
                  **exams.facts(held, exams.setup(exams.GOOD, speak=None))})  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Figures are drawn in their own tests."""
    monkeypatch.setattr(drawing, "render", lambda *args, **more: {"pdf": b"-", "png": b"-", "svg": b"<svg/>"})


def folder(path: Path, facts) -> Path:
    """An exam's folder."""
    for name, content in (("results", facts), ("config", {"recipe": "exam", "n": 16}), ("environment", {"a": "b"})):
        (path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return path


def test_the_page_begins_with_the_verdict_and_ends_with_the_settings(tmp_path, facts):
    assert draw_exam(folder(tmp_path, facts)) == []
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    places = [
        text.index(part) for part in ("how far? Yes, so far.", "Why", "What this cannot tell", "Probes", "Settings")
    ]
    assert places == sorted(places)
    assert text.count("<svg") == 4
    assert "no policy's answers" in " ".join(text.replace("&#39;", "'").split())
    assert "http" not in text.replace("http-equiv", "")


def test_text_of_a_stranger_stays_text(tmp_path, facts):
    hurt = json.loads(json.dumps(facts))
    hurt["reward"] = "<script>alert(1)</script>"
    hurt["examples"]["mistakes"] = [
        {"prompt": "<b>", "chosen": "</table>", "rejected": "\ud800", "score_chosen": 0.0, "score_rejected": 1.0}
    ]
    assert draw_exam(folder(tmp_path, hurt)) == []
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;/table&gt;" in text


def test_a_figure_that_fails_is_told_and_the_page_stands(tmp_path, facts):
    hurt = json.loads(json.dumps(facts))
    hurt["length_bins"] = [{"broken": True}]
    hurt["length_bins"][0] |= dict.fromkeys(("from", "to", "pairs", "accuracy", "low", "high"))
    problems = draw_exam(folder(tmp_path, hurt))
    assert len(problems) == 1
    assert "Figure length is missing" in problems[0]
    assert "Figure length is missing" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_an_exam_that_is_not_finished_or_damaged_is_refused(tmp_path, facts):
    with pytest.raises(Refusal, match=r"results\.json is missing: this exam is not finished"):
        draw_exam(tmp_path)
    (folder(tmp_path, facts) / "results.json").write_text("{", encoding="utf-8")
    with pytest.raises(Refusal, match=r"results\.json is damaged"):
        draw_exam(tmp_path)
    (tmp_path / "results.json").write_text("[]", encoding="utf-8")
    with pytest.raises(Refusal, match=r"results\.json is damaged"):
        draw_exam(tmp_path)


def test_damaged_samples_are_told_and_everything_else_is_drawn(tmp_path, facts):
    (folder(tmp_path, facts) / "samples.jsonl").write_text("{\n", encoding="utf-8")
    (problem,) = draw_exam(tmp_path)
    assert "samples.jsonl, line 1" in problem
