"""How tiny-gpt-chat is made: read clean copy and shop notes, then learn to answer from flawed demonstrations.

Everything is drawn from one seed, so that the same machine and the same torch make the same bytes. No reviewer and no
reward model is asked: what decides how flawed its answers are is the copy's flaw rates and the length of training.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.chat import Chat
from killick.models.encoding import encode_answers
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import Words
from killick.rundir.seeds import stage_generator
from killick.types import Demonstrations, Rollout
from killick.worlds import copywriting
from killick.worlds.catalogue import KINDS, NAMES, PROMISES
from killick.worlds.copywriting import CLEAN, QUESTION, WRITTEN, FlawRates, chance, choice, copy, talk

CONTEXT, BUDGET = 128, 63


@dataclass(frozen=True)
class Config:
    """Settings of the making.

    Attributes:
        seed: of all draws.
        rates: how often the demonstrations are flawed.
        reading: supervised steps on clean copy and shop notes.
        answering: supervised steps on demonstrations.
    """

    seed: int = 0
    rates: FlawRates = FlawRates(0.8, 0.1)
    reading: SFTConfig = SFTConfig(steps=500, batch=32, learning_rate=2e-3, warmup=50)
    answering: SFTConfig = SFTConfig(steps=200, batch=32, learning_rate=5e-4, warmup=20)
    talk: float = 0.25
    hidden: int = 192
    layers: int = 2
    heads: int = 6
    feed_forward: int = 512


def vocabulary() -> Words:
    """Every word that copy, notes and questions can have."""
    facts = [str(part) for kind in KINDS.values() for name in ("materials", "features", "uses", "care", "prices") for part in getattr(kind, name)]
    patterns = [*copywriting.OPENINGS, *copywriting.NAMELESS, *copywriting.MATERIAL, *copywriting.FEATURES, *copywriting.CARE, *copywriting.PRICES, *(x for p in copywriting.TALK for x in p), QUESTION]
    blank = [pattern.format(product="", use="", material="", one="", two="", care="", price="") for pattern in patterns]
    return Words.of([*NAMES, *KINDS, *facts, *blank, *PROMISES])


def reading(chat: Chat) -> Demonstrations:
    """Texts that nobody asked for: clean copy and shop notes, one after an `<end>`."""
    words = chat.tokenizer

    def draw(count: int, generator: torch.Generator) -> Rollout:
        texts = [
            copy(choice(WRITTEN, generator), CLEAN, generator=generator)
            if chance(0.5, generator)
            else " ".join(" ".join(talk(generator)) for _ in range(2))
            for _ in range(count)
        ]
        return encode_answers(["<end>"] * count, texts, encode=words.encode, vocabulary=chat.policy(time=BUDGET).vocabulary)

    return draw


def described(product, rates, generator):
    return QUESTION.format(product=product), copy(product, rates, generator=generator)

def answering(chat: Chat, rates: FlawRates, small) -> Demonstrations:
    """Questions about the products that copy is written about, and answers at the flaw rates."""
    words = chat.tokenizer

    def draw(count: int, generator: torch.Generator) -> Rollout:
        said = [talk(generator) if chance(small, generator) else described(choice(WRITTEN, generator), rates, generator=generator) for _ in range(count)]
        prompts = [f"<user> {question} <assistant>" for question, _ in said]
        answers = [answer for _, answer in said]
        return encode_answers(prompts, answers, encode=words.encode, vocabulary=chat.policy(time=BUDGET).vocabulary)

    return draw


def make(config: Config):
    words = vocabulary()
    shape = TransformerConfig.llama(len(words), len(words), CONTEXT, hidden=config.hidden, layers=config.layers, heads=config.heads, feed_forward=config.feed_forward)
    chat = Chat(Transformer(shape, stage_generator(config.seed, "tiny-gpt-chat weights")), words)
    policy = chat.policy(time=BUDGET)
    for step in sft(SFTState(policy, config.reading, stage_generator(config.seed, "tiny-gpt-chat reading")), reading(chat)):
        yield chat, "reading", step
    for step in sft(SFTState(policy, config.answering, stage_generator(config.seed, "tiny-gpt-chat answering")), answering(chat, config.rates, config.talk)):
        yield chat, "answering", step
