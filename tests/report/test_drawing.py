import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from folders import ledger_rows, lines, put, run_folder
from killick.report import drawing, figures
from killick.report.drawing import draw
from killick.report.style import render
from killick.types import Refusal


def names(folder):
    return sorted(path.name for path in (folder / "figures").iterdir())


def test_a_run_becomes_figures_and_a_page_the_same_each_time(tmp_path):
    folder = run_folder(tmp_path, arms=("beta=0",), steps=30)
    assert draw(folder, question="What now?") == []
    stems = ["arm-beta-0", "digit-weights", "gold-against-distance", "overview"]
    assert names(folder) == sorted(f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png"))
    for path in (folder / "figures").glob("*.pdf"):
        assert b"/FontFile2" in path.read_bytes()
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.count("<svg") == len(stems)
    assert "What now?" in text
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert draw(folder, question="What now?") == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_figure_that_the_run_no_longer_has_is_removed_when_it_is_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "render", lambda *args, **more: {"pdf": b"-", "png": b"-", "svg": b"<svg/>"})
    folder = run_folder(tmp_path, arms=("beta=0", "beta=0.1"), steps=5)
    draw(folder)
    (folder / "figures" / "notes.txt").write_text("mine", encoding="utf-8")
    run_folder(tmp_path, arms=("beta=0.1",), steps=5)
    assert draw(folder) == []
    stems = ["arm-beta-0.1", "digit-weights", "overview"]
    assert names(folder) == sorted([*(f"{stem}.{kind}" for stem in stems for kind in ("pdf", "png")), "notes.txt"])


@pytest.mark.parametrize("steps", [0, 1])
def test_no_point_and_one_point_are_drawn(tmp_path, steps):
    folder = run_folder(tmp_path, arms=("beta=0.1",), steps=steps)
    put(folder / "stages.json", {})
    assert draw(folder) == []
    assert (folder / "figures" / "arm-beta-0.1.png").exists() == bool(steps)
    assert (folder / "report.html").exists()


def test_a_history_of_nothing_but_null_is_drawn(tmp_path):
    rows = [
        {key: value if key in ("arm", "seed", "step") else None for key, value in row.items()}
        for row in ledger_rows("beta=0", 0, steps=5)
    ]
    (tmp_path / "metrics.jsonl").write_text(lines(rows), encoding="utf-8")
    assert draw(tmp_path) == []
    assert "overview.pdf" in names(tmp_path)


def test_an_interrupted_run_is_drawn_as_far_as_it_went(tmp_path):
    folder = run_folder(tmp_path, arms=("beta=0.1",), steps=12, finished=False)
    put(folder / "cells" / "stages,seed=0.json", {})
    assert draw(folder) == []
    assert "This run is not finished" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_figure_that_fails_is_told_and_takes_nothing_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "overview", lambda shown: 1 / 0)
    monkeypatch.setattr(drawing, "render", lambda *args, **more: {"pdf": b"-", "png": b"-", "svg": b"<svg/>"})
    folder = run_folder(tmp_path, arms=("beta=0.1",), steps=5)
    assert draw(folder) == ["Figure overview is missing: ZeroDivisionError: division by zero."]
    assert "overview.png" not in names(folder)
    assert "arm-beta-0.1.png" in names(folder)
    assert "Figure overview is missing" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_page_that_fails_is_told_and_the_figures_stand(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "makers", lambda shown: {})
    monkeypatch.setattr(drawing, "page", lambda *args, **more: 1 / 0)
    assert draw(run_folder(tmp_path, steps=2)) == ["report.html is missing: ZeroDivisionError: division by zero."]


def test_a_damaged_ledger_is_refused_and_other_damage_told(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "makers", lambda shown: {})
    folder = run_folder(tmp_path, steps=2)
    (folder / "results.json").write_text("{", encoding="utf-8")
    (problem,) = draw(folder)
    assert "results.json is damaged" in problem
    (folder / "metrics.jsonl").write_text('{"arm":', encoding="utf-8")
    with pytest.raises(Refusal, match=r"metrics\.jsonl, line 1"):
        draw(folder)


def test_figures_are_drawn_from_threads_with_their_fonts(tmp_path):
    def paint(figure):
        figure.subplots().plot([0, 1])

    done = []
    threads = [threading.Thread(target=lambda: done.append(render(paint, size=(1.5, 1.2)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert all(files == done[0] for files in done)


def test_two_hundred_plots_leave_no_figure_behind(monkeypatch):
    monkeypatch.setattr("killick.report.style.CLEAN", {"svg": {"Date": None}})
    gc.collect()
    before = sum(type(found) is Figure for found in gc.get_objects())
    for _ in range(200):
        render(lambda figure: figure.text(0.5, 0.5, "x"), size=(1, 1))
    gc.collect()
    assert sum(type(found) is Figure for found in gc.get_objects()) <= before


def test_neither_a_screen_nor_a_home_is_needed(tmp_path):
    (tmp_path / "home").write_text("a file, so that nobody can make a folder here", encoding="utf-8")
    code = (
        "import sys; from killick.report.style import render;"
        "files = render(lambda figure: figure.subplots().plot([0, 1]), size=(2, 2));"
        "assert files['pdf'] and files['png'] and not {'matplotlib.pyplot', 'tkinter'} & set(sys.modules)"
    )
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH", "OMP_NUM_THREADS")}
    more = {"MPLBACKEND": "TkAgg", "HOME": str(tmp_path / "home" / "none")}
    subprocess.run([sys.executable, "-c", code], env=kept | more, check=True, timeout=120)


def test_no_figure_goes_through_pyplot():
    for path in Path(drawing.__file__).parent.glob("*.py"):
        assert "pyplot" not in path.read_text(encoding="utf-8"), path
