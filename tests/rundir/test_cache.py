"""Stages in the cache: found again by all that decides them, whole or built anew, built once, and never a hindrance."""

import multiprocessing
import os
import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.rundir import cache
from killick.rundir.cache import cache_root, cached, cached_parts, clear, code_version, entries
from killick.rundir.durable import load_state
from killick.rundir.folder import Lock
from killick.types import Refusal

SETTINGS = {"seed": 0, "sft": {"steps": 3, "rate": 0.1}}
fork = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, not made yet."""
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "code_version", lambda: "1")
    return tmp_path / "cache"


def get(stage: str = "sft", settings: dict[str, Any] = SETTINGS, value: float = 1.0) -> tuple[list[str], float]:
    """A stage that says two words while it is built: the words heard, and the number that came back."""

    def build() -> Generator[str, None, dict[str, Any]]:
        yield "first"
        yield "second"
        return {"weights": torch.tensor([value], dtype=torch.float64), "found": {"accuracy": value}}

    words, loop = [], cached(stage, settings, build=build)
    while True:
        try:
            words.append(next(loop))
        except StopIteration as stop:
            state = stop.value
            break
    assert state["weights"].tolist() == [state["found"]["accuracy"]]
    return words, state["found"]["accuracy"]


def states(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir())


def test_a_stage_is_built_once_and_then_found(root: Path) -> None:
    """What it has to tell is told while it is built; a hit says nothing."""
    assert get(value=0.1 + 0.2) == (["first", "second"], 0.1 + 0.2)
    assert get(value=7.0) == ([], 0.1 + 0.2)
    assert load_state(states(root)[0])["found"] == {"accuracy": 0.1 + 0.2}


@pytest.mark.parametrize(
    "other",
    [
        {"stage": "reward"},
        {"settings": {"seed": 1, "sft": {"steps": 3, "rate": 0.1}}},
        {"settings": {"seed": 0, "sft": {"steps": 3, "rate": 0.1 + 1e-16}}},
        {"settings": {"seed": 0, "sft": {"steps": 3}}},
        {"settings": {**SETTINGS, "more": None}},
    ],
)
def test_anything_else_in_its_settings_is_another_stage(root: Path, other: dict[str, Any]) -> None:
    assert get(value=1.0) == (["first", "second"], 1.0)
    assert get(value=2.0, **other) == (["first", "second"], 2.0)
    assert get(value=3.0) == ([], 1.0)
    assert len(states(root)) == 2


def test_the_order_of_settings_and_the_kind_of_a_sequence_do_not_matter() -> None:
    get(settings={"a": 1, "b": (1, 2)}, value=1.0)
    assert get(settings={"b": [1, 2], "a": 1}, value=2.0) == ([], 1.0)


@pytest.mark.parametrize("changed", ["code", "torch"])
def test_other_code_and_another_torch_do_not_find_an_old_result(monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    get(value=1.0)
    if changed == "code":
        monkeypatch.setattr(cache, "code_version", lambda: "2")
    else:
        monkeypatch.setattr(torch, "__version__", "0.0.0")
    assert get(value=2.0)[1] == 2.0


def test_the_code_version_is_a_hash_of_every_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content and name of each; found by hand for a package of two files."""
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    (package / "room" / "cache.py").write_text("a = 1\n")
    monkeypatch.setattr(cache, "__file__", str(package / "room" / "cache.py"))
    seen = []
    for change in (None, ("new.py", ""), ("new.py", "b = 2\n"), ("notes.txt", "no code")):
        if change:
            (package / change[0]).write_text(change[1])
        code_version.cache_clear()
        seen.append(code_version())
    code_version.cache_clear()
    assert len(set(seen)) == 3
    assert seen[2] == seen[3]


