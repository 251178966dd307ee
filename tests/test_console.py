"""What a person sees: plain lines in a file, a table on a terminal, and every arm in one sentence at the end."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any

import pytest

from killick import console as module
from killick.console import Clock, Live, Plain, claims_table, console, number, table_lines, verdicts


class Terminal(StringIO):
    """A screen that nobody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 120 columns; it becomes standard output inside `looking` only, since pytest has its own."""
    screen = Terminal()
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "120"), ("LINES", "40")):
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return screen


@contextmanager
def looking(terminal: Terminal, cells: dict[str, int]) -> Iterator[Plain | Live]:
    """A console on that terminal."""
    with redirect_stdout(terminal), console(cells) as said:
        yield said


def row(step: int, arm: str = "beta=0", **changes: Any) -> dict[str, Any]:
    return {"arm": arm, "seed": 0, "step": step, "proxy": 0.1 * step, "gold": 0.25, "kl": 0.5 * step, "entropy": 1.5,
            "length": 3.0, "finished": None, **changes}  # fmt: skip


# Plain


def test_a_file_gets_a_head_and_every_tenth_step_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, no carriage return, no escape code (O-55)."""
    with console({"beta=0,seed=0": 25}) as said:
        assert isinstance(said, Plain)
        said.note("beta=0,seed=0", "SFT accuracy 0.5")
        for step in range(25):
            said.row("beta=0,seed=0", row(step))
    text = capsys.readouterr().out
    assert not {"\r", "\x1b", "\b"} & set(text)
    lines = text.splitlines()
    assert lines[0] == "[beta=0,seed=0] SFT accuracy 0.5"
    assert lines[1].split() == ["cell", "step", "proxy", "gold", "kl", "entropy", "length", "finished", "left"]
    assert [line.split()[1] for line in lines[2:]] == ["0", "10", "20", "24"]
    assert lines[3].split()[2:8] == ["1.000", "0.250", "5.000", "1.500", "3.000", "-"]
    assert lines[-1].split()[-2:] == ["0", "s"]


def test_lines_of_several_cells_stand_under_one_head(capsys: pytest.CaptureFixture[str]) -> None:
    said = Plain({"beta=0,seed=0": 3, "beta=0.1+ptx,seed=10": 3})
    for step in range(3):
        for cell in said.cells:
            said.row(cell, row(step))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert len({line.index("0.250") for line in lines[1:]}) == 1


# Live


def test_a_terminal_gets_a_table_that_is_redrawn_in_place(terminal: Terminal) -> None:
    """A line a cell with its step, its numbers and a bar; the last note and the time left below; the last picture
    stays."""
    with looking(terminal, {"beta=0,seed=0": 10, "beta=0.1+ptx,seed=0": 10}) as said:
        assert isinstance(said, Live)
        said.note("beta=0,seed=0", "SFT accuracy 0.5")
        for step in range(10):
            said.row("beta=0,seed=0", row(step, gold=0.125 * step))
        said.row("beta=0.1+ptx,seed=0", row(0))
    text = terminal.getvalue()
    assert "\x1b[" in text
    last = text[text.rindex("cell") :]
    for word in ("10/10", "1/10", "beta=0.1+ptx,seed=0", "1.125", "4.500", "SFT accuracy 0.5", "left", "━"):
        assert word in last, word
    assert text.endswith("\x1b[?25h")


def test_a_terminal_shows_every_cell_before_its_first_step(terminal: Terminal) -> None:
    with looking(terminal, {"beta=0,seed=0": 10, "beta=1,seed=3": 20}):
        pass
    text = terminal.getvalue()
    assert all(word in text for word in ("beta=0,seed=0", "beta=1,seed=3", "0/10", "0/20", "starting"))


