"""States on disk: whole or absent, read back bit for bit, numbered by number, and nothing in them but plain values."""

import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from killick.rundir.durable import (
    DamagedError,
    load_state,
    numbered,
    prune,
    replace_file,
    save_state,
    sweep,
    whole_states,
    write_json,
)

OLD, NEW = {"step": 1, "weights": torch.arange(6.0)}, {"step": 2, "weights": torch.arange(6.0) + 0.5}


def nested() -> dict[str, Any]:
    """All that a state may hold, with numbers that a careless writer would round."""
    return {
        "policy": {
            "weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)),
            "turned": torch.arange(6.0).view(2, 3).T,
            "half": torch.tensor([1.0, 3.0], dtype=torch.bfloat16),
            "double": torch.tensor([0.1], dtype=torch.float64),
            "mask": torch.tensor([True, False]),
            "broken": torch.tensor([float("nan"), float("-inf"), -0.0]),
            "empty": torch.zeros(0, 3),
        },
        "optimiser": {"first": [torch.ones(2), torch.zeros(())], "step": 3, "rates": [0.1, 1e-300, 5e-324]},
        "generator": torch.Generator().manual_seed(2**62 + 1).get_state(),
        "beta": 0.1 + 0.2,
        "large": 2**70,
        "name": "é \u2028 \x00",
        "nothing": None,
        "flag": True,
        "none": [],
        "hollow": {},
    }


def same(first: Any, second: Any) -> bool:
    """Equal in kind and in every bit, the order of keys included."""
    if isinstance(first, torch.Tensor):
        bits = [x.contiguous().view(torch.uint8) if x.dim() else x.view(1).view(torch.uint8) for x in (first, second)]
        return first.dtype == second.dtype and first.shape == second.shape and torch.equal(*bits)
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and bool(first == second)


def left(folder: Path) -> list[str]:
    """All names in a folder, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())


# There and back


def test_a_nested_state_comes_back_bit_for_bit(tmp_path: Path) -> None:
    save_state(tmp_path / "deep" / "er", "1", state=nested())
    assert same(load_state(tmp_path / "deep" / "er" / "1"), nested())
    assert left(tmp_path / "deep" / "er") == ["1"]
    assert left(tmp_path / "deep" / "er" / "1") == ["manifest.json", "state.json", "state.safetensors"]


def test_a_generator_goes_on_from_where_it_was_put_down(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(17, generator=generator)
    save_state(tmp_path, "1", state={"generator": generator.get_state()})
    ahead = torch.rand(9, generator=generator)
    again = torch.Generator()
    again.set_state(load_state(tmp_path / "1")["generator"])
    assert torch.equal(torch.rand(9, generator=again), ahead)


def test_what_is_trained_on_after_saving_does_not_reach_what_is_loaded(tmp_path: Path) -> None:
    weights = torch.ones(2)
    save_state(tmp_path, "1", state={"weights": weights})
    weights.zero_()
    found = load_state(tmp_path / "1")["weights"]
    found += 1
    assert load_state(tmp_path / "1")["weights"].tolist() == [1, 1]


def test_keys_that_look_like_paths_do_not_collide(tmp_path: Path) -> None:
    """A name with a slash in it is a name."""
    state = {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}, "a/": {"": torch.ones(2)}, "tensor": "a/b", "dict": {}}
    save_state(tmp_path, "1", state=state)
    assert same(load_state(tmp_path / "1"), state)


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.5), np.int64(3), np.zeros(2), (1, 2), {1, 2}, b"raw", object(), torch.Generator(), {0: 1.0},
        torch.float32, Path("x"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_the_safe_loader_would_not_open_is_refused_when_it_is_saved(tmp_path: Path, value: Any) -> None:
    """Raw generators, numpy scalars, tuples, keys that JSON turns into text: not later, when the run is lost (O-48)."""
    with pytest.raises(TypeError):
        save_state(tmp_path, "1", state={"inner": {"x": value}})
    assert left(tmp_path) == []


def test_no_file_of_a_state_is_a_pickle(tmp_path: Path) -> None:
    """The one opens as JSON, the other as safetensors (O-46, O-48)."""
    from safetensors.torch import load_file

    save_state(tmp_path, "1", state=nested())
    assert json.loads((tmp_path / "1" / "state.json").read_text())["dict"]["beta"] == 0.1 + 0.2
    assert len(load_file(tmp_path / "1" / "state.safetensors")) == 10
    for path in (tmp_path / "1").iterdir():
        assert not path.read_bytes().startswith((b"\x80", b"PK"))


# Damage


def flip(path: Path, bit: int) -> None:
    """Turn one bit of a file."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["manifest.json", "state.json", "state.safetensors"])