@pytest.mark.parametrize("damage", ["bit", "cut", "gone"])
def test_a_damaged_stage_is_named_and_built_anew(root: Path, damage: str) -> None:
    """And is whole afterwards."""
    get(value=1.0)
    file = states(root)[0] / "state.safetensors"
    content = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(content[:40] if damage == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.warns(RuntimeWarning, match=f"{states(root)[0].name}.*built anew"):
        assert get(value=2.0) == (["first", "second"], 2.0)
    assert get(value=3.0) == ([], 2.0)


def test_a_stage_that_was_interrupted_leaves_no_entry(root: Path) -> None:
    """Closed at its first word, and failed at its second: the next one builds it."""

    def failing() -> Generator[str, None, dict[str, Any]]:
        yield "first"
        raise Refusal("SFT fell short.")

    loop = cached("sft", SETTINGS, build=failing)
    next(loop)
    loop.close()
    assert states(root) == []
    with pytest.raises(Refusal, match="fell short"):
        list(cached("sft", SETTINGS, build=failing))
    assert states(root) == []
    assert get(value=4.0) == (["first", "second"], 4.0)


def slow(say: Any, start: Any) -> None:
    """Ask for one stage that takes a moment; say whether it was built here."""
    built = []

    def build() -> Generator[str, None, dict[str, Any]]:
        built.append(os.getpid())
        time.sleep(0.3)
        yield "built"
        return {"by": os.getpid()}

    start.wait()
    loop = cached("sft", SETTINGS, build=build)
    try:
        while True:
            next(loop)
    except StopIteration as stop:
        say.put((len(built), stop.value["by"]))


def test_four_processes_at_once_build_a_stage_once(root: Path) -> None:
    """The others wait, and get what the first has built."""
    say, start = fork.SimpleQueue(), fork.Barrier(4)
    children = [fork.Process(target=slow, args=(say, start)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    built, by = zip(*(say.get() for _ in children), strict=True)
    assert sum(built) == 1
    assert len(set(by)) == 1
    assert len(states(root)) == 1


def test_a_builder_that_died_does_not_keep_the_others_waiting(root: Path) -> None:
    """kill -9 in the middle: its lock goes with it, and what it left behind is no entry."""

    def dying() -> Generator[str, None, dict[str, Any]]:
        yield "first"
        os._exit(9)

    child = fork.Process(target=lambda: list(cached("sft", SETTINGS, build=dying)))
    child.start()
    child.join()
    assert child.exitcode == 9
    began = time.monotonic()
    assert get(value=2.0)[1] == 2.0
    assert time.monotonic() - began < 2


def test_a_place_where_no_cache_can_be_is_named_and_the_stage_is_built_all_the_same(root: Path) -> None:
    root.write_text("a file")
    for value in (1.0, 2.0):
        with pytest.warns(RuntimeWarning, match=f"{root} cannot be used"):
            assert get(value=value) == (["first", "second"], value)
    assert root.read_text() == "a file"


def test_a_cache_on_a_full_disk_is_named_and_the_stage_is_built_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing half written stays."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(RuntimeWarning, match=rf"{root} cannot be written \(No space left"):
            assert get(value=1.0) == (["first", "second"], 1.0)
    assert [path.suffix for path in root.iterdir()] == [".lock"]
    assert get(value=2.0)[0] == ["first", "second"]


def test_the_cache_is_where_the_variable_says_or_in_the_platforms_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable is none."""
    monkeypatch.setenv("KILLICK_CACHE", "elsewhere")
    assert cache_root() == Path("elsewhere")
    for unset in (lambda: monkeypatch.setenv("KILLICK_CACHE", ""), lambda: monkeypatch.delenv("KILLICK_CACHE")):
        unset()
        assert cache_root().is_absolute()
        assert "killick" in cache_root().parts


def test_entries_are_listed_with_their_size_and_a_cache_that_is_not_there_has_none(root: Path) -> None:
    assert entries() == []
    get("sft")
    get("reward")
    assert [name.split("-")[0] for name, _ in entries()] == ["reward", "sft"]
    for name, size in entries():
        assert size == sum(path.stat().st_size for path in (root / name).iterdir()) > 0


def test_clearing_removes_every_stage_and_what_was_left_half_written(root: Path) -> None:
    """A damaged entry too, and locks that nobody holds."""
    get("sft")
    get("reward")
    (states(root)[0] / "manifest.json").unlink()
    (root / ".sft-0123.99.partial").mkdir()
    clear()
    assert list(root.iterdir()) == []
    assert entries() == []
    assert get(value=5.0)[1] == 5.0


def test_clearing_leaves_what_is_not_a_stage(root: Path) -> None:
    """The variable may name a folder that holds other things, with files of the same names."""
    get("sft")
    for mine in ("notes.txt", "project/manifest.json", "project/index.html", "other/file", ".hidden/x", ".x.partial"):
        (root / mine).parent.mkdir(exist_ok=True)
        (root / mine).write_text("keep")
    assert [name.split("-")[0] for name, _ in entries()] == ["sft"]
    clear()
    kept = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert kept == [".hidden/x", ".x.partial", "notes.txt", "other/file", "project/index.html", "project/manifest.json"]


def test_clearing_a_cache_that_is_not_there_is_no_fault(root: Path) -> None:
    clear()
    assert not root.exists()


def parts(built: list[int], count: int = 3, then: Callable[[], None] = lambda: None) -> list[int]:
    """A stage in so many parts, each its number; those built here are noted, and after the last something is done."""

    def build(part: int) -> Generator[str, None, dict[str, Any]]:
        yield f"part {part}"
        built.append(part)
        if part == count - 1:
            then()
        return {"number": part}

    loop = cached_parts("pool", SETTINGS, builds=[partial(build, part) for part in range(count)])
    while True:
        try:
            next(loop)
        except StopIteration as stop:
            return [state["number"] for state in stop.value]


def test_parts_come_in_order_and_are_found_again() -> None:
    """Another number of parts is another stage."""
    built: list[int] = []
    assert parts(built) == [0, 1, 2]
    assert parts(built) == [0, 1, 2]
    assert built == [0, 1, 2]
    assert parts(built, count=2) == [0, 1]
    assert built == [0, 1, 2, 0, 1]


def test_a_part_that_another_process_builds_is_passed_over_and_fetched_at_the_end(root: Path) -> None:
    """The first is held until the last is built."""
    parts([])
    first = next(path.name for path in states(root) if load_state(path)["number"] == 0)
    clear()
    held, built = Lock(root / f"{first}.lock"), list[int]()
    assert parts(built, then=held.close) == [0, 1, 2]
    assert built == [1, 2, 0]