def test_the_cursor_comes_back_when_a_run_is_stopped(terminal: Terminal) -> None:
    with pytest.raises(KeyboardInterrupt), looking(terminal, {"beta=0,seed=0": 10}):
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize("width", [80, 100])
def test_the_three_numbers_can_be_read_on_a_narrow_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Proxy, gold and KL of the longest arm name there is by default, whole."""
    monkeypatch.setenv("COLUMNS", str(width))
    with looking(terminal, {"beta=0.1+ptx,seed=0": 120}) as said:
        said.row("beta=0.1+ptx,seed=0", row(101, proxy=-10.125, gold=0.375, kl=41.625))
    text = terminal.getvalue()
    for word in ("beta=0.1+ptx,seed=0", "102/120", "-10.125", "0.375", "41.625"):
        assert word in text, word


def test_square_brackets_in_a_note_are_shown_as_they_are(terminal: Terminal) -> None:
    """They are no markup."""
    with looking(terminal, {"beta=0,seed=0": 10}) as said:
        said.note("beta=0,seed=0", "weights [red] and [/b]")
    assert "weights [red] and [/b]" in terminal.getvalue()


# Time


def test_rate_and_time_left_follow_from_the_steps_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps a second: 98 left are 49 s; at one step in ten seconds, 95 left are 16 minutes."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    clock = Clock(100)
    assert (clock.rate(), clock.left()) == ("starting", "-")
    clock.tick()
    assert (clock.rate(), clock.left()) == ("starting", "-")
    now[0] += 0.5
    clock.tick()
    assert (clock.rate(), clock.left()) == ("2.0 steps/s", "49 s")
    for _ in range(3):
        clock.tick()
    now[0] += 39.5
    assert (clock.rate(), clock.left()) == ("0.1 steps/s", "16 min")


def test_numbers_have_three_decimals_and_nothing_is_a_dash() -> None:
    assert [number(value) for value in (None, 0.0, -1.23456)] == ["-", "0.000", "-1.235"]
    assert [number(value) for value in (999999999.0, 1e9, -1e100)] == ["999999999.000", "1.000e+09", "-1.000e+100"]


# The end


def test_claims_are_told_line_by_line() -> None:
    """Arm, text, source, band, what came out and whether it holds."""
    claim = {"id": "x", "arm": "beta=0", "text": "final gold", "source": "-1", "low": None, "high": -0.9,
             "measured": -1.0, "spread": 0.125, "kind": "claim", "holds": True}  # fmt: skip
    setting = {**claim, "arm": None, "kind": "setting", "holds": None, "spread": None, "measured": None}
    lines = claims_table([claim, {**claim, "holds": False}, setting])
    assert lines[0].split() == ["claim", "source", "band", "here", "holds"]
    assert lines[1].split() == ["beta=0:", "final", "gold", "-1", "to", "-0.9", "-1", "±0.12", "yes"]
    assert lines[2].endswith("NO")
    assert lines[3].split() == ["final", "gold", "-1", "-", "-", "setting"]


def test_a_table_is_told_with_its_note_and_numbers_to_the_right() -> None:
    """Counts as they are, other numbers with three decimals, nothing as a dash."""
    table = {"title": "Ends", "note": "The last row is best.", "columns": ["arm", "gold", "step"],
             "rows": [["beta=0", 1.5, 25], ["beta=0.5+ppo", -0.12345, None]]}  # fmt: skip
    assert table_lines(table) == [
        "Ends",
        "The last row is best.",
        "",
        "arm             gold  step",
        "beta=0         1.500    25",
        "beta=0.5+ppo  -0.123     -",
    ]


def test_a_wide_table_is_broken_where_its_words_allow_it() -> None:
    """At most 100 columns: the longest column of words gives way, none is lost, and the other columns stay aligned."""
    words = " ".join(f"word{i}" for i in range(40))
    table = {"title": "T", "note": words, "columns": ["what", "a number with a long name", "why"],
             "rows": [["short", 1.25, words], ["x", 2.5, "end"]]}  # fmt: skip
    lines = table_lines(table)
    assert max(map(len, lines)) <= 100
    body = lines[lines.index("") + 1 :]
    assert [word for line in body for word in line.split() if word.startswith("word")] == words.split()
    first, last = next(line for line in body if "1.250" in line), body[-1]
    assert first.index("word0") == last.index("end")
    assert first.index("1.250") == last.index("2.500")


def test_an_arm_is_told_in_one_sentence() -> None:
    """Gold smoothed over five steps, at the edge over what there is: (0, 1, 2, 1, -1) has its best mean, 1, at step 1
    ((0 + 1 + 2 + 1) / 4) and at step 0 ((0 + 1 + 2) / 3): the first wins."""
    rows = [row(i, proxy=float(i), gold=gold, kl=0.5 * i, finished=0.25) for i, gold in enumerate((0.0, 1, 2, 1, -1))]
    assert verdicts(rows) == [
        "beta=0: the proxy went from +0.00 to +4.00 at a KL of 2.00 nats; gold began at +0.00, was best around step 0 "
        "(+1.00) and ended at -1.00, and 25% of the responses end by themselves."
    ]
    for each in rows:
        each["kl"] = each["finished"] = None
    assert verdicts(rows)[0].endswith("+4.00; gold began at +0.00, was best around step 0 (+1.00) and ended at -1.00.")


def test_seeds_are_averaged_and_arms_keep_their_order() -> None:
    """Proxies 1 and 3 at the end: 2; an arm whose seeds got differently far is told with what there is."""
    rows = [row(0, "b", proxy=1.0), row(0, "b", proxy=3.0, kl=2.0), row(0, "a"), row(1, "a")]
    first, second = verdicts(rows)
    assert first.startswith("b: the proxy went from +2.00 to +2.00 at a KL of 1.00 nats")
    assert second.startswith("a: ")
    assert verdicts([]) == []


def test_nothing_is_drawn_before_a_terminal_is_known_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, rich is not even imported."""
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with module.console({"beta=0,seed=0": 1}) as said:
        assert isinstance(said, Plain)


def test_a_persons_text_does_not_steer_the_terminal() -> None:
    table = {"title": "t", "note": "n", "columns": ["answer"], "rows": [["a\x1b[2J\nb\u202e\u00e9"]]}
    assert table_lines(table)[-1] == "a [2J b \u00e9"