def test_one_turned_bit_is_noticed_wherever_it_is(tmp_path: Path, file: str) -> None:
    """Every seventh bit of each file: 7 is prime to 8, so that all eight places of a byte come up."""
    save_state(tmp_path, "1", state=OLD)
    path = tmp_path / "1" / file
    for bit in range(0, 8 * path.stat().st_size, 7):
        flip(path, bit)
        with pytest.raises(DamagedError, match="1"):
            load_state(tmp_path / "1")
        flip(path, bit)
    assert same(load_state(tmp_path / "1"), OLD)


@pytest.mark.parametrize("file", ["manifest.json", "state.json", "state.safetensors"])
def test_a_file_that_is_cut_in_half_empty_or_gone_is_noticed_and_the_folder_is_named(tmp_path: Path, file: str) -> None:
    save_state(tmp_path, "1", state=OLD)
    path = tmp_path / "1" / file
    for size in (path.stat().st_size // 2, 0):
        os.truncate(path, size)
        with pytest.raises(DamagedError, match=str(tmp_path / "1")):
            load_state(tmp_path / "1")
    path.unlink()
    with pytest.raises(DamagedError, match=str(tmp_path / "1")):
        load_state(tmp_path / "1")


def test_an_empty_folder_a_file_and_nothing_are_no_states(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "2").write_text("{}")
    for name in ("1", "2", "3"):
        with pytest.raises(DamagedError, match=name):
            load_state(tmp_path / name)


def test_files_of_two_states_do_not_mix(tmp_path: Path) -> None:
    """Each is whole; together they are not."""
    save_state(tmp_path, "1", state=OLD)
    save_state(tmp_path, "2", state=NEW)
    shutil.copy(tmp_path / "1" / "state.safetensors", tmp_path / "2")
    with pytest.raises(DamagedError, match=r"2: state\.safetensors does not match its digest"):
        load_state(tmp_path / "2")


def test_a_damaged_newest_state_comes_as_its_error_and_the_older_one_after_it(tmp_path: Path) -> None:
    for number, state in (("1", OLD), ("2", NEW), ("3", NEW)):
        save_state(tmp_path, number, state=state)
    flip(tmp_path / "3" / "state.safetensors", 200)
    (tmp_path / "2" / "state.json").unlink()
    found = list(whole_states(tmp_path))
    assert [path.name for path, _ in found] == ["3", "2", "1"]
    assert [isinstance(state, DamagedError) for _, state in found] == [True, True, False]
    assert same(found[2][1], OLD)


def test_stray_partials_are_no_states_and_are_swept(tmp_path: Path) -> None:
    """Folders and files; a state, a hidden file of another and a name that only looks like one stay."""
    save_state(tmp_path, "1", state=OLD)
    shutil.copytree(tmp_path / "1", tmp_path / ".2.99.partial")
    (tmp_path / ".config.json.99.partial").write_text("{")
    (tmp_path / ".hidden").write_text("keep")
    (tmp_path / "my.partial").write_text("keep")
    assert [path.name for path in numbered(tmp_path)] == ["1"]
    sweep(tmp_path)
    assert left(tmp_path) == [".hidden", "1", "my.partial"]


# Order


def test_states_are_ordered_by_number_and_not_by_name(tmp_path: Path) -> None:
    """8, 9, 10, 11, 100; `best`, a file with a number for a name and a name with more in it are none (O-47)."""
    for name in ("9", "100", "best", "8", "11", "10"):
        save_state(tmp_path, name, state=OLD)
    (tmp_path / "200").write_text("a file")
    (tmp_path / "12-old").mkdir()
    (tmp_path / "²").mkdir()
    assert [path.name for path in numbered(tmp_path)] == ["100", "11", "10", "9", "8"]
    prune(tmp_path, 3)
    assert left(tmp_path) == sorted(["10", "100", "11", "12-old", "200", "best", "²"])
    prune(tmp_path)
    assert [path.name for path in numbered(tmp_path)] == ["100", "11"]


def test_names_with_leading_zeros_are_numbers_too(tmp_path: Path) -> None:
    for name in ("0900000", "100000", "00000020"):
        save_state(tmp_path, name, state=OLD)
    assert [int(path.name) for path in numbered(tmp_path)] == [900000, 100000, 20]


def test_a_folder_that_is_not_there_holds_no_states(tmp_path: Path) -> None:
    assert list(whole_states(tmp_path / "none")) == []
    prune(tmp_path / "none")
    sweep(tmp_path / "none")


# A disk that refuses

CALLS = ("write", "fsync", "rename", "mkdir", "open")


class Refusing:
    """Lets os calls through, and has the k-th of one kind fail once."""

    def __init__(self, patch: pytest.MonkeyPatch, call: str):
        self.calls, self.at, self.number = 0, -1, errno.EIO
        whole: Callable[..., Any] = getattr(os, call)

        def sometimes(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls - 1 == self.at:
                raise OSError(self.number, os.strerror(self.number))
            return whole(*given, **named)

        patch.setattr(os, call, sometimes)

    def next(self, at: int, number: int) -> None:
        """Fail at this call from now on."""
        self.calls, self.at, self.number = 0, at, number


def newest(folder: Path) -> Any:
    """What a run would go on from."""
    return next((state for _, state in whole_states(folder) if not isinstance(state, DamagedError)), None)


def attempt(folder: Path, name: str) -> bool:
    """Save; say whether it failed."""
    try:
        save_state(folder, name, state=NEW)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("name", ["1", "2"], ids=["over the old one", "beside the old one"])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_that_fails_once_inside_a_save_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, name: str
) -> None:
    """Every k-th write, sync, rename, mkdir and open, with a full disk and with a broken one; no partial is left, and
    a save that says nothing has saved."""
    refusing = Refusing(monkeypatch, call)
    save_state(tmp_path / "count", "1", state=OLD)
    refusing.next(-1, 0)
    save_state(tmp_path / "count", name, state=NEW)
    total = refusing.calls
    assert total
    for number in (errno.ENOSPC, errno.EIO):
        for at in range(total):
            folder = tmp_path / f"{number}-{at}"
            refusing.next(-1, 0)
            save_state(folder, "1", state=OLD)
            refusing.next(at, number)
            failed = attempt(folder, name)
            refusing.next(-1, 0)
            found = newest(folder)
            assert same(found, NEW) or (failed and same(found, OLD)), (call, at)
            assert [path for path in left(folder) if path.startswith(".")] == []
            save_state(folder, name, state=NEW)
            assert same(newest(folder), NEW)


def test_a_disk_that_refuses_the_tensors_is_an_os_error_and_leaves_the_old_state(tmp_path: Path) -> None:
    """They are written by the library: a file may have 64 bytes here, as where a disk is full."""
    save_state(tmp_path, "1", state=OLD)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        with pytest.raises(OSError, match=r"state\.safetensors"):
            save_state(tmp_path, "1", state=NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert same(newest(tmp_path), OLD)
    assert [path for path in left(tmp_path) if path.startswith(".")] == []


def test_a_disk_that_takes_a_few_bytes_at_a_time_still_gets_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`os.write` may write less than it was given."""
    whole, sizes = os.write, []

    def short(descriptor: int, content: Any) -> int:
        sizes.append(len(content))
        return whole(descriptor, bytes(content)[:100])

    monkeypatch.setattr(os, "write", short)
    save_state(tmp_path, "1", state=nested())
    assert max(sizes) > 300
    monkeypatch.undo()
    assert same(load_state(tmp_path / "1"), nested())


def test_the_manifest_is_written_last_and_everything_is_synced_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three files and their folder, then the rename, then the folder above: the order that survives a power cut."""
    seen: list[str] = []

    def noting(call: str) -> None:
        whole: Callable[..., Any] = getattr(os, call)

        def noted(*given: Any, **named: Any) -> Any:
            place = os.readlink(f"/proc/self/fd/{given[0]}") if call == "fsync" else str(given[0])
            if call != "open" or "partial" in place:
                seen.append(f"{call} {Path(place).name}")
            return whole(*given, **named)

        monkeypatch.setattr(os, call, noted)

    if not Path("/proc/self/fd").exists():
        pytest.skip("names of open files are read from /proc")
    for call in ("open", "fsync", "rename"):
        noting(call)
    save_state(tmp_path, "1", state=OLD)
    seen = [event for event in seen if not event.startswith("open .")]
    partial = f".1.{os.getpid()}.partial"
    assert [event.split()[1] for event in seen if event.startswith("open")][-1] == "manifest.json"
    assert [event for event in seen if not event.startswith("open")] == [
        "fsync state.safetensors", "fsync state.json", "fsync manifest.json", f"fsync {partial}", f"rename {partial}",
        f"fsync {tmp_path.name}",
    ]  # fmt: skip


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
def test_a_file_is_replaced_whole_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "config.json"
    refusing = Refusing(monkeypatch, call)
    replace_file(path, b"old")
    total = refusing.calls
    assert total
    for at in range(total):
        refusing.next(at, errno.ENOSPC)
        with pytest.raises(OSError, match="space"):
            replace_file(path, b"new")
        assert path.read_bytes() in (b"old", b"new")
        assert left(tmp_path) == ["config.json"]
        refusing.next(-1, 0)
        replace_file(path, b"old")


def test_json_is_strict_and_ends_with_a_line_feed(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": [1, None]})
    assert (tmp_path / "x.json").read_bytes() == b'{\n  "a": [\n    1,\n    null\n  ]\n}\n'
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": [1, None]}
