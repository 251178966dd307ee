"""A package for its files alone: fetched from the user's own index into a folder, never into the environment."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path

from killick.recipes.ledger import Note
from killick.types import Refusal

SAID_EVERY = 5.0
"""Seconds between two lines about one download."""


def in_environment(package: str) -> Distribution | None:
    """The package where it is installed beside killick, at the version that `name==version` asks for."""
    name, version = package.split("==")
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    return found if found.version == version else None


def fetched(package: str, folder: Path, *, size: int) -> Iterator[Note]:
    """Fetch a package into an empty folder, without what it depends on; tells how far it is.

    What pip (or uv, where there is no pip) is told of indices, proxies and certificates holds here too. The child that
    fetches ends with us.

    Args:
        package: `name==version`.
        folder: holds the package's files after.
        size: bytes to fetch.

    Raises:
        Refusal: where there is neither, or the package cannot be had.
    """
    command = [*installer(), "--no-deps", "--only-binary=:all:", "--quiet", f"--target={folder}", package]
    scratch, said = folder.with_name(f"{folder.name}.tmp"), folder.with_name(f"{folder.name}.said")
    scratch.mkdir(parents=True)
    yield Note(f"Fetching {package}, {size / 1e6:.0f} MB.")
    with said.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=os.environ | {"TMPDIR": str(scratch)}
        )
        try:
            yield from progress(child, scratch, size=size)
        finally:
            child.kill()
            child.wait()
    if child.returncode:
        why = complaint(said.read_text(errors="replace")) or f"exit status {child.returncode}"
        raise Refusal(
            f"{package} could not be fetched ({why}); check the network and pip's settings, then try again: nothing "
            "half-finished was kept."
        )
    shutil.rmtree(scratch, ignore_errors=True)


def progress(child: "subprocess.Popen[bytes]", scratch: Path, *, size: int) -> Iterator[Note]:
    """Tell of a child's download until it ends: bytes in its scratch folder so far, and the time left at this rate."""
    began = told = time.monotonic()
    while child.poll() is None:
        time.sleep(0.1)
        now = time.monotonic()
        if now - told < SAID_EVERY:
            continue
        told, seen = now, sum(path.stat().st_size for path in files(scratch))
        if not seen:
            yield Note(f"Waiting for the index ({now - began:.0f} s).")
        elif seen < size:
            left = (now - began) * (size / seen - 1)
            yield Note(f"{seen / 1e6:.0f} of {size / 1e6:.0f} MB, about {left:.0f} s left.")


def complaint(said: str) -> str:
    """The last thing that pip or uv says is wrong, without the mark before it; their hints come after.

    uv breaks long lines, and sets what goes on under the words behind the mark.
    """
    said = re.sub(r"\n {5,}(?=\S)(?!╰)", " ", said)
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("hint:")]
    return re.sub(r"^\s*(ERROR:|cause:|╰─▶)\s*", "", lines[-1]).rstrip(".") if lines else ""


def files(folder: Path) -> list[Path]:
    """Every file below a folder in which another process moves things about."""
    return [Path(place, name) for place, _, names in os.walk(folder) for name in names if Path(place, name).is_file()]


def installer() -> list[str]:
    """The beginning of a command that installs: pip, or uv where this environment has no pip.

    Raises:
        Refusal: where there is neither.
    """
    if find_spec("pip"):
        own = ["--no-user", "--no-cache-dir", "--no-compile", "--progress-bar=off", "--disable-pip-version-check"]
        return [sys.executable, "-m", "pip", "install", *own]
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if uv:
        return [uv, "pip", "install", "--no-cache", f"--python={sys.executable}"]
    raise Refusal("Fetching needs pip or uv, and neither is here; install one of them.")


def file_of(package: Distribution, ending: str) -> Path:
    """The one file of a package whose name ends so.

    Raises:
        Refusal: where it has none, or several.
    """
    found = [Path(str(path.locate())) for path in package.files or () if path.name.endswith(ending)]
    if len(found) != 1:
        raise Refusal(
            f"{package.name} {package.version} has {len(found)} files that end in {ending}, where one is due."
        )
    return found[0]


def package_in(folder: Path) -> Distribution:
    """The package that was fetched into a folder.

    Raises:
        Refusal: where it holds none.
    """
    found = next(iter(distributions(path=[str(folder)])), None)
    if found is None:
        raise Refusal(f"{folder} holds no package.")
    return found
