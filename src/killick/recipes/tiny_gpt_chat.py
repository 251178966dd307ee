"""How tiny-gpt-chat is made: read clean copy and shop talk, then learn to answer from flawed demonstrations.

Everything is drawn from one seed, so that the same machine and the same torch make the same bytes. No reviewer and no
reward model is asked: how flawed its answers are is decided by the copy's flaw rates and the length of training.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

import torch

from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.chat import Chat
from killick.models.encoding import encode_answers
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import Words
from killick.recipes.ledger import Note
from killick.rundir.seeds import stage_generator
from killick.types import Refusal, Rollout
from killick.worlds.brand import chat, question
from killick.worlds.copywriting import CLEAN, WRITTEN, FlawRates, chance, choice, copy, talk, texts

Write = Callable[[torch.Generator], tuple[str, str]]
"""Draws what stands before a text, and the text."""


@dataclass(frozen=True)
class Config:
    """Settings of the making.

    Args:
        seed: of all draws.
        rates: how often the demonstrations of copy are flawed.
        talk: share of shop talk, in both stages.
        reading: supervised steps on clean copy and shop talk that nobody asked for.
        answering: supervised steps on questions and answers.
        context: most tokens of prompt and answer together.
        hidden, layers, heads, feed_forward: the network's sizes.
    """

    seed: int = 0
    rates: FlawRates = FlawRates(often=0.76, seldom=0.17)
    talk: float = 0.25
    reading: SFTConfig = SFTConfig(steps=300, batch=32, learning_rate=2e-3, warmup=30)
    answering: SFTConfig = SFTConfig(steps=300, batch=32, learning_rate=5e-4, warmup=20)
    context: int = 128
    hidden: int = 192
    layers: int = 2
    heads: int = 6
    feed_forward: int = 512

    def validate(self) -> None:
        """Refuse what cannot be made.

        Raises:
            Refusal: naming the setting.
        """
        self.rates.validate()
        self.reading.validate()
        self.answering.validate()
        if not 0 <= self.talk <= 1:
            raise Refusal(f"The share of talk must lie in 0..1, not {self.talk}.")


def make(config: Config) -> Generator[Note, None, Chat]:
    """Train a fresh network in two stages, telling how it goes; returns the model.

    Raises:
        Refusal: where the settings cannot work.
    """
    config.validate()
    words = Words.of(texts())
    shape = TransformerConfig.llama(
        len(words), len(words), config.context, hidden=config.hidden, layers=config.layers, heads=config.heads,
        feed_forward=config.feed_forward,
    )  # fmt: skip
    model = Chat(Transformer(shape, stage_generator(config.seed, "tiny-gpt-chat")), words)

    def read(generator: torch.Generator) -> tuple[str, str]:
        if chance(config.talk, generator):
            return "<end>", " ".join((*talk(generator), *talk(generator)))
        return "<end>", copy(choice(WRITTEN, generator), CLEAN, generator=generator)

    def answer(generator: torch.Generator) -> tuple[str, str]:
        if chance(config.talk, generator):
            asked, said = talk(generator)
            return chat(asked), said
        product = choice(WRITTEN, generator)
        return chat(question(product)), copy(product, config.rates, generator=generator)

    yield from learn(model, config.reading, write=read, stage="reading", seed=config.seed)
    yield from learn(model, config.answering, write=answer, stage="answering", seed=config.seed)
    return model


def learn(model: Chat, config: SFTConfig, *, write: Write, stage: str, seed: int) -> Generator[Note, None, None]:
    """One stage of supervised steps; a note every hundred."""
    policy = model.policy()

    def demonstrations(count: int, generator: torch.Generator) -> Rollout:
        before, written = zip(*(write(generator) for _ in range(count)), strict=True)
        return encode_answers(before, written, encode=model.tokenizer.encode, vocabulary=policy.vocabulary)

    draws = stage_generator(seed, f"tiny-gpt-chat {stage}")
    for step in sft(SFTState(policy, config, draws), demonstrations):
        if (step.step + 1) % 100 == 0 or step.step + 1 == config.steps:
            yield Note(f"{stage}, step {step.step + 1} of {config.steps}: {step.loss:.2f} nats per token")
