"""What the reviewer prefers of the brand's chat model: the best of four answers to each prompt against the worst."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from killick.algorithms.reference import digest
from killick.models.chat import load
from killick.models.decoding import sample_in_batches
from killick.models.policy import TransformerPolicy
from killick.models.words import Words
from killick.preferences.pairing import extremes
from killick.recipes.ledger import Note
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Preference, Refusal, Rollout
from killick.worlds.brand import Brand, question
from killick.worlds.catalogue import HELD_OUT, PRODUCTS

TEMPERATURE = 0.8
"""At which every answer is drawn, and to which every log-prob and KL of this world belongs."""
BUDGET = 60
"""Tokens of an answer at most."""
K = 4
"""Answers to each prompt."""


@dataclass(frozen=True)
class Speaker:
    """The chat model as a policy, and the world that it speaks in.

    Args:
        policy: tiny-gpt-chat at the world's temperature and budget.
        tokenizer: its words.
        mark: a hash of its weights: what is learnt from one model must not be found for another.
    """

    policy: TransformerPolicy
    tokenizer: Words
    mark: str

    def world(self, products: Sequence[str] = PRODUCTS) -> Brand:
        """Prompts about these products."""
        words = self.tokenizer
        return Brand(words.encode, words.decode, vocabulary=self.policy.vocabulary, products=products)

    def answers(self, products: Sequence[str], n: int, generator: torch.Generator) -> Rollout:
        """N answers about each product; those about one stand together."""
        ids, mask = (part.to(generator.device) for part in self.world(products).everything())
        return sample_in_batches(self.policy, (ids, mask), n=n, generator=generator)


def speaker(device: str = "cpu") -> Speaker:
    """The chat model that comes with killick."""
    model, words = load("tiny-gpt-chat")
    policy = model.policy(temperature=TEMPERATURE, time=BUDGET).to(device)
    return Speaker(policy, words, digest(policy.parameters()))


def preferences(
    speaks: Speaker, *, seed: int, products: Sequence[str] = PRODUCTS, k: int = K
) -> Generator[Note, None, Preference]:
    """One pair for each product whose answers the reviewer does not find equally good, from the cache where they are.

    A pair's `group` is the product's number. The same seed gives the same pairs, whoever asks.

    Args:
        speaks: answers.
        seed: of the answers.
        products: what is asked about.
        k: answers to each prompt.

    Raises:
        Refusal: at a k below 2, or where the reviewer finds all answers to each prompt equally good.
    """
    device = speaks.policy.network.head.weight.device
    settings = {"seed": seed, "model": speaks.mark, "products": list(products), "k": k, "device": str(device)}

    def ask() -> Generator[Note, None, dict[str, Any]]:
        rollout = speaks.answers(products, k, stage_generator(seed, "brand preferences", device=device))
        pairs = extremes(rollout, speaks.world(products).gold(rollout), k=k)
        yield Note(f"{len(pairs)} of {len(products)} prompts have a best and a worst of {k} answers")
        return {"rollout": vars(rollout), **{name: getattr(pairs, name) for name in ("chosen", "rejected", "group")}}

    saved = yield from cached("brand-preferences", settings, build=ask)
    if not len(saved["chosen"]):
        raise Refusal(f"The reviewer finds all {k} answers to each of {len(products)} prompts equally good: no pair.")
    rollout = Rollout(**{name: tensor.to(device) for name, tensor in saved["rollout"].items()})
    chosen, rejected, group = (saved[name].to(device) for name in ("chosen", "rejected", "group"))
    return Preference.hard(rollout, chosen, rejected, group)


def preference_rows(preference: Preference, world: Brand) -> list[dict[str, str]]:
    """Pairs as rows of text: prompt, chosen, rejected.

    Args:
        preference: whose groups are numbers of the world's products.
        world: turns tokens into text.
    """
    chosen, rejected = (world.texts(preference.rollout[rows]) for rows in (preference.chosen, preference.rejected))
    products = [world.products[number] for number in preference.group.tolist()]
    return [
        {"prompt": question(product), "chosen": better, "rejected": worse}
        for product, better, worse in zip(products, chosen, rejected, strict=True)
    ]


def split(preference: Preference, products: Sequence[str]) -> tuple[Preference, Preference]:
    """The pairs that a reward model learns from, and those that it is judged by: the ones about the held-out names.

    Args:
        preference: whose groups are numbers of products.
        products: which those are.
    """
    numbers = preference.group.tolist()
    held = torch.tensor([products[number].split()[0] in HELD_OUT for number in numbers], device=preference.group.device)
    return preference.pairs((~held).nonzero()[:, 0]), preference.pairs(held.nonzero()[:, 0])
