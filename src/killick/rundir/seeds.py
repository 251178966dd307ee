"""A generator of its own for each stage of a seed."""

import hashlib

import torch


def stage_generator(seed: int, stage: str, *, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator seeded by (seed, stage name), so that cached, resumed, reordered and parallel stages draw the same.

    Args:
        seed: the run's.
        stage: any name ("sft", "labels", "ppo beta=0").
        device: where it draws.
    """
    word = hashlib.sha256(f"{seed}/{stage}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(word[:8], "big") >> 1)
