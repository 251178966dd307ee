import sys
from contextvars import ContextVar
from types import SimpleNamespace

import pytest

from folders import ledger_rows
from killick.report.track import Tracker, tracker
from killick.types import Refusal


class Noted:
    def __init__(self, kept):
        self.kept = kept

    def log(self, numbers, step):
        self.kept.append((step, numbers))

    def close(self):
        self.kept.append("closed")


def test_each_cell_has_a_writer_of_its_own_which_gets_numbers_only():
    opened, kept = [], []

    def opening(cell, step):
        opened.append((cell, step))
        return Noted(kept)

    mirror = Tracker(opening)
    mirror.log({"arm": "beta=0.1+ptx", "seed": 2, "step": 7, "gold": 0.5, "finished": None, "reason": "kl is nan"})
    mirror.log({"arm": "beta=0.1+ptx", "seed": 2, "step": 8, "gold": 1})
    mirror.log({"arm": "beta=0", "seed": 2, "step": 0})
    mirror.close()
    mirror.close()
    assert opened == [("beta-0.1-ptx,seed=2", 7), ("beta-0,seed=2", 0)]
    assert kept == [(7, {"gold": 0.5}), (8, {"gold": 1.0}), (0, {}), "closed", "closed"]


def test_tensorboard_reads_back_what_was_mirrored_and_forgets_what_is_written_again(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = ledger_rows("beta=0", 0, steps=6)
    for part in (rows[:5], rows[3:]):  # the second process takes up at step 3
        mirror = tracker("tensorboard", tmp_path)
        for row in part:
            mirror.log(row)
        mirror.close()
    read = EventAccumulator(str(tmp_path / "tensorboard" / "beta-0,seed=0"))
    read.Reload()
    assert [event.step for event in read.Scalars("gold")] == list(range(6))
    assert [event.value for event in read.Scalars("gold")] == pytest.approx([row["gold"] for row in rows])


def test_trackio_keeps_the_cells_apart_though_it_knows_one_current_run(tmp_path, monkeypatch, capsys):
    current, kept = ContextVar("current", default=None), []

    def init(project, name, **more):
        assert more["resume"] == "allow"
        if current.get():
            kept.append("ended by another")
        print("chatter")
        made = SimpleNamespace(
            log=lambda numbers, step: kept.append((project, name, step, numbers)),
            finish=lambda: kept.append("finished"),
        )
        current.set(made)
        return made

    monkeypatch.setitem(sys.modules, "trackio", SimpleNamespace(init=init))
    mirror = tracker("trackio", tmp_path / "run-1")
    for arm in ("beta=0", "beta=1"):
        mirror.log({"arm": arm, "seed": 0, "step": 3, "gold": 1.0})
    mirror.close()
    calls = [("killick-run-1", f"beta-{beta},seed=0", 3, {"gold": 1.0}) for beta in (0, 1)]
    assert kept == [*calls, "finished", "finished"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("first", "kept"), [(3, [5, 6]), (0, [0, 1, 2, 3, 4, 5, 6])])
def test_trackio_is_not_told_twice_what_a_stopped_run_has_told_it(tmp_path, monkeypatch, first, kept):
    """It has steps 0 to 4; the cell is taken up at its state of step 3. A new cell is told from the start."""
    logged = []
    made = SimpleNamespace(log=lambda _, step: logged.append(step), finish=lambda: None, _next_step=5)
    monkeypatch.setitem(sys.modules, "trackio", SimpleNamespace(init=lambda *_, **__: made))
    mirror = tracker("trackio", tmp_path)
    for step in range(first, 7):
        mirror.log({"arm": "beta=0", "seed": 0, "step": step, "gold": 1.0})
    mirror.close()
    assert logged == kept


def test_another_tracker_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(Refusal, match="no tracker 'paper'; there are tensorboard and trackio"):
        tracker("paper", tmp_path)


@pytest.mark.parametrize("kind", ["tensorboard", "trackio"])
def test_without_the_package_one_sentence_says_so(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(Refusal, match=f"pip install {kind}"):
        tracker(kind, tmp_path)
