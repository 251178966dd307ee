"""Progress: lines where nobody looks at a terminal, one line redrawn where somebody does, nothing for what is quick."""

from collections.abc import Generator

import pytest

from killick.cli.progress import Watch, watched
from killick.recipes.ledger import Note
from killick.recipes.reward.states import Progress


@pytest.fixture(name="clock")
def ticking(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("killick.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_a_line_every_ten_seconds_with_the_time_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """100 of 1,000 in the first 8 seconds, 200 in 16: 64 seconds for the other 800."""
    watch = Watch()
    for seconds, done in ((0, 0), (8, 100), (16, 200), (80, 1000)):
        clock[0] = seconds
        watch.progress("reading", done, total=1000)
    assert capsys.readouterr().out.splitlines() == ["reading: 200 of 1,000, 64 s left", "reading: 1,000 of 1,000"]
    clock[0] = 100
    watch.progress("fitting", 1, total=2)
    clock[0] = 101
    watch.progress("fitting", 2, total=2)
    assert capsys.readouterr().out == ""


def test_a_terminal_shows_one_line_again_and_again(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    watch = Watch()
    for seconds, done in ((0, 0), (300, 10), (301, 11)):
        clock[0] = seconds
        watch.progress("reading", done, total=100)
    watch.say("A word between.")
    clock[0] = 400
    watch.progress("reading", 100, total=100)
    said = capsys.readouterr().out
    assert said.count("\r") == 3
    assert "10 of 100, 45 min left" in said
    assert "left\nA word between.\n" in said
    assert said.endswith("reading: 100 of 100\n")


def test_work_is_run_to_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> Generator[Note | Progress, None, int]:
        yield Note("Something.")
        yield Progress("reading", 1, 1)
        return 7

    assert watched(work()) == 7
    assert capsys.readouterr().out == "Something.\n"
