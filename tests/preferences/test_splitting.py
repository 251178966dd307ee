"""A split by prompt: no prompt on two sides, no row lost or changed, and no new row moves an old prompt (O-12)."""

import csv
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from killick.preferences.files import BadRows, scan_preferences
from killick.preferences.formats.lines import records
from killick.preferences.splitting import PARTS, split
from killick.refusal import Refusal

SEED = 3
"""Puts 8 of the ten prompts into the first part of .8."""


def rows(prompts: int = 10, pairs: int = 4) -> list[dict[str, object]]:
    """Pairs to each prompt, written with other case and outer spaces from pair to pair."""
    written = ("Prompt {}", "prompt {}", "PROMPT {} ", " Prompt {}")
    return [
        {"prompt": written[pair].format(number), "chosen": f"good {pair}", "rejected": "poor", "id": {"n": pair}}
        for number in range(prompts)
        for pair in range(pairs)
    ]


def jsonl(path: Path, found: list[dict[str, object]]) -> Path:
    """A file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return path


def prompts(path: Path) -> set[str]:
    """The prompts of a file, as a split sees them."""
    return {str(each.record["prompt"]).strip().casefold() for each in scan_preferences(path)}


def test_ten_prompts_with_four_pairs_each(tmp_path: Path) -> None:
    """8 and 2 prompts, 32 and 8 rows; every row as it was, columns that no form knows included."""
    source = jsonl(tmp_path / "a.jsonl", rows())
    made = split(source, tmp_path / "out", shares=(0.8, 0.0, 0.2), seed=SEED)
    assert (made.prompts, made.rows) == ([8, 0, 2], [32, 0, 8])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["test.jsonl", "train.jsonl"]
    train, test = tmp_path / "out" / "train.jsonl", tmp_path / "out" / "test.jsonl"
    assert not prompts(train) & prompts(test)
    back = [record for path in (train, test) for _, record in records(path)]
    assert sorted(map(str, back)) == sorted(map(str, rows()))


def test_new_rows_and_another_order_move_no_prompt(tmp_path: Path) -> None:
    split(jsonl(tmp_path / "a.jsonl", rows()), tmp_path / "one", shares=(0.4, 0.3, 0.3), seed=1)
    split(jsonl(tmp_path / "b.jsonl", rows(40)[::-1]), tmp_path / "two", shares=(0.4, 0.3, 0.3), seed=1)
    for name in PARTS:
        assert prompts(tmp_path / "one" / f"{name}.jsonl") <= prompts(tmp_path / "two" / f"{name}.jsonl")


def test_a_part_that_no_prompt_falls_into_has_no_file(tmp_path: Path) -> None:
    made = split(jsonl(tmp_path / "a.jsonl", rows(1)), tmp_path / "out", shares=(0.98, 0.01, 0.01), seed=0)
    assert made.rows == [4, 0, 0]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["train.jsonl"]


def test_the_same_row_twice_is_written_once_unless_two_annotators_wrote_it(tmp_path: Path) -> None:
    row: dict[str, object] = {"prompt": "p", "chosen": "a", "rejected": "b"}
    found = [row, row, row | {"annotator": "ann"}, row | {"annotator": "ben"}]
    made = split(jsonl(tmp_path / "a.jsonl", found), tmp_path / "out", shares=(1.0, 0.0, 0.0), seed=0)
    assert (made.rows[0], made.repeated) == (3, 1)


def test_csv_and_parquet_keep_their_layout_and_columns(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist(rows())
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    split(tmp_path / "a.parquet", tmp_path / "p", shares=(0.8, 0.0, 0.2), seed=SEED)
    parts = [pyarrow.parquet.read_table(tmp_path / "p" / f"{name}.parquet") for name in ("train", "test")]
    assert [part.schema for part in parts] == [table.schema] * 2
    assert sum(part.num_rows for part in parts) == 40
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file)
        messages = json.dumps([{"role": "user", "content": "p, q"}])
        written.writerows([["id", "prompt", "chosen", "rejected", "margin"], ["7", messages, "a\nb", "c", ""]])
    split(tmp_path / "a.csv", tmp_path / "c", shares=(1.0, 0.0, 0.0), seed=0)
    before, after = (list(records(path)) for path in (tmp_path / "a.csv", tmp_path / "c" / "train.csv"))
    assert before == after


def test_a_bad_row_stops_it_before_anything_is_written(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", [*rows(), {"prompt": "p", "chosen": 7, "rejected": "b"}])
    with pytest.raises(BadRows, match="line 41, chosen"):
        split(source, tmp_path / "out", shares=(0.8, 0.1, 0.1), seed=0)
    assert not (tmp_path / "out").exists()
    made = split(source, tmp_path / "out", shares=(0.8, 0.1, 0.1), seed=0, skip_bad=True)
    assert (sum(made.rows), len(made.bad)) == (40, 1)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "a.jsonl", rows())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "test.jsonl").write_text("mine")
    with pytest.raises(Refusal, match="nothing is written over"):
        split(source, tmp_path / "out", shares=(0.8, 0.1, 0.1), seed=0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["test.jsonl"]
    split(source, tmp_path / "out", shares=(0.8, 0.1, 0.1), seed=0, force=True)
    assert len(prompts(tmp_path / "out" / "test.jsonl")) > 0


@pytest.mark.parametrize(("out", "reason"), [("a.jsonl", "is a file"), ("no/where", "There is no folder")])
def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path: Path, out: str, reason: str) -> None:
    source = jsonl(tmp_path / "a.jsonl", rows())
    with pytest.raises(Refusal, match=reason):
        split(source, tmp_path / out, shares=(0.8, 0.1, 0.1), seed=0)


def test_shares_that_do_not_sum_to_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="sum to 1"):
        split(jsonl(tmp_path / "a.jsonl", rows()), tmp_path / "out", shares=(0.8, 0.1, 0.2), seed=0)
