"""What every recipe's settings share: arms, seeds, the device, and the parts that train a transformer."""

import re
from collections.abc import Sequence
from typing import Any

import torch

from killick.models.policy import check_network
from killick.types import Refusal, Vocabulary


def check_training(config: Any, vocabulary: Vocabulary, *, prompt: int, critic: bool, demonstrations: bool) -> None:
    """Refuse what cannot train: seeds, device, workers, network, SFT, fit, PPO, and how they go together.

    Args:
        config: a recipe's settings, with fields seeds, device, workers, network, sft, fit and ppo.
        vocabulary: of its world.
        prompt: tokens of its prompts.
        critic: whether PPO has one.
        demonstrations: whether a ptx term has any.

    Raises:
        Refusal: naming the field.
    """
    check_seeds(config.seeds)
    find_device(config.device)
    if config.workers < 0:
        raise Refusal(f"--workers must be at least 0, not {config.workers}; 0 takes one a core.")
    config.network.validate()
    check_network(config.network, vocabulary, prompt=prompt)
    config.sft.validate()
    config.fit.validate()
    config.ppo.validate()
    config.ppo.check(vocabulary, critic=critic, demonstrations=demonstrations)


def check_choice(name: str, given: Sequence[str], *, known: Sequence[str]) -> None:
    """Refuse a list of words that names none, one twice, or an unknown one.

    Raises:
        Refusal: naming the flag and the words that there are.
    """
    if not given or len(set(given)) < len(given) or not set(given) <= set(known):
        asked = " ".join(given) or "nothing"
        raise Refusal(f"--{name} takes one or more of {', '.join(known)}, none twice, not {asked}.")


def check_betas(betas: Sequence[float]) -> None:
    """Refuse arms that cannot be.

    Raises:
        Refusal: at no arm, a negative or non-finite beta, or one given twice.
    """
    if not betas:
        raise Refusal("No beta was given; name at least one, such as --betas 0.")
    for beta in betas:
        if not 0 <= beta < float("inf"):
            raise Refusal(f"beta must be 0 or more and finite, not {beta:g}; 0 takes the leash off.")
    names = [f"{beta:g}" for beta in betas]
    if len(set(names)) < len(names):
        raise Refusal(f"Each beta is one arm, but {' '.join(names)} names one twice.")


def check_seed(seed: int) -> None:
    """Refuse a seed that cannot be.

    Raises:
        Refusal: below 0 or beyond 63 bits.
    """
    if not 0 <= seed < 2**63:
        raise Refusal(f"A seed must be 0 or more, not {seed}; it also has to stay below 2^63.")


def check_seeds(seeds: Sequence[int]) -> None:
    """Refuse seeds that cannot be.

    Raises:
        Refusal: at none, one given twice, or one that `check_seed` refuses.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise Refusal(f"--seeds needs at least one seed and none twice, not {' '.join(map(str, seeds)) or 'nothing'}.")
    for seed in seeds:
        check_seed(seed)


def find_device(name: str) -> str:
    """Turn auto, cpu, cuda (or cuda:1) or mps into a device that is there; auto is cuda where there is one, else cpu.

    Raises:
        Refusal: where it is not.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return "cuda" if there["cuda"] else "cpu"
    kind = "cuda" if re.fullmatch(r"cuda:\d+", name) else name
    if kind not in there:
        raise Refusal(f"--device must be auto, cpu, cuda or mps, not {name}; one GPU of several is cuda:1.")
    if ":" in name and int(name.split(":")[1]) >= torch.cuda.device_count():
        raise Refusal(f"--device {name} was asked for, but torch finds {torch.cuda.device_count()} GPUs.")
    if not there[kind]:
        raise Refusal(f"--device {name} was asked for, but torch finds no {kind} here; use --device cpu or auto.")
    return name
