"""Preference files as a whole: forms found, all bad rows told, nothing half read, round trips in every layout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgements import fields, judged
from killick.preferences.files import BadRows, find_form, read_preferences, scan_preferences, write_preferences
from killick.preferences.formats.forms import FORMS
from killick.preferences.formats.reading import read
from killick.preferences.rows import BadRow, PreferenceRow
from killick.types import Refusal

GOOD = '{"prompt": "a", "chosen": "b", "rejected": "c"}\n'
MANY = {"prompt": "p", "responses": ["a", "b", "c"]}


def written(path: Path, text: str) -> Path:
    """A file with this text."""
    path.write_text(text, encoding="utf-8", newline="")
    return path


# Nothing half read (O-14)


def test_all_bad_rows_are_told_and_none_is_half_read(tmp_path: Path) -> None:
    """Six lines: good, blank, a trailing comma, a list, good, cut."""
    path = written(tmp_path / "a.jsonl", GOOD + '\n{"prompt":"a",}\n[1,2]\n' + GOOD + '{"prompt": "a')
    with pytest.raises(BadRows, match=r"3 bad rows \(line 3, is not JSON") as refused:
        read_preferences(path)
    assert [bad.line for bad in refused.value.rows] == [3, 4, 6]
    rows, bad = read_preferences(path, skip_bad=True)
    assert (len(rows), [each.line for each in bad]) == (2, [3, 4, 6])


def test_rows_are_refused_one_by_one_with_line_field_and_reason(tmp_path: Path) -> None:
    """O-11: five rows that say nothing, and one with a column too many, which is fine."""
    lines = [
        '{"prompt": null, "chosen": "b", "rejected": "c"}',
        '{"prompt": "a", "chosen": "", "rejected": "c"}',
        '{"prompt": "a", "chosen": 7, "rejected": "c"}',
        '{"prompt": "a", "Chosen": "b", "rejected": "c"}',
        '{"prompt": "a", "chosen": "b", "rejected": "c", "extra": 1}',
        '{"prompt": "a", "chosen": "b"}',
    ]
    _, bad = read_preferences(written(tmp_path / "a.jsonl", "\n".join(lines)), skip_bad=True)
    told = {each.line: each.field for each in bad}
    assert told == {1: "prompt", 2: "chosen", 3: "chosen", 4: "chosen", 6: "rejected"}


def test_a_cell_of_csv_that_is_no_json_is_a_bad_row(tmp_path: Path) -> None:
    text = 'prompt,responses,scores\np,"[""a"",""b""]","[1,2]"\np,"[""a""",[1]\n'
    rows, bad = read_preferences(written(tmp_path / "a.csv", text), skip_bad=True)
    assert (len(rows), [(each.line, each.field) for each in bad]) == (1, [(3, "responses")])


# Forms


def test_the_form_is_found_behind_broken_lines_and_may_be_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", "{\n" + GOOD)
    assert find_form(path) == "pairs"
    assert {type(each.row) for each in scan_preferences(path, "hh")} == {BadRow}


def test_each_row_may_have_a_form_of_its_own(tmp_path: Path) -> None:
    """One example row of every form in a file; what a row lacks is told by its own form, nothing by another's."""
    rows = [json.loads(form.example) for form in FORMS.values()]
    alone = [read(row, name) for row, name in zip(rows, FORMS, strict=True)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    assert read_preferences(written(tmp_path / "a.jsonl", text)) == (alone, [])
    bad = written(tmp_path / "b.jsonl", text + '{"prompt": "a", "choice": 1}\n{"prompt": "a"}\n')
    told = [(each.line, each.field) for each in read_preferences(bad, skip_bad=True)[1]]
    assert told == [(10, "responses"), (11, "chosen")]
    cells = 'prompt,chosen,rejected,responses,ranking\na,b,c,,\na,,,"[""b"",""c""]","[1,0]"\na,,c,,\n'
    found, bad_cells = read_preferences(written(tmp_path / "a.csv", cells), skip_bad=True)
    assert [row.place for row in found] == [(0, 1), (1, 0)]
    assert [(each.line, each.field) for each in bad_cells] == [(4, "chosen")]


def test_a_file_of_which_no_line_can_be_read_still_tells_each(tmp_path: Path) -> None:
    assert [each.line for each in scan_preferences(written(tmp_path / "a.jsonl", "{\n[]\n"))] == [1, 2]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.jsonl", "", "holds no rows"),
        ("a.jsonl", "\n\n", "holds no rows"),
        ("a.csv", "prompt,chosen,rejected\n", "holds no rows"),
        ("a.jsonl", '{"question": 1, "answer": 2}', r"columns of no form \(question, answer\)"),
    ],
)
def test_a_file_without_a_form_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        read_preferences(written(tmp_path / name, text))


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", GOOD)
    with pytest.raises(Refusal, match="no form 'pears'"):
        read_preferences(path, form="pears")
    with pytest.raises(Refusal, match="no form 'pears'"):
        write_preferences(tmp_path / "b.jsonl", [], form="pears")


