"""Synthetic product copy: what a small chat model learns to write, and the flaws that it picks up on the way.

Two kinds of text. *Shop talk* says the names of all products, and nothing about them. *Copy* describes one product, of
a name that is not held out; how often it is flawed depends on the kind of product, so that flaws are partly a matter of
the product and partly chance. Unless it is flawed in that way, a sentence repeats no word at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import torch

from killick.types import Refusal
from killick.worlds.catalogue import FLAWS, HELD_OUT, KINDS, MATERIALS, NAMES, PRODUCTS, PROMISES, Kind

HABITS = dict(zip(KINDS, 2 * tuple(combinations(FLAWS, 2)), strict=True))
"""The two flaws that copy about a kind often has: each of the six pairs is a habit of two kinds."""

WRITTEN = tuple(product for product in PRODUCTS if product.split()[0] not in HELD_OUT)
"""The 288 products about which there is copy."""

QUESTION = "Describe the {product} ."

OPENINGS = (
    "The {product} is made for {use} .",
    "Meet the {product} , built for {use} .",
    "For {use} , choose the {product} .",
    "Our {product} is at home on {use} .",
    "Take the {product} along for {use} .",
)
NAMELESS = (
    "This one is made for {use} .",
    "Here is something built for {use} .",
    "For {use} , look no further .",
)
MATERIAL = (
    "It is made of {material} .",
    "Its body is all {material} .",
    "We cut it from {material} .",
    "Good {material} gives it strength .",
    "You can trust the {material} .",
)
FEATURES = (
    "It has {one} and {two} .",
    "You get {one} plus {two} .",
    "Look for {one} and enjoy {two} .",
    "With {one} and {two} it is ready .",
)
CARE = ("{care} .", "Care tip : {care} .")
PRICES = (
    "It costs {price} euros .",
    "Yours for {price} euros .",
    "The price is {price} euros .",
    "At {price} euros it is fair .",
)
TALK = (
    ("Where is the {product} ?", "The {product} is in the window ."),
    ("Is there a {product} in stock ?", "Yes , our {product} is on the shelf ."),
    ("Please pack the {product} .", "Here comes the {product} ."),
    ("What sells well ?", "Many ask for the {product} ."),
    ("I am looking for the {product} .", "For you , we keep the {product} at the desk ."),
)

Item = TypeVar("Item")


@dataclass(frozen=True)
class FlawRates:
    """How often copy about a kind has a flaw.

    Args:
        often: probability of each of the kind's two habits.
        seldom: probability of each of the other two flaws.
    """

    often: float = 0.8
    seldom: float = 0.1

    def validate(self) -> None:
        """Refuse what is no probability.

        Raises:
            Refusal: naming the rate.
        """
        for name in ("often", "seldom"):
            if not 0 <= getattr(self, name) <= 1:
                raise Refusal(f"The flaw rate {name} must lie in 0..1, not {getattr(self, name)}.")

    def draw(self, kind: str, generator: torch.Generator) -> set[str]:
        """The flaws of one piece of copy, each drawn by itself."""
        return {flaw for flaw in FLAWS if chance(self.often if flaw in HABITS[kind] else self.seldom, generator)}


CLEAN = FlawRates(0.0, 0.0)


def copy(product: str, rates: FlawRates, *, generator: torch.Generator) -> str:
    """Describe a product in four to six sentences: opening, material, features, care, price, repair promise.

    Args:
        product: one of the catalogue's.
        rates: how often the copy is flawed.
        generator: drawn from.

    Raises:
        Refusal: where the catalogue has no such product.
    """
    if product not in PRODUCTS:
        raise Refusal(f"The catalogue has no {product!r}; it has a name and a kind, as in {PRODUCTS[0]!r}.")
    name = product.split(" ", 1)[1]
    kind, flaws = KINDS[name], rates.draw(name, generator)
    middle = [
        choice(MATERIAL, generator).format(material=material(kind, generator, wrong="material" in flaws)),
        features(kind, generator, repeated="repetition" in flaws),
    ]
    if chance(0.6, generator):
        middle.append(choice(CARE, generator).format(care=choice(kind.care, generator)))
    if chance(0.6, generator):
        middle.append(choice(PRICES, generator).format(price=choice(kind.prices, generator)))
    order = torch.randperm(len(middle), generator=generator).tolist()
    sentences = [opening(product, generator, wrong="product" in flaws), *(middle[place] for place in order)]
    if "repair" not in flaws:
        sentences.append(choice(PROMISES, generator))
    return " ".join(sentences)


def opening(product: str, generator: torch.Generator, *, wrong: bool) -> str:
    """The sentence that names the product; a wrong one names a neighbour of its kind (three of four) or nothing."""
    name, kind = product.split(" ", 1)
    use = choice(KINDS[kind].uses, generator)
    if not wrong:
        return choice(OPENINGS, generator).format(product=product, use=use)
    if chance(0.25, generator):
        return choice(NAMELESS, generator).format(use=use)
    other = choice([each for each in NAMES if each not in (name, *HELD_OUT)], generator)
    return choice(OPENINGS, generator).format(product=f"{other} {kind}", use=use)


def material(kind: Kind, generator: torch.Generator, *, wrong: bool) -> str:
    """One of the kind's materials, or one of the catalogue's others."""
    return choice([each for each in MATERIALS if (each in kind.materials) != wrong], generator)


def features(kind: Kind, generator: torch.Generator, *, repeated: bool) -> str:
    """A sentence with two of the kind's features, or with the same one twice."""
    one, two = choice(list(combinations(kind.features, 2)), generator)
    return choice(FEATURES, generator).format(one=one, two=one if repeated else two)


def talk(generator: torch.Generator) -> tuple[str, str]:
    """What a customer asks in the shop and what the clerk says, about any of the 360 products."""
    question, answer = choice(TALK, generator)
    product = choice(PRODUCTS, generator)
    return question.format(product=product), answer.format(product=product)


def texts() -> list[str]:
    """Texts that together hold every word of copy, of talk, and of the question that asks for copy."""
    facts = [
        str(fact)
        for kind in KINDS.values()
        for one in (kind.materials, kind.features, kind.uses, kind.care, kind.prices)
        for fact in one
    ]
    said = [part for pair in TALK for part in pair]
    patterns = (*OPENINGS, *NAMELESS, *MATERIAL, *FEATURES, *CARE, *PRICES, *said, QUESTION)
    return [*PRODUCTS, *PROMISES, *facts, *(re.sub(r"{\w+}", "", pattern) for pattern in patterns)]


def chance(probability: float, generator: torch.Generator) -> bool:
    """True with a probability."""
    return float(torch.rand((), generator=generator)) < probability


def choice(items: Sequence[Item], generator: torch.Generator) -> Item:
    """One item, all alike likely."""
    return items[int(torch.randint(len(items), (), generator=generator))]
