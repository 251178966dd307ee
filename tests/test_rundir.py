"""Run folders: strict JSON, nothing overwritten, and generators that know their stage."""

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick import rundir
from killick.rundir import Run, environment, line, new_folder, plain, stage_generator
from killick.types import Refusal

modest = settings(max_examples=30, deadline=None, derandomize=True)


def refuse(constant: str) -> None:
    """A strict reader: NaN and Infinity are not JSON."""
    raise ValueError(constant)


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=refuse)


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
    """Of the same kind: a bool stays a bool, an int an int; NaN and infinity become null."""
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
    row = {
        "kl": float("nan"),
        "proxy": np.float32("inf"),
        "gold": torch.tensor(float("-inf")),
        "finished": None,
        "step": 3,
    }
    assert strict(line(row)) == {
        "kl": None, "proxy": None, "gold": None, "finished": None, "step": 3,
        "reason": "kl is nan, proxy is inf, gold is -inf",
    }  # fmt: skip
    assert "reason" not in strict(line({"finished": None, "kl": 0.0}))


@modest
@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_a_ledger_line_is_one_line_and_reads_back(text: str, number: float) -> None:
    """Line ends, separators and emoji inside a string are escaped; floats come back bit-equal."""
    written = line({"arm": text, "gold": number})
    assert "\n" not in written
    assert len(written.splitlines()) == 1
    assert strict(written) == {"arm": text, "gold": number}


# Folders


def test_a_run_folder_holds_settings_environment_and_a_ledger_that_can_be_read_at_once(tmp_path: Path) -> None:
    """Newlines are line feeds in every file, text is UTF-8, and the parents are made."""
    with Run(tmp_path / "a" / "b", "answers", {"betas": (0.5,), "seed": 0, "note": "é"}) as run:
        run.log({"step": 0, "gold": torch.tensor(1.5)})
        run.log({"step": 1, "gold": float("nan")})
        rows = (run.folder / "metrics.jsonl").read_bytes()
    assert [strict(row) for row in rows.decode().splitlines()] == [
        {"step": 0, "gold": 1.5},
        {"step": 1, "gold": None, "reason": "gold is nan"},
    ]
    config = strict((tmp_path / "a" / "b" / "config.json").read_text(encoding="utf-8"))
    assert config == {"recipe": "answers", "betas": [0.5], "seed": 0, "note": "é"}
    for path in (tmp_path / "a" / "b").iterdir():
        assert b"\r" not in path.read_bytes()
        assert path.read_bytes().endswith(b"\n")


def test_the_environment_names_versions_and_neither_a_clock_nor_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed to understand a run; without git there is no commit and no error."""
    found = environment()
    assert set(found) == {"python", "platform", "threads", "packages", "commit"}
    assert set(found["packages"]) == {"killick", "torch", "numpy", "safetensors"}
    assert found["commit"] is None or len(found["commit"]) == 40
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rundir.commit() is None


def test_an_existing_folder_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """Even an empty one, and a file of that name."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "metrics.jsonl").write_text("old")
    (tmp_path / "file").write_text("old")
    for name in ("full", "file"):
        with pytest.raises(Refusal, match=rf"{name} exists already; name a new folder with --out\.$") as refusal:
            Run(tmp_path / name, "answers", {})
        assert "\n" not in str(refusal.value)
    assert (tmp_path / "full" / "metrics.jsonl").read_text() == "old"
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["metrics.jsonl"]


def test_a_place_that_cannot_be_made_is_refused_in_one_sentence(tmp_path: Path) -> None:
    """Somewhere below a file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match=r"cannot be made.*name another folder") as refusal:
        Run(tmp_path / "file" / "deep" / "run", "answers", {})
    assert "\n" not in str(refusal.value)


def test_a_folder_right_below_a_file_is_not_said_to_exist(tmp_path: Path) -> None:
    """It is the parent that is in the way, and that is what the sentence must say."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="cannot be made"):
        Run(tmp_path / "file" / "run", "answers", {})


def test_eight_folders_in_the_same_second_are_distinct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same recipe, same settings, one after the other."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20300101-000000")
    runs = [Run(new_folder("answers", {"seed": 0}), "answers", {"seed": 0}) for _ in range(8)]
    for run in runs:
        run.close()
    assert len({run.folder for run in runs}) == 8
    assert all(run.folder.parent == Path("runs/answers") for run in runs)


def test_eight_runs_at_once_never_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets a folder of its own or a refusal, and at least one gets a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rundir, "environment", dict)
    together = Barrier(8)

    def start(number: int) -> Path | None:
        folder = new_folder("answers", {"seed": 0})
        together.wait()
        try:
            with Run(folder, "answers", {"seed": 0}) as run:
                run.log({"number": number})
        except Refusal:
            return None
        return run.folder

    with ThreadPoolExecutor(8) as pool:
        folders = [folder for folder in pool.map(start, range(8)) if folder is not None]
    assert 1 <= len(set(folders)) == len(folders)
    for folder in folders:
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == 1


def test_a_folder_is_named_by_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings in another order have the same name, others another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20300101-000000")
    a, b, c = (new_folder("x", config) for config in ({"s": 0, "t": (1,)}, {"t": [1], "s": 0}, {"s": 1, "t": [1]}))
    assert a == b != c


def test_closing_twice_is_no_fault(tmp_path: Path) -> None:
    """By hand, then at the end of the block."""
    with Run(tmp_path / "run", "answers", {}) as run:
        run.close()
    assert run.ledger.closed


# Generators


def test_a_stage_draws_from_the_hash_of_seed_and_name() -> None:
    """A fixed rule, so that a cached stage of last year draws the same: SHA-256 of "seed/stage", 63 bits of it."""
    word = hashlib.sha256(b"7/sft").digest()[:8]
    assert stage_generator(7, "sft").initial_seed() == int.from_bytes(word, "big") // 2


@modest
@given(st.integers(0, 2**40), st.text(max_size=8), st.text(max_size=8))
def test_stages_draw_the_same_in_any_order_and_apart_from_each_other(seed: int, first: str, second: str) -> None:
    """What another stage has drawn before does not matter; other names and other seeds are other streams."""
    early = torch.rand(4, generator=stage_generator(seed, first))
    torch.rand(100, generator=stage_generator(seed, second))
    assert torch.equal(early, torch.rand(4, generator=stage_generator(seed, first)))
    assert not torch.equal(early, torch.rand(4, generator=stage_generator(seed + 1, first)))
    if first != second:
        assert not torch.equal(early, torch.rand(4, generator=stage_generator(seed, second)))


def test_streams_of_neighbouring_stages_are_uncorrelated() -> None:
    """20,000 numbers of each of four stages and seeds: every correlation within 4 standard errors, 1 / sqrt(20000)."""
    streams = torch.stack([torch.randn(20_000, generator=stage_generator(s, n)) for s in (0, 1) for n in ("a", "b")])
    found = torch.corrcoef(streams) - torch.eye(4)
    assert float(found.abs().max()) < 4 / 20_000**0.5


def test_the_global_stream_is_left_alone() -> None:
    """No stage reads or sets it."""
    before = torch.random.get_rng_state()
    torch.rand(3, generator=stage_generator(0, "sft"))
    assert torch.equal(before, torch.random.get_rng_state())
