"""An environment with other people's tools at fixed versions, made by uv from the registry and kept for the next time.

It stands in the user's cache (not in `KILLICK_CACHE`, which tests move) under a name made of all versions, so that a
machine pays for it once: half a minute from nothing, some 1.2 GB that uv shares with its own cache by links where the
disk can.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from platformdirs import user_cache_path

ROOT = Path(__file__).parent.parent
TRL = (
    "trl==1.16.0", "datasets==5.2.0", "dill==0.4.1", "multiprocess==0.70.19", "xxhash==4.1.0",
    "torch", "transformers", "accelerate", "setuptools",
)  # fmt: skip
"""What the interchange is tried with; versions that are not told are those of constraints.txt."""


def environment(packages: tuple[str, ...] = TRL) -> Path:
    """The Python of an environment with these packages, made where it is not there; skips where it cannot be."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists() or not (ROOT / ".ci" / "uv").exists():
        pytest.skip("needs uv beside this Python, and the repository: make setup")
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    word = hashlib.sha256("\n".join([*packages, pins, sys.version]).encode()).hexdigest()[:16]
    folder = user_cache_path("killick") / "tests" / word
    python = folder / "bin" / "python"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{word}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the other test process waits
            if not (folder / "ready").exists():
                make(folder, uv, packages=packages)
                (folder / "ready").touch()
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        pytest.skip(f"the environment with {packages[0]} cannot be made: {' '.join(said.split())[-300:]}")
    return python


def make(folder: Path, uv: Path, *, packages: tuple[str, ...]) -> None:
    """Make it anew, from the same places that .ci/setup takes packages from."""
    shutil.rmtree(folder, ignore_errors=True)
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", folder, "-c", "constraints.txt", *packages],
    ):
        words = ["bash", "-c", '. .ci/uv; "$@"', "bash", *map(str, command)]
        subprocess.run(words, cwd=ROOT, env=os.environ, check=True, capture_output=True, text=True, timeout=600)
