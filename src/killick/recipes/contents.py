"""What stands behind a path, as a short digest: so that a run is not taken up with another model or other prompts."""

import hashlib
from pathlib import Path

from killick.rundir.durable import sha256_of


def digest(path: Path) -> str:
    """Twelve hex digits over a file, or over the files of a folder and their names."""
    total = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.is_file():
            total.update(f"{file.name if path.is_dir() else ''}\0".encode())
            total.update(bytes.fromhex(sha256_of(file)))
    return total.hexdigest()[:12]


def digests(specs: dict[str, str]) -> dict[str, str]:
    """The digests of those specs that are paths of something: name -> digest.

    Args:
        specs: name -> what a user gave: a path, or anything else.
    """
    return {name: digest(Path(spec)) for name, spec in specs.items() if spec and Path(spec).exists()}
