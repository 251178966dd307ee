"""Whatever a line holds, it is a row or a bad row with its line and a reason: never a traceback, and flat memory."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from killick.preferences.files import scan_preferences
from killick.preferences.formats.cells import to_cells
from killick.preferences.formats.forms import FORMS
from killick.preferences.formats.saving import save
from killick.preferences.formats.writing import write
from killick.preferences.rows import BadRow, judged_pairs
from killick.preferences.summary import Summary
from killick.preferences.text_pairs import text_pairs

STRANGE: list[Any] = [
    None, True, 0, -1, 7, 2**63, 1e308, -0.0, "", " ", "\0", "\ud800", "\u2028", "\n\nHuman:", [], {}, [[]], [None],
    [{"role": "user", "content": "x"}], [{"role": "assistant"}], {"role": 1, "content": []}, "[{'role': 'user'}]",
    "<nan>", "<inf>", "<big>", "<digits>", "<deep>", "<deeper>", "first", "tie", [0, 0], [1, [0]], [[1], [0], [2]],
]  # fmt: skip
RAW = {
    "<nan>": "NaN", "<inf>": "-Infinity", "<big>": "1e999", "<digits>": "9" * 5000, "<deep>": "[" * 400 + "]" * 400,
    "<deeper>": '{"a":' * 3000 + "1" + "}" * 3000,
}  # fmt: skip
"""What json.dumps would not write."""


def valid(draws: random.Random) -> dict[str, Any]:
    """A row of some form, sometimes with a trait."""
    row: dict[str, Any] = json.loads(draws.choice([form.example for form in FORMS.values()]))
    if draws.random() < 0.5:
        row |= {"annotator": "ann", "group": 3, "margin": 0.5, "shown": False}
    return row


def spoiled(row: Any, draws: random.Random) -> Any:
    """The row with one of its values, at any depth, or one of its names replaced or gone."""
    if isinstance(row, list) and row and draws.random() < 0.7:
        place = draws.randrange(len(row))
        return [*row[:place], spoiled(row[place], draws), *row[place + 1 :]]
    if isinstance(row, dict) and row and draws.random() < 0.8:
        name = draws.choice(list(row))
        rest = {key: value for key, value in row.items() if key != name}
        fate = draws.random()
        return rest if fate < 0.15 else rest | {name.upper() if fate < 0.25 else name: spoiled(row[name], draws)}
    return draws.choice(STRANGE)


def broken(draws: random.Random) -> bytes:
    """One line, spoiled as values, as text, as bytes, or all of it; about one in eight stays as it was."""
    row = valid(draws)
    if draws.random() < 0.6:
        row = spoiled(row, draws)
    text = json.dumps(row, ensure_ascii=draws.random() < 0.5)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    if draws.random() < 0.15:
        text = text.replace("{", '{"prompt": "twice", ', 1)
    line = text.encode(errors="surrogatepass")
    for _ in range(draws.choice([0, 0, 0, 1, 1, 2, 5])):
        place, end = sorted(draws.choices(range(len(line) + 1), k=2))
        byte = bytes([draws.randrange(256)])
        fates = [line[:place], line[:place] + byte + line[place + 1 :], line[:place] + byte + line[place:], line + line]
        fates += [line[:place] + line[end:], line[:end] + line[place:], line.decode("latin-1").encode("utf-16")]
        line = draws.choice(fates)
    return line


def go_through(path: Path, form: str, lines: int) -> tuple[int, int]:
    """Scan a file and use what is good in it; how many rows were good, and how many bad."""
    good, bad, last = [], 0, 0
    for scanned in scan_preferences(path, form):
        assert last < scanned.line <= lines
        last = scanned.line
        if isinstance(scanned.row, BadRow):
            assert scanned.row.line == scanned.line
            assert 3 < len(scanned.row.reason) < 200
            assert "\n" not in str(scanned.row)
            bad += 1
        else:
            good.append(scanned.row)
            records = write(scanned.row, "comparison", messages=True).records
            assert len(records) <= len(list(judged_pairs(scanned.row)))
    summary = Summary()
    for row in good:
        summary.add(row)
    assert json.dumps(summary.figures(), allow_nan=False)
    assert len(text_pairs(good, equal="keep")) <= summary.pairs + summary.ties
    return len(good), bad


def survive(folder: Path, count: int, *, seed: int) -> None:
    """As many broken lines in JSONL and in CSV; every form finds rows and bad rows among them."""
    draws = random.Random(seed)
    lines = [valid_line(draws), *(broken(draws) for _ in range(count))]
    path = folder / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    number = path.read_bytes().count(b"\n") + 1
    for form in FORMS:
        good, bad = go_through(path, form, number)
        assert good > count / 60, form
        assert bad > count / 2, form
    columns = sorted({name for form in FORMS.values() for name in json.loads(form.example)})
    good_ones = [json.loads(form.example) for form in FORMS.values()]
    save(folder / "a.csv", (draws.choice(good_ones) for _ in range(count // 4)), columns=columns)
    header, *rows = (folder / "a.csv").read_bytes().split(b"\n")
    for place in range(len(rows)):
        if draws.random() < 0.6:
            at = draws.randrange(len(rows[place]) + 1)
            rows[place] = (
                rows[place][:at] + draws.choice([b"", b'"', b",", b"\xff", b"\0", b"\r", b"[{"]) + rows[place][at + 1 :]
            )
    (folder / "b.csv").write_bytes(b"\n".join([header, *rows]))
    for form in ("pairs", "ranking", "comparison"):
        good, bad = go_through(folder / "b.csv", form, len(rows) + 1)
        assert good > 10
        assert bad > 10


def valid_line(draws: random.Random) -> bytes:
    """A first line that says what the file is."""
    return json.dumps(valid(draws)).encode()


def test_two_thousand_broken_lines_give_no_traceback(tmp_path: Path) -> None:
    survive(tmp_path, 2_000, seed=0)


@pytest.mark.slow
def test_fifty_thousand_broken_lines_give_no_traceback(tmp_path: Path) -> None:
    survive(tmp_path, 50_000, seed=1)


def test_strange_values_in_cells_and_columns_of_other_types(tmp_path: Path) -> None:
    """Columns of every form as whole Parquet columns of another type, half of the types each."""
    import datetime
    import decimal

    import pyarrow
    import pyarrow.parquet

    values: list[Any] = [
        [b"bytes", None], [datetime.date(2020, 1, 1), None], [decimal.Decimal("1.5"), None], [1, None], [0.5, None],
        [True, None], ["", "x"], [[1], []], [["a"], None], [{"role": "user"}, None], [[{"content": "x"}], None],
        [float("nan"), float("inf")],
    ]  # fmt: skip
    for turn, form in enumerate(FORMS):
        example = json.loads(FORMS[form].example) | ({"ranking": [[1], [0, 2]]} if form == "ranking" else {})
        names = [*example, "annotator", "margin", "shown"]
        for place, column in list(enumerate(values))[turn % 2 :: 2]:
            table = {key: [value] * 2 for key, value in example.items()} | {names[(place + turn) % len(names)]: column}
            pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
            go_through(tmp_path / "a.parquet", form, 2)


def peak(path: Path) -> int:
    """Kilobytes that checking a file takes at most, in a process of its own."""
    child = subprocess.Popen([sys.executable, "-m", "killick", "prefs", "check", str(path)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_maxrss


def test_ten_times_the_rows_take_no_more_memory(tmp_path: Path) -> None:
    """50,000 rows, 17 MB of text; the difference is less than a fifth of it."""
    for name, count in (("few", 5_000), ("many", 50_000)):
        rest = f'{"x" * 100}", "chosen": "{"y" * 100}", "rejected": "{"z" * 100}"}}\n'
        text = "".join(f'{{"prompt": "{number} {rest}' for number in range(count))
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    assert peak(tmp_path / "many.jsonl") < peak(tmp_path / "few.jsonl") + 3000


def test_cells_of_every_example_come_back() -> None:
    for form in FORMS.values():
        assert all(isinstance(cell, str) for cell in to_cells(json.loads(form.example)).values())
