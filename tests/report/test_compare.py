import pytest

from folders import put, run_folder
from killick.report import compare as module
from killick.report.compare import compare
from killick.types import Refusal


@pytest.fixture
def two(tmp_path):
    first = run_folder(tmp_path / "first", arms=("beta=0", "beta=1"), steps=12)
    second = run_folder(tmp_path / "second", arms=("beta=0", "beta=0.1"), seeds=(0, 1), steps=12)
    return first, second


def test_two_runs_become_a_figure_and_a_table(tmp_path, two):
    text = compare(*two, out=tmp_path / "new" / "out")
    assert sorted(path.name for path in (tmp_path / "new" / "out").iterdir()) == [
        "compare.md",
        "compare.pdf",
        "compare.png",
    ]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    assert rows[0] == ["arm", "proxy, first", "proxy, second", "gold, first", "gold, second", "KL, first", "KL, second"]
    assert [row[0] for row in rows[1:]] == ["beta=0", "beta=1", "beta=0.1"]
    assert rows[2][2] == "-"  # the second run has no such arm
    assert "±" in rows[1][2]
    assert "- seeds: [0] -> [0, 1]" in text
    assert (tmp_path / "new" / "out" / "compare.md").read_text(encoding="utf-8") == text


def test_a_run_against_itself_has_no_setting_that_differs(tmp_path, two, monkeypatch):
    monkeypatch.setattr(module, "render", lambda *args, **more: {"pdf": b"", "png": b""})
    assert "The settings are the same." in compare(two[0], two[0], out=tmp_path / "out")


def test_the_table_stands_when_the_figure_fails(tmp_path, two, monkeypatch):
    monkeypatch.setattr(module, "render", lambda *args, **more: 1 / 0)
    put(two[1] / "config.json", {"recipe": "other"})
    text = compare(*two, out=tmp_path / "out")
    assert "The figure is missing: ZeroDivisionError" in text
    assert "- ppo.n: 1 -> -" in text
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["compare.md"]


def test_a_place_that_cannot_be_written_and_a_folder_without_a_run_are_refused(tmp_path, two):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Refusal, match="cannot be written"):
        compare(*two, out=tmp_path / "file")
    with pytest.raises(Refusal, match="holds no ledger"):
        compare(two[0], tmp_path, out=tmp_path / "out")
