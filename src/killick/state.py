"""Snapshots of all that changes in a loop, as tensors and plain types, and their return: every part, or none."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def snapshot(owner: object, parts: Sequence[str]) -> dict[str, Any]:
    """Copies of an object's parts; what trains on afterwards does not reach them.

    Args:
        owner: holds the parts as attributes: modules, optimisers, generators, numbers, or None.
        parts: their names.
    """
    saved: dict[str, Any] = {}
    for name in parts:
        part = getattr(owner, name)
        if isinstance(part, torch.Generator):
            part = part.get_state()
        elif hasattr(part, "state_dict"):
            part = part.state_dict()
        saved[name] = copied(part)
    return saved


def restore(owner: object, parts: Sequence[str], *, saved: Mapping[str, Any]) -> None:
    """Put back what `snapshot` took.

    Raises:
        KeyError: naming a missing part, before anything is changed (O-45).
    """
    missing = [name for name in parts if name not in saved]
    if missing:
        raise KeyError(f"The saved state lacks {', '.join(missing)}.")
    for name in parts:
        part = getattr(owner, name)
        if isinstance(part, torch.Generator):
            part.set_state(saved[name])
        elif hasattr(part, "load_state_dict"):
            part.load_state_dict(saved[name])
        else:
            setattr(owner, name, saved[name])


def copied(value: Any) -> Any:
    """A nest of dicts and lists with its tensors cloned."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value
