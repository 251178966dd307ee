"""Stages that need not be computed twice, in the user's cache: whole or absent, keyed by all that decides them."""

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from platformdirs import user_cache_path

from killick.rundir.durable import DamagedError, load_state, save_state, sweep
from killick.rundir.folder import InUse, Lock
from killick.rundir.ledger import plain
from killick.stopwatch import stopwatch

State = dict[str, Any]
Event = TypeVar("Event")


def cache_root() -> Path:
    """KILLICK_CACHE, or the platform's place for caches."""
    named = os.environ.get("KILLICK_CACHE")
    return Path(named) if named else user_cache_path("killick")


@lru_cache
def code_version() -> str:
    """A hash of killick's own sources: a changed formula must not find an old result."""
    package = Path(__file__).parent.parent
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        total.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return total.hexdigest()


def cached(
    stage: str, settings: Mapping[str, Any], *, build: Callable[[], Generator[Event, None, State]], wait: float = 3600.0
) -> Generator[Event, None, State]:
    """The stage's state from the cache, or built now and kept; one process builds, others wait for it.

    An entry that is damaged is named in a warning and built anew. A cache that cannot be written is named too, and
    the stage is built without it.

    Args:
        stage: its name ("arithmetic-sft").
        settings: all that decides the result, beside the code and torch.
        build: yields what there is to tell, returns a state of tensors and plain values.
        wait: seconds to wait for another process that builds the same.
    """
    word = json.dumps([stage, plain(settings), code_version(), torch.__version__], sort_keys=True)
    stopwatch.lap("set-up")
    name, root = f"{stage}-{hashlib.sha256(word.encode()).hexdigest()[:16]}", cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = Lock(root / f"{name}.lock", wait)
    except OSError as error:
        warnings.warn(f"The cache {root} cannot be used ({error.strerror}).", RuntimeWarning, stacklevel=2)
        return (yield from build())
    stopwatch.lap("waiting")
    with closing(lock):
        if (root / name).exists():
            try:
                state = load_state(root / name)
                stopwatch.lap(f"{stage}, from the cache")
                return state
            except DamagedError as error:
                warnings.warn(f"{error}; it is built anew.", RuntimeWarning, stacklevel=2)
        state = yield from build()
        stopwatch.lap(f"{stage}, built")
        try:
            save_state(root, name, state=state)
        except OSError as error:
            warnings.warn(f"The cache {root} cannot be written ({error.strerror}).", RuntimeWarning, stacklevel=2)
        return state


def cached_parts(
    stage: str, settings: Mapping[str, Any], *, builds: Sequence[Callable[[], Generator[Event, None, State]]]
) -> Generator[Event, None, list[State]]:
    """Parts of a stage, each cached by itself, so that the processes that need the stage share its work.

    A part that another process is building is passed over at first and fetched at the end.

    Args:
        stage: its name.
        settings: all that decides the result of the whole.
        builds: one for each part.

    Returns:
        The states, in the order of `builds`.
    """
    found: dict[int, State] = {}
    for wait in (0.0, 3600.0):
        for part, build in enumerate(builds):
            if part in found:
                continue
            try:
                whole = {**settings, "part": part, "parts": len(builds)}
                found[part] = yield from cached(stage, whole, build=build, wait=wait)
            except InUse:
                if wait:
                    raise
    return [found[part] for part in range(len(builds))]


def entries() -> list[tuple[str, int]]:
    """Name and bytes of each stage in the cache."""
    found = []
    for folder in sorted(cache_root().glob("*")):
        if re.fullmatch(r"[\w-]+-[0-9a-f]{16}", folder.name) and folder.is_dir():
            found.append((folder.name, sum(path.stat().st_size for path in folder.iterdir())))
    return found


def clear() -> None:
    """Remove every stage and what interrupted writers left behind; nothing else that may stand there."""
    root = cache_root()
    for name, _ in entries():
        shutil.rmtree(root / name, ignore_errors=True)
        (root / f"{name}.lock").unlink(missing_ok=True)
    sweep(root)
