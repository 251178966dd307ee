"""The ledger: strict JSON a line, no row half written, the same bytes whichever way the rows came."""

import json
import resource
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.rundir.ledger import CellLedger, line, merge, plain, read_rows
from killick.types import Refusal

modest = settings(max_examples=30, deadline=None, derandomize=True)


def refuse(constant: str) -> None:
    """A strict reader: NaN and Infinity are not JSON."""
    raise ValueError(constant)


def strict(text: str | bytes) -> Any:
    return json.loads(text, parse_constant=refuse)


def row(step: int, arm: str = "beta=0", seed: int = 0, **more: Any) -> dict[str, Any]:
    return {"arm": arm, "seed": seed, "step": step, "gold": step / 3, **more}


def steps(path: Path, growing: bool = False) -> list[int]:
    return [found["step"] for found in read_rows(path, growing)]


# Plain numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array(2.5), 2.5),
        (np.array([1, 2]), [1, 2]),
        (np.array([]), []),
        (torch.tensor(3), 3),
        (torch.tensor(0.25), 0.25),
        (torch.tensor([True, False]), [True, False]),
        (torch.tensor([[1.0], [2.0]]), [[1.0], [2.0]]),
        (torch.zeros(0), []),
        (np.float32("nan"), None),
        (torch.tensor(float("inf")), None),
        (float("-inf"), None),
        ([1.0, float("nan")], [1.0, None]),
        ({"a": (1, np.float32(2))}, {"a": [1, 2.0]}),
        ({3: True}, {"3": True}),
        (None, None),
        ("text", "text"),
        (Path("runs/x"), "runs/x"),
    ],
)
def test_numbers_of_numpy_and_torch_become_pythons(value: Any, expected: Any) -> None:
    """Of the same kind: a bool stays a bool, an int an int; NaN and infinity become null (O-52, O-56)."""
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    strict(json.dumps(found, allow_nan=False))


@modest
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_is_plain_is_strict_json_and_stays_as_it_is(value: Any) -> None:
    """Doing it twice changes nothing, and reading it back gives the same."""
    found = plain(value)
    assert strict(json.dumps(found, allow_nan=False)) == found
    assert plain(found) == found


def test_a_number_that_is_none_becomes_null_and_the_reason_says_which() -> None:
    """Nulls that were nulls need none."""
    odd = {
        "kl": float("nan"),
        "proxy": np.float32("inf"),
        "gold": torch.tensor(float("-inf")),
        "finished": None,
        "step": 3,
    }
    assert strict(line(odd)) == {
        "kl": None, "proxy": None, "gold": None, "finished": None, "step": 3,
        "reason": "kl is nan, proxy is inf, gold is -inf",
    }  # fmt: skip
    assert "reason" not in strict(line({"finished": None, "kl": 0.0}))


def test_a_line_that_was_read_is_written_again_as_it_was() -> None:
    """The reason for a null too: a ledger that is taken up again must not lose it."""
    text = line(row(0, kl=float("nan"), beta=0.1 + 0.2, tiny=5e-324, large=2**70, name="é\u2028"))
    assert line(strict(text)) == text


@modest
@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_a_ledger_line_is_one_line_and_reads_back(text: str, number: float) -> None:
    """Line ends, separators and emoji inside a string are escaped; floats come back bit-equal."""
    written = line({"arm": text, "gold": number})
    assert "\n" not in written
    assert len(written.splitlines()) == 1
    assert strict(written) == {"arm": text, "gold": number}


# Reading


def test_a_ledger_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "none.jsonl") == []
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert read_rows(tmp_path / "empty.jsonl") == []


def test_a_last_line_cut_anywhere_is_left_out_while_the_file_grows(tmp_path: Path) -> None:
    """At every byte, in the middle of a character too; with its line feed it counts."""
    path, whole = tmp_path / "x.jsonl", [(line(row(step, name="é")) + "\n").encode() for step in range(3)]
    for cut in range(len(whole[2])):
        path.write_bytes(whole[0] + whole[1] + whole[2][:cut])
        assert steps(path, growing=True) == [0, 1]
    path.write_bytes(b"".join(whole))
    assert steps(path, growing=True) == [0, 1, 2]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b'{"step": 0}\n{"step": 1', 2),
        (b'{"step": 0}\n{"st\n{"step": 2}\n', 2),
        (b"\x00\x00\x00\n", 1),
        (b'{"step": 0}\n\n{"step": 1}\n', 2),
        (b"[1, 2]\n", 1),
        (b'{"step": 0}\n{"step": 1}\n\xff\xfe\n', 3),
    ],
)
def test_a_damaged_line_of_a_finished_file_is_refused_with_file_and_number(
    tmp_path: Path, content: bytes, number: int
) -> None:
    """Cut at its end or in its middle, zeros, an empty line, no object, no text: one sentence."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content)
    with pytest.raises(Refusal, match=rf"metrics\.jsonl, line {number}: .*cut or damaged") as refusal:
        read_rows(path)
    assert "\n" not in str(refusal.value)


def test_a_damaged_line_in_the_middle_is_refused_while_the_file_grows_too(tmp_path: Path) -> None:
    """Only the last line may be unfinished."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"step": 0}\n{"st\n{"step": 2}\n')
    with pytest.raises(Refusal, match="line 2"):
        read_rows(path, growing=True)


