"""A person's own models in the practice API: the same text gets the same number there as everywhere else (O-09)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from killick.models.asking import Unread
from killick.models.asking_pretrained import AskingPretrained
from killick.models.judging import PretrainedReward
from killick.recipes.fetching import found
from killick.refusal import Refusal
from killick.web.practice import Judge, Speak

NAME = 100
"""Characters of a model's name that a request may hold."""
Made = TypeVar("Made")


@dataclass(frozen=True)
class Own:
    """What a person offers beside the brand's.

    Args:
        models: language models by name.
        rewards: reward models by name.
    """

    models: Mapping[str, Speak]
    rewards: Mapping[str, Judge]


def speaks(folders: Sequence[Path], *, taken: Sequence[str]) -> dict[str, Speak]:
    """Language models of folders, under the folders' names.

    Raises:
        Refusal: where a folder holds none, or its name is taken.
    """
    return named([found(folder) for folder in folders], AskingPretrained.load, flag="--model", taken=taken)


def judges(folders: Sequence[Path], *, taken: Sequence[str]) -> dict[str, Judge]:
    """Reward models of folders, under the folders' names; in float64, so that company moves no digit that is seen.

    Raises:
        Refusal: where a folder holds none, or its name is taken.
    """

    def load(folder: Path) -> Judge:
        return judging(PretrainedReward.load(folder, dtype=torch.float64))

    return named(folders, load, flag="--reward", taken=taken)


def named(folders: Sequence[Path], load: Callable[[Path], Made], *, flag: str, taken: Sequence[str]) -> dict[str, Made]:
    """What is in each folder, by the folder's name.

    Raises:
        Refusal: where a name is not to be had, or says nothing.
    """
    found: dict[str, Made] = {}
    for folder in folders:
        name = folder.resolve().name
        if name in taken or name in found or not 0 < len(name) <= NAME:
            raise Refusal(f"{flag} {folder}: the name {name[:NAME]!r} is not to be had; rename the folder, or link it.")
        found[name] = load(folder)
    return found


def judging(model: PretrainedReward) -> Judge:
    """A reward model as the API asks it: an answer whose prompt cannot be read keeps no other back."""

    def judge(prompts: Sequence[str], answers: Sequence[str]) -> list[float | Unread]:
        why = {prompt: unread(model, prompt) for prompt in dict.fromkeys(prompts)}
        rows = [row for row, prompt in enumerate(prompts) if why[prompt] is None]
        scores = iter(
            model.scores([prompts[row] for row in rows], [answers[row] for row in rows]).tolist() if rows else ()
        )
        return [why[prompt] or next(scores) for prompt in prompts]

    return judge


def unread(model: PretrainedReward, prompt: str) -> Unread | None:
    """Why a prompt cannot be read."""
    try:
        model.texts.prompt(prompt)
    except Refusal as refusal:
        return Unread("prompt", str(refusal))
    return None
