"""One run = one folder: its settings, its environment, and the ledger, one JSON object a line.

Only recipes and the command line come here; the rooms yield, and the caller writes.
"""

import hashlib
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from killick.types import Refusal


def stage_generator(seed: int, stage: str, *, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator of its own for each stage of a seed, so that cached, reordered and parallel stages draw the same.

    Args:
        seed: the run's.
        stage: any name ("sft", "labels", "ppo beta=0").
        device: where it draws.
    """
    word = hashlib.sha256(f"{seed}/{stage}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(word[:8], "big") >> 1)


def plain(value: Any) -> Any:
    """Numbers of numpy and torch as Python's; NaN and infinity as None, since they are not JSON (O-52, O-56)."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def line(row: Mapping[str, Any]) -> str:
    """One ledger row as strict JSON; a number that is none becomes null, and `reason` says which."""
    clean = plain(row)
    lost = [key for key, value in row.items() if value is not None and clean[str(key)] is None]
    if lost:
        clean["reason"] = ", ".join(f"{key} is {float(row[key])}" for key in lost)
    return json.dumps(clean, allow_nan=False)


def environment() -> dict[str, Any]:
    """What the run ran on: versions, threads, platform. No clock and no name of the machine."""
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


class Run:
    """An open run folder.

    Args:
        folder: created here; it must not exist yet, so nothing is ever overwritten.
        recipe: its name.
        config: everything needed to run it again, as plain types.

    Raises:
        Refusal: where the folder exists, or cannot be made.
    """

    def __init__(self, folder: Path, recipe: str, config: Mapping[str, Any]):
        self.folder = folder
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except OSError as error:
            if folder.exists():
                raise Refusal(f"{folder} exists already; name a new folder with --out.") from error
            raise Refusal(f"{folder} cannot be made ({error.strerror}); name another folder with --out.") from error
        self.write("config.json", {"recipe": recipe, **config})
        self.write("environment.json", environment())
        self.ledger = (folder / "metrics.jsonl").open("ab", buffering=0)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one JSON file of the folder."""
        text = json.dumps(plain(content), indent=2, allow_nan=False) + "\n"
        (self.folder / name).write_text(text, encoding="utf-8", newline="\n")

    def log(self, row: Mapping[str, Any]) -> None:
        """Append one row to the ledger; it can be read at once.

        Raises:
            Refusal: where the disk takes no more; the ledger then ends with the last whole row.
        """
        end = self.ledger.tell()
        try:
            self.ledger.write(f"{line(row)}\n".encode())
        except OSError as error:
            self.ledger.truncate(end)
            path = self.folder / "metrics.jsonl"
            raise Refusal(f"{path} cannot be written ({error.strerror}); make room and run again.") from error

    def close(self) -> None:
        """Close the ledger, on disk."""
        if not self.ledger.closed:
            os.fsync(self.ledger.fileno())
            self.ledger.close()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def new_folder(recipe: str, config: Mapping[str, Any]) -> Path:
    """runs/<recipe>/<time>-<settings hash>, with a number behind it where that is taken (O-49)."""
    word = hashlib.sha256(json.dumps(plain(config), sort_keys=True).encode()).hexdigest()[:8]
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{word}"
    folder, again = Path("runs", recipe, name), 1
    while folder.exists():
        again += 1
        folder = Path("runs", recipe, f"{name}-{again}")
    return folder
