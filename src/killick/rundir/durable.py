"""State on disk that is whole or absent: temporary name, synced, digests last, renamed, folder synced.

A state is a nest of dicts and lists with tensors and plain values; tensors go to safetensors, the rest to JSON, never
to a pickle (O-46, O-48).
"""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor


class DamagedError(ValueError):
    """A folder that does not hold the state that its manifest describes."""


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the folder's names are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle(folder: Path) -> None:
    """Wait until a folder that somebody else has written is on the disk, with all its files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in place of another at once: a reader sees the old one or the new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write_synced(partial, content)
        os.replace(partial, path)
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write one JSON file, strict and readable, in one step."""
    replace_file(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def save_state(parent: Path, name: str, *, state: Mapping[str, Any]) -> None:
    """Write a state as the folder parent/name; it then is whole, or nothing has changed.

    Raises:
        OSError: where the disk refuses; no partial folder is left behind.
    """
    tensors: dict[str, Tensor] = {}
    skeleton = pack(state, tensors)
    plain = json.dumps(skeleton, allow_nan=False).encode()
    partial = parent / f".{name}.{os.getpid()}.partial"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        write_tensors(partial / "state.safetensors", tensors)
        write_synced(partial / "state.json", plain)
        digests = {file: sha256_of(partial / file) for file in ("state.safetensors", "state.json")}
        write_synced(partial / "manifest.json", json.dumps(digests).encode())
        sync_folder(partial)
        exchange(partial, parent / name)
        sync_folder(parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors from where they are, and wait until they are on the disk; as bytes they would be there twice more.

    Raises:
        OSError: where the disk refuses.
    """
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def exchange(partial: Path, target: Path) -> None:
    """Put a folder in place of another, which comes back where that fails."""
    if not target.exists():
        os.rename(partial, target)
        return
    aside = partial.with_name(f".{target.name}.{os.getpid()}.old.partial")
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(target, aside)
    try:
        os.rename(partial, target)
    except OSError:
        os.rename(aside, target)
        raise
    finally:
        if target.exists():
            for _ in range(2):  # a removal that one passing error cut short is taken up once more
                shutil.rmtree(aside, ignore_errors=True)


def load_state(folder: Path) -> dict[str, Any]:
    """The state that `save_state` wrote.

    Raises:
        DamagedError: where a file is missing, or differs from its digest by one bit.
    """
    try:
        digests = json.loads((folder / "manifest.json").read_bytes())
        contents = {file: (folder / file).read_bytes() for file in ("state.safetensors", "state.json")}
        for file, content in contents.items():
            if hashlib.sha256(content).hexdigest() != digests[file]:
                raise DamagedError(f"{folder}: {file} does not match its digest")
        return unpack(json.loads(contents["state.json"]), load(contents["state.safetensors"]))
    except (OSError, KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError, SafetensorError) as error:
        raise DamagedError(f"{folder} is not a whole state ({error})") from error


def pack(value: Any, tensors: dict[str, Tensor], *, path: str = "") -> Any:
    """Plain JSON of a state; its tensors are moved to `tensors` under the path where they stood.

    Raises:
        TypeError: at anything but tensors, dicts, lists, numbers, strings, truth values and None.
    """
    if isinstance(value, Tensor):
        name, tensor = str(len(tensors)), value.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()  # the format knows no shared memory, and a copy of all is dear
        shared = any(place == other.untyped_storage().data_ptr() for other in tensors.values())
        tensors[name] = tensor.clone() if shared else tensor
        return {"tensor": name}
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"The keys of a state are strings, not {list(value)} (at {path}).")
        return {"dict": {key: pack(inner, tensors, path=f"{path}/{key}") for key, inner in value.items()}}
    if isinstance(value, list):
        return [pack(inner, tensors, path=f"{path}/{index}") for index, inner in enumerate(value)]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"A state holds tensors and plain values, not {type(value).__name__} (at {path}).")


def unpack(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The state that `pack` took apart."""
    if isinstance(value, dict):
        if "tensor" in value:
            return tensors[value["tensor"]]
        return {key: unpack(inner, tensors) for key, inner in value["dict"].items()}
    return [unpack(inner, tensors) for inner in value] if isinstance(value, list) else value


def numbered(parent: Path) -> list[Path]:
    """Checkpoints of a folder, newest first, by their number and not by their name (O-47)."""
    found = [path for path in parent.glob("*") if path.name.isascii() and path.name.isdigit() and path.is_dir()]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def whole_states(parent: Path) -> Iterator[tuple[Path, dict[str, Any] | DamagedError]]:
    """Checkpoints newest first, each read; a damaged one comes as the error that says why."""
    for path in numbered(parent):
        try:
            yield path, load_state(path)
        except DamagedError as error:
            yield path, error


def prune(parent: Path, keep: int = 2) -> None:
    """Remove all numbered checkpoints but the newest `keep`; other names, such as `best`, stay."""
    for path in numbered(parent)[keep:]:
        shutil.rmtree(path, ignore_errors=True)


def sweep(parent: Path, name: str = "*") -> None:
    """Remove what interrupted writers (of one name, or of any) left behind; only the holder of the lock may."""
    for path in parent.glob(f".{name if name == '*' else glob.escape(name)}.*.partial"):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
