"""Weights and their settings in one safetensors file; never a pickle."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from killick.types import Refusal

REWARD_FILE = "reward.safetensors"
"""What a folder calls the weights of a reward model."""


def write(module: nn.Module, path: Path, *, settings: dict[str, Any]) -> None:
    """Write a module's tensors and plain settings under a temporary name, then put the file in place."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in module.state_dict().items()}
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file(tensors, partial, {"killick": json.dumps(settings, sort_keys=True)})
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and tensors of a file that `write` made.

    Raises:
        Refusal: where there is no such file, or it is damaged, or it is not killick's.
    """
    try:
        with safe_open(path, "pt") as file:
            settings = json.loads((file.metadata() or {})["killick"])
            return settings, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise Refusal(f"{path} cannot be read as a weights file ({error.strerror or 'no such file'}).") from error
    except (SafetensorError, KeyError, ValueError) as error:
        raise Refusal(f"{path} is not a weights file that killick wrote, or it is damaged ({error}).") from error
