"""A little world of texts whose quality is known, and judges of every kind: what an exam has to tell apart.

An answer says some facts of its thing, with filler in between; it is as good as the different facts that it says. Good
answers also tend to thank, and those with more to say are longer.
"""

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from killick.recipes.exam.asking import Setup
from killick.recipes.exam.held import Held, read_held
from killick.recipes.exam.recipe import Examined, examine
from killick.recipes.prompts import Prompt

FACTS = ("blue", "heavy", "Danish", "hollow", "rare", "brittle", "warm", "ancient", "edible", "loud", "tiny", "sacred")
FILLER = ("well", "you see", "as it were", "more or less", "in a way", "so to speak", "I suppose", "one might say")
THANKS = "thank you for asking"


def answer(draw: random.Random) -> str:
    """Facts, filler, perhaps thanks."""
    facts = draw.sample(FACTS, draw.randint(1, 6))
    parts = [f"it is {fact}" for fact in facts] + draw.choices(FILLER, k=draw.randint(0, 14))
    draw.shuffle(parts)
    thanks = [THANKS] if draw.random() < 0.16 * len(facts) else []
    return ", ".join(parts + thanks)


def quality(text: str) -> float:
    """Different facts."""
    return float(sum(fact in text for fact in FACTS))


def rows(count: int, *, seed: int, kappa: float = 1.2, pairs: int = 1) -> list[dict[str, str]]:
    """Pairs with a Bradley-Terry label of their quality, `pairs` to a prompt."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        for _ in range(pairs):
            first, second = answer(draw), answer(draw)
            likes = 1 / (1 + math.exp(-kappa * (quality(first) - quality(second))))
            chosen, rejected = (first, second) if draw.random() < likes else (second, first)
            found.append({"prompt": f"What is thing {number} like?", "chosen": chosen, "rejected": rejected})
    return found


def write(path: Path, given: Sequence[dict[str, str]]) -> Path:
    """Rows as JSONL."""
    path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    return path


def held(path: Path, count: int = 240, *, seed: int = 0) -> Held:
    """A file of pairs that no model has seen."""
    return read_held(write(path, rows(count, seed=seed)), None)


def judge(score: Callable[[str], float]) -> Callable[[Sequence[Prompt], Sequence[str]], Tensor]:
    """A function of an answer as a judge of one member."""
    return lambda _, answers: torch.tensor([[score(text) for text in answers]], dtype=torch.double)


def speak(n: int = 16) -> Callable[[Sequence[Prompt], torch.Generator], list[list[str]]]:
    """A policy that answers as the labelled answers were written."""

    def answers(prompts: Sequence[Prompt], generator: torch.Generator) -> list[list[str]]:
        draw = random.Random(int(torch.randint(2**31, (1,), generator=generator)))
        return [[answer(draw) for _ in range(n)] for _ in prompts]

    return answers


def random_score(text: str) -> float:
    """As good as any: a hash of the text."""
    return random.Random(text).gauss(0, 1)


GOOD, LENGTH, CONSTANT, RANDOM = (
    judge(quality),
    judge(lambda text: len(text) / 20),
    judge(lambda _: 0.5),
    judge(random_score),
)
PHRASE = judge(lambda text: float(text.count(THANKS)))


def counting(weights: dict[str, float]) -> Callable[[str], float]:
    """A linear judge of which words there are."""
    return lambda text: sum(weights.get(word, 0.0) for word in bag(text))


def learned(
    pairs: Sequence[dict[str, str]], *, members: int, seed: int
) -> Callable[[Sequence[Prompt], Sequence[str]], Tensor]:
    """An ensemble of linear judges of words, each fitted by gradient descent to a resample of the pairs."""
    draw = random.Random(seed)
    fits = [counting(fitted(draw.choices(pairs, k=len(pairs)))) for _ in range(members)]
    return lambda _, answers: torch.tensor([[score(text) for text in answers] for score in fits], dtype=torch.double)


def fitted(pairs: Sequence[dict[str, str]]) -> dict[str, float]:
    """Weights of words, by whether they stand in a text, under Bradley-Terry with a little decay."""
    words = sorted({word for row in pairs for side in ("chosen", "rejected") for word in bag(row[side])})
    place = {word: number for number, word in enumerate(words)}
    apart = torch.zeros(len(pairs), len(words), dtype=torch.double)
    for number, row in enumerate(pairs):
        for side, sign in (("chosen", 1), ("rejected", -1)):
            apart[number, [place[word] for word in bag(row[side])]] += sign
    weights = torch.zeros(len(words), dtype=torch.double)
    for _ in range(150):
        slope = -(apart.T @ (-(apart @ weights)).sigmoid()) / len(pairs) + 0.01 * weights
        weights = weights - 1.0 * slope
    return dict(zip(words, weights.tolist(), strict=True))


def bag(text: str) -> set[str]:
    """Different words, without commas."""
    return set(text.replace(",", " ").split())


def setup(judge: Callable[[Sequence[Prompt], Sequence[str]], Tensor], **more: object) -> Setup:
    """An exam with the policy of this world, and no gold."""
    given = {"speak": speak(), "gold": None, "nats": 1.0, "n": 16, "prompts": 40, "seed": 0} | more
    return Setup(judge=judge, **given)  # type: ignore[arg-type]


def examined(held: Held, setup: Setup) -> Examined:
    """All that comes of an exam."""
    steps = examine(held, setup)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Examined = end.value
            return found


def facts(held: Held, setup: Setup) -> dict[str, Any]:
    """Its numbers."""
    return examined(held, setup).facts