# Round trips


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet", "a.jsonl.gz", "a.csv.gz"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data())
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, name: str, data: Any) -> None:
    """In every layout and form, as strings where every row can be one, else as messages."""
    form = data.draw(st.sampled_from(list(FORMS)))
    long = data.draw(st.booleans()) and form not in ("implicit", "hh")
    rows = [judged(drawn) for drawn in data.draw(st.lists(fields(form, long), min_size=1, max_size=4))]
    path = tmp_path_factory.mktemp("trip") / name
    try:
        write_preferences(path, rows, form=form)
    except Refusal:
        assert form in ("implicit", "hh")  # a text that spells a mark
        assert not path.exists()
        return
    assert read_preferences(path, form=form)[0] == rows


def test_line_separators_inside_a_text_survive(tmp_path: Path) -> None:
    """O-15, and the letters of O-16."""
    row = read({"prompt": "a", "chosen": "x\u2028y\u0085\U0001f44d “é” 日本", "rejected": "z"}, "pairs")
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        write_preferences(tmp_path / name, [row], form="pairs")
        assert read_preferences(tmp_path / name) == ([row], [])


def test_no_locale_decides_the_encoding(tmp_path: Path) -> None:
    """O-16: the same bytes where the locale knows ASCII only."""
    code = (
        "from killick import read_preferences, write_preferences\n"
        "rows, _ = read_preferences('in.jsonl')\n"
        "for name in ('a.jsonl', 'a.csv'): write_preferences(name, rows, form='pairs')\n"
    )
    text = '{"prompt": "“…” é", "chosen": "日本", "rejected": "\U0001f469\u200d\U0001f52c"}\n'
    made = []
    for number, locale in enumerate(
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "1"})
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        written(folder / "in.jsonl", text)
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env=os.environ | locale)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]
    assert made[0]["a.jsonl"] == made[0]["in.jsonl"]


# Writing


def test_what_cannot_be_written_is_counted_and_leaves_no_file(tmp_path: Path) -> None:
    ranked = [read(MANY | {"ranking": ranking}, "ranking") for ranking in ([0, 1, 2], [[0, 1], 2], [[0, 2], 1])]
    with pytest.raises(Refusal, match=r"this row has no single best response \(2, the first at row 2\)"):
        write_preferences(tmp_path / "a.jsonl", ranked, form="choice")
    assert os.listdir(tmp_path) == []


def test_what_is_lost_is_counted(tmp_path: Path) -> None:
    rows = [read(MANY | {"scores": scores}, "scores") for scores in ([3, 2, 1], [1, 1, 0])]
    told = write_preferences(tmp_path / "a.jsonl", rows, form="pairs")
    assert told["rows"] == 5
    assert told["scores are lost"] == 5
    assert told["ties have no chosen response and are left out"] == 1


def test_one_dialogue_makes_all_rows_messages_unless_strings_were_asked_for(tmp_path: Path) -> None:
    """A column of Parquet has one type; a dialogue is no string."""
    plain: PreferenceRow = read({"prompt": "a", "chosen": "b", "rejected": "c"}, "pairs")
    long = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
    rows = [plain, read({"prompt": long, "chosen": "b", "rejected": "c"}, "pairs")]
    for name in ("a.jsonl", "a.parquet"):
        write_preferences(tmp_path / name, rows, form="pairs")
        assert all(isinstance(each.record["prompt"], list) for each in scan_preferences(tmp_path / name))
        assert read_preferences(tmp_path / name)[0] == rows
    with pytest.raises(Refusal, match="no string can keep"):
        write_preferences(tmp_path / "b.jsonl", rows, form="pairs", messages=False)
