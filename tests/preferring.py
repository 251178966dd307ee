"""Judgements of short texts with a rule that a reward model can learn: good things are said of some, bad of others."""

import random
from collections.abc import Sequence
from pathlib import Path

from killick.preferences.files import write_preferences
from killick.preferences.rows import PreferenceRow, Turn, Turns

GOOD = ("good", "happy", "better", "more")
BAD = ("that", "other", "saw", "of")


def user(text: str) -> Turns:
    return (Turn("user", text),)


def answer(text: str) -> Turns:
    return (Turn("assistant", text),)


def pair(prompt: str, first: str, second: str, **more: object) -> PreferenceRow:
    """The first is preferred unless `place` says something else."""
    kept = {"place": (0, 1)} | more
    return PreferenceRow(user(prompt), (answer(first), answer(second)), **kept)  # type: ignore[arg-type]


def pairs(prompts: int = 40, *, each: int = 4, noise: float = 0.0, seed: int = 0) -> list[PreferenceRow]:
    """Pairs of a text of good words and one of bad words; a share of them judged the wrong way round."""
    draws = random.Random(seed)
    rows = []
    for number in range(prompts):
        for _ in range(each):
            good, bad = (" ".join(draws.choices(words, k=draws.randint(2, 5))) for words in (GOOD, BAD))
            place = (1, 0) if draws.random() < noise else (0, 1)
            rows.append(pair(f"My honest review of lamp {number}: I thought", good, bad, place=place))
    return rows


def twice(prompts: int = 60, *, each: int = 5, seed: int = 0) -> list[PreferenceRow]:
    """Answers that say good or bad twice with others between: better is to say the same again. No one word tells."""
    draws, others = random.Random(seed), ("the", "lamp", "park", "bird", "is", "and")
    rows = []
    for number in range(prompts):
        for _ in range(each):
            same, first = draws.choices(("good", "bad"), k=2)
            between, last = " ".join(draws.choices(others, k=2)), draws.choice(others)
            second = "bad" if first == "good" else "good"
            texts = f"{same} {between} {same} {last}", f"{first} {between} {second} {last}"
            rows.append(pair(f"Lamp {number}:", *texts))
    return rows


def written(path: Path, rows: Sequence[PreferenceRow], *, form: str = "pairs") -> Path:
    """As a preference file."""
    write_preferences(path, rows, form=form, force=True)
    return path
