"""A random little language model, prompts and rewards: what an alignment run needs, in a second."""

from pathlib import Path
from typing import Any

from killick.recipes.align.config import Config
from llamas import llama_folder

NOUNS = [
    "lamp",
    "park",
    "bird",
    "chair",
    "song",
    "film",
    "book",
    "cake",
    "train",
    "house",
    "garden",
    "river",
    "stone",
    "wall",
    "road",
    "bridge",
]
STARTS = (
    "My honest review of the {}: I thought it",
    "Dear diary, the {}",
    "To be fair to the {}, I have to say that it",
)


def letters(text: str) -> float:
    """What is optimised for: how many of an answer's letters are early ones, a tenth each."""
    return sum(letter in "aeiou" for letter in text) / 10


def brevity(text: str) -> float:
    """What people want: few characters."""
    return -len(text) / 10


def broken(text: str) -> float:
    """A number that is none, now and then."""
    return float("nan") if "e" in text else 0.0


def setting(place: Path, *, template: bool = False, **model: Any) -> Path:
    """A folder with a model and a file of 48 prompts of unequal length."""
    llama_folder(place / "model", template=template, **model)
    prompts = [start.format(noun) for noun in NOUNS for start in STARTS]
    (place / "prompts.txt").write_text("\n".join(prompts) + "\n", encoding="utf-8")
    return place


def tiny(place: Path, **settings: Any) -> Config:
    """Four steps of eight short responses over one trained layer."""
    given: dict[str, Any] = {
        "model": str(place / "model"), "reward": ("aligning:letters",), "prompts": str(place / "prompts.txt"),
        "beta": (0.0,), "gold": "aligning:brevity", "held_out": 0.25, "evaluated": 5, "answers": 2, "every": 2,
        "steps": 3, "responses": 8, "tokens": 6, "train_layers": 1, "dtype": "float32", "device": "cpu",
        "learning_rate": 3e-3,
    }  # fmt: skip
    return Config(**given | settings)


def judge_of(model: Any) -> Any:
    """A reward model on the layers of a language model, with a head of its own."""
    import torch
    from transformers import LlamaForSequenceClassification

    with torch.random.fork_rng():
        torch.manual_seed(5)
        model.config.num_labels = 1
        made = LlamaForSequenceClassification(model.config)
    made.base_model.load_state_dict(model.base_model.state_dict())
    return made.eval()


def judge_folder(place: Path, *, name: str = "judge", template: bool = False, seed: int = 0) -> Path:
    """That reward model and the tokenizer as a folder."""
    from killick.models.judging import PretrainedReward
    from killick.models.texts import Texts
    from llamas import llama, tokenizer

    judge = PretrainedReward(judge_of(llama(seed=seed)), Texts(tokenizer(template=template)))
    judge.save(place / name)
    return place / name


SHORT = [
    "--reward", "aligning:letters", "--gold", "aligning:brevity", "--held-out", "0.25", "--evaluated", "4",
    "--answers", "2", "--every", "2", "--steps", "2", "--responses", "8", "--tokens", "6", "--train-layers", "1",
    "--dtype", "float32", "--device", "cpu", "--seed", "1",
]  # fmt: skip
"""Flags of a run of seconds."""


def words(place: Path, *more: str) -> list[str]:
    """`killick align` over a setting."""
    return ["align", "--model", str(place / "model"), "--prompts", str(place / "prompts.txt"), *SHORT, *more]