# Writing


def test_a_row_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    ledger = CellLedger(path, 0)
    assert path.read_bytes() == b""
    for step in range(3):
        ledger.append(row(step, gold=torch.tensor(0.5)))
        assert strict(path.read_bytes().splitlines()[-1]) == row(step, gold=0.5)
    ledger.close()


def test_a_ledger_that_is_taken_up_drops_what_will_be_written_again(tmp_path: Path) -> None:
    """Rows from the step on, and a last line that was cut; what stays keeps its bytes."""
    path = tmp_path / "x.jsonl"
    lines = [(line(row(step, kl=float("nan"))) + "\n").encode() for step in range(5)]
    for tail, step, kept in ((b"", 3, 3), (lines[4][:9], 5, 4), (lines[4][:-1], 5, 4), (b"", 0, 0), (lines[4], 9, 5)):
        path.write_bytes(b"".join(lines[:4]) + tail)
        ledger = CellLedger(path, step)
        assert path.read_bytes() == b"".join(lines[:kept])
        ledger.append(row(kept))
        ledger.close()
        assert steps(path) == [*range(kept), kept]
        assert [found.name for found in tmp_path.iterdir()] == ["x.jsonl"]


def test_a_file_that_only_grows_keeps_every_whole_row(tmp_path: Path) -> None:
    """Timing: what a killed process spent was spent, though its steps are made again."""
    path = tmp_path / "x.timing.jsonl"
    path.write_text("".join(line(row(step)) + "\n" for step in (4, 8)) + '{"arm"')
    ledger = CellLedger(path, None)
    ledger.append(row(6))
    ledger.close()
    assert steps(path) == [4, 8, 6]


def test_several_rows_of_one_step_are_kept_or_dropped_together(tmp_path: Path) -> None:
    """Samples: six a step."""
    path = tmp_path / "x.samples.jsonl"
    path.write_text("".join(line(row(step, prompt=str(place))) + "\n" for step in (0, 10, 20) for place in range(6)))
    CellLedger(path, 20).close()
    assert steps(path) == [0] * 6 + [10] * 6


def test_a_disk_that_fills_in_the_middle_of_a_row_stops_the_cell(tmp_path: Path) -> None:
    """A limit on the file's size stands for the full disk: half a row may be written, but not silently, since the
    next row would then be glued to it and the ledger could not be read any more."""
    path = tmp_path / "x.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ledger = CellLedger(path, 0)
    ledger.append(row(0))
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(OSError, match="large"):
            ledger.append(row(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        ledger.close()
    assert path.stat().st_size > size
    CellLedger(path, 1).close()
    assert steps(path) == [0]


# Merging


def test_cells_merge_to_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    """Sorted by arm, seed and step as numbers: seed 2 before seed 10, step 9 before step 10; a cut line is left out."""
    paths = []
    for arm, seed in (("beta=1", 0), ("beta=0", 10), ("beta=0", 2)):
        paths.append(tmp_path / f"{arm},seed={seed}.jsonl")
        paths[-1].write_text("".join(line(row(step, arm, seed)) + "\n" for step in range(12)) + '{"arm": "be')
    found = set()
    for number, order in enumerate(permutations(paths)):
        rows = merge(order, tmp_path / f"merged-{number}")
        found.add((tmp_path / f"merged-{number}").read_bytes())
    assert len(found) == 1
    assert [(each["arm"], each["seed"], each["step"]) for each in rows] == [
        (arm, seed, step) for arm, seed in (("beta=0", 2), ("beta=0", 10), ("beta=1", 0)) for step in range(12)
    ]
    assert read_rows(tmp_path / "merged-0") == rows


def test_rows_of_one_step_keep_their_order_when_merged(tmp_path: Path) -> None:
    """The six samples of a step stay as they were written."""
    path = tmp_path / "a.samples.jsonl"
    path.write_text("".join(line(row(0, prompt=prompt)) + "\n" for prompt in "zaqm"))
    assert [each["prompt"] for each in merge([path], tmp_path / "merged")] == list("zaqm")


def test_merging_replaces_what_was_merged_before_and_nothing_else(tmp_path: Path) -> None:
    first, into = tmp_path / "a.jsonl", tmp_path / "metrics.jsonl"
    first.write_text(line(row(0)) + "\n")
    before = first.read_bytes()
    merge([first], into)
    shutil.copy(first, tmp_path / "b.jsonl")
    assert len(merge([first, tmp_path / "b.jsonl"], into)) == len(read_rows(into)) == 2
    assert first.read_bytes() == before
    assert merge([], into) == read_rows(into) == []
