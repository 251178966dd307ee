"""Write an exercise into a folder of its own. What is written is data of the package: it is copied, never imported."""

import shutil
from pathlib import Path

from killick.types import Refusal

LABS = {
    "rlhf": "RLHF in five functions: from rankings to PPO on a leash, four arms, one picture",
    "hacking": "reward hacking by hand: predict the turn, choose the leash, close the blind spot",
    "leash": "the exact leash: five answers, one table, and two ways to spend a KL",
}
"""Name -> what it is about; each is a folder beside this file."""


def write(name: str, folder: Path) -> list[str]:
    """Copy an exercise into a folder that does not exist yet; returns the files that now stand in it, sorted.

    Raises:
        Refusal: where there is no exercise of that name, or something stands at `folder` already.
    """
    if name not in LABS:
        raise Refusal(f"There is no lab {name!r}; there are {', '.join(LABS)}.")
    if folder.exists() or folder.is_symlink():
        raise Refusal(f"{folder} exists, and a lab never writes over anything; name a folder that does not exist yet.")
    source = Path(__file__).parent / name
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.safetensors", "*.png"))
    return sorted(path.name for path in folder.iterdir())
