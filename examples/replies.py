"""How replies.jsonl was made: short replies to customers, and which of two each of three annotators would send.

What they want: the step that helps, an apology, few words. What they also fall for: warm words, however many. Each is
right about as often as people are. `python examples/replies.py` writes the same file again.
"""

import json
import math
import random
from itertools import product
from pathlib import Path

THINGS = ["kettle", "rain jacket", "desk lamp", "bike light", "headphones", "backpack", "coffee grinder", "tent"]
STEPS = {
    "arrived broken": "We are sending a new one today; keep the broken one",
    "is two weeks late": "It left our store this morning and reaches you on Friday",
    "has the wrong size": "Send it back with the label below and the right size leaves today",
    "stopped working after a month": "It is under guarantee, so a new one is on its way",
    "came without its manual": "The manual is attached, and a printed one is in the post",
    "cost more than on the page": "We have paid the difference back to your card",
    "smells of smoke": "We will collect it tomorrow and pay all of it back",
    "is not the colour I chose": "The right colour leaves today, and you may keep this one",
    "was sent to an old address": "A second one goes to your new address this afternoon",
    "makes a loud noise": "Tighten the screw below the lid; if it goes on, we replace it",
}
SORRY = ["We are sorry about that.", "Sorry, that should not happen.", "We apologise."]
WARM = ["What a wonderful customer you are!", "We love hearing from you!", "Have a lovely, happy day!"]
EMPTY = [
    "Your message matters to us.",
    "A colleague will look into it.",
    "Please be patient.",
    "Thank you for writing.",
]
CURT = ["Read the terms.", "That is not our fault.", "Write again next week."]
ANNOTATORS = {"ana": 1.4, "ben": 1.0, "cleo": 0.7}
"""How sure each is: the log-odds for each unit of quality."""


def reply(step: str, draws: random.Random) -> tuple[str, float]:
    """A reply and its quality, as the annotators see it."""
    said, quality = [], 0.0
    for chance, texts, worth in ((0.5, SORRY, 0.8), (0.5, [f"{step}."], 1.6), (0.3, CURT, -1.2)):
        if draws.random() < chance:
            said.append(draws.choice(texts))
            quality += worth
    for texts, worth in ((EMPTY, -0.3), (WARM, 0.5)):
        for text in draws.sample(texts, draws.choice([0, 0, 1, 2])):
            said.append(text)
            quality += worth
    return " ".join(said or draws.sample(EMPTY, 1)), quality


def rows(seed: int = 0) -> list[dict[str, object]]:
    """Three pairs to each prompt; every third is judged by all, the others by one in turn."""
    draws, found = random.Random(seed), []
    for number, (thing, (trouble, step)) in enumerate(product(THINGS, STEPS.items())):
        prompt = f"A customer writes: my {thing} {trouble}. Write a short reply."
        for pair in range(3):
            (first, one), (second, other) = reply(step, draws), reply(step, draws)
            if first == second:
                continue
            for annotator, kappa in ANNOTATORS.items():
                if pair and annotator != list(ANNOTATORS)[(number + pair) % 3]:
                    continue
                wins = draws.random() < 1 / (1 + math.exp(-kappa * (one - other)))
                found.append(
                    {"prompt": prompt, "first": first, "second": second,
                     "preference": "first" if wins else "second", "annotator": annotator}
                )  # fmt: skip
    return found


if __name__ == "__main__":
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    Path(__file__).with_suffix(".jsonl").write_text(lines, encoding="utf-8")
