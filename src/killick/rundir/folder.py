"""A run's folder: made once, entered by one process at a time, taken up again under the same settings only."""

import fcntl
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from killick.rundir.durable import sweep, write_json
from killick.rundir.ledger import merge, plain, read_rows
from killick.types import Refusal

FREE = ("device", "workers")
"""Settings that may change when a run is taken up again."""
BESIDE = ("samples.jsonl", "timing.jsonl")
"""What a cell keeps beside its ledger."""


class InUse(Refusal):
    """Another process holds what was asked for."""


class Lock:
    """A file that one process holds; the system lets go of it when that process dies, however it dies (O-49).

    Args:
        path: the file; it keeps the holder's number.
        wait: seconds to wait for another holder.

    Raises:
        InUse: naming the process that holds it.
    """

    def __init__(self, path: Path, wait: float = 0.0):
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                holder = os.pread(self.descriptor, 32, 0).decode().strip() or "another process"
                if time.monotonic() >= until:
                    os.close(self.descriptor)
                    raise InUse(f"{path.parent} is in use by process {holder}; wait for it or stop it.") from error
                time.sleep(0.05)
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let go; called in a forked child, it only gives up the child's copy."""
        os.close(self.descriptor)


class RunFolder:
    """An open run folder; `resumed` says whether it held a run before, `finished` whether that run is done.

    Args:
        path: the folder; None makes a new one under ./runs.
        recipe: its name.
        config: everything needed to run it again, as plain types.

    Raises:
        Refusal: where the path is a file, cannot be written, holds something else, other settings, or is in use.
    """

    def __init__(self, path: Path | None, recipe: str, config: Mapping[str, Any]):
        settings = {"recipe": recipe, **plain(config)}
        self.path = new_folder(recipe, settings) if path is None else path
        if foreign(self.path / "config.json"):  # before a lock is put beside somebody's model
            raise Refusal(f"{self.path} holds something that is no run; name an empty or new folder with --out.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.lock = Lock(self.path / "lock")
        except (FileExistsError, NotADirectoryError) as error:
            file = next(place for place in (self.path, *self.path.parents) if place.is_file())
            raise Refusal(f"{file} is a file, not a folder; name another place with --out.") from error
        except OSError as error:
            raise Refusal(f"{self.path} cannot be written ({error.strerror}); name another with --out.") from error
        saved = self.path / "config.json"
        self.resumed = saved.exists()
        self.finished = (self.path / "results.json").exists()
        sweep(self.path)
        sweep(self.path / "cells")
        if self.resumed:
            try:
                agree(self.path, json.loads(saved.read_text(encoding="utf-8")), here=settings)
            except Refusal:
                self.lock.close()
                raise
            except ValueError as error:
                self.lock.close()
                raise Refusal(f"{saved} is damaged ({error}); name another place with --out.") from error
        elif any(found.name not in ("lock", "environment.json") for found in self.path.iterdir()):
            self.lock.close()
            raise Refusal(f"{self.path} holds something that is no run; name an empty or new folder with --out.")
        else:
            write_json(self.path / "environment.json", environment())
            write_json(saved, settings)

    def merge(self) -> None:
        """Gather what the cells have written: metrics.jsonl, samples.jsonl, timing.jsonl, stages.json."""
        merge(cell_files(self.path), self.path / "metrics.jsonl")
        for kind in BESIDE:
            merge(cell_files(self.path, kind=kind), self.path / kind)
        found = (self.path / "cells").glob("stages,seed=*.json")
        stages = {path.stem.split("=")[1]: json.loads(path.read_text()) for path in found}
        write_json(self.path / "stages.json", dict(sorted(stages.items(), key=lambda pair: int(pair[0]))))

    def rows(self) -> list[dict[str, Any]]:
        """The merged ledger."""
        return read_rows(self.path / "metrics.jsonl")

    def found(self) -> dict[str, Any]:
        """Seed -> what its stages found."""
        found: dict[str, Any] = json.loads((self.path / "stages.json").read_text(encoding="utf-8"))
        return found

    def finish(self, results: Mapping[str, Any]) -> None:
        """Write the results: the run is then done, and only drawn again."""
        write_json(self.path / "results.json", plain(results))

    def close(self) -> None:
        """Let another process in."""
        self.lock.close()


def cell_file(folder: Path, cell: str, *, kind: str = "jsonl") -> Path:
    """The ledger of one cell, or its `samples.jsonl`, its `timing.jsonl`, or its `lock`."""
    return folder / "cells" / f"{cell}.{kind}"


def cell_files(folder: Path, *, kind: str = "jsonl") -> list[Path]:
    """The ledgers of all cells that have begun, or what they keep beside them."""
    found = sorted((folder / "cells").glob(f"*.{kind}"))
    return [path for path in found if kind in BESIDE or not path.name.endswith(BESIDE)]


def checkpoints(folder: Path, cell: str) -> Path:
    """Where one cell keeps its states."""
    return folder / "checkpoints" / cell


def foreign(saved: Path) -> bool:
    """Whether a config.json was written by something else: model folders have one, too."""
    try:
        found = json.loads(saved.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return not isinstance(found, dict) or "recipe" not in found


def agree(path: Path, there: Mapping[str, Any], *, here: Mapping[str, Any]) -> None:
    """Refuse to mix two settings in one folder.

    Raises:
        Refusal: naming every setting that differs, with both values; of another recipe's run, the recipe alone.
    """
    old, new = flat(there), flat(here)
    keys = [key for key in {**old, **new} if key.split(".")[-1] not in FREE and old.get(key) != new.get(key)]
    keys = ["recipe"] if "recipe" in keys else keys  # of another kind nothing else is alike, and one word says it
    if keys:
        told = "; ".join(f"{key} is {old.get(key)} there and {new.get(key)} here" for key in keys)
        raise Refusal(f"{path} holds a run of other settings: {told}. Use the same settings, or another --out.")


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names."""
    out: dict[str, Any] = {}
    for key, value in settings.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return out


def environment() -> dict[str, Any]:
    """What the run runs on: versions, threads, platform. No clock and no name of the machine."""
    packages = {name: version(name) for name in ("killick", "torch", "numpy", "safetensors")}
    return {"python": platform.python_version(), "platform": platform.platform(), "threads": torch.get_num_threads(),
            "packages": packages, "commit": commit()}  # fmt: skip


def commit() -> str | None:
    """The source's commit, where this very file is tracked: not that of a project whose environment holds killick."""
    here = Path(__file__)
    for words in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
        try:
            command = ["git", "-C", str(here.parent), *words]
            found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        if found.returncode:
            return None
    return found.stdout.strip()


def new_folder(recipe: str, settings: Mapping[str, Any]) -> Path:
    """Make runs/<recipe>/<time>-<settings hash>, with a number behind it where that is taken (O-49)."""
    word = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
    name, again = f"{time.strftime('%Y%m%d-%H%M%S')}-{word}", 1
    while True:
        folder = Path("runs", recipe, name if again == 1 else f"{name}-{again}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            again += 1
        except OSError as error:
            raise Refusal(f"{folder} cannot be made ({error.strerror}); name another place with --out.") from error
