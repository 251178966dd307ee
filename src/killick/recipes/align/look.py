"""A look at the held-out prompts: what a policy answers there now, and how it scores beside its reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.collecting import Collected, collect
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.ops.stats import clustered_error, pair_accuracy
from killick.recipes.ledger import Row
from killick.recipes.scores.text_score import TextScore
from killick.types import Policy, Prompts, PromptSource, Reward, Rollout

PREFIX = "held_"
"""What the ledger's columns of a look begin with."""


@dataclass(frozen=True)
class OnText:
    """A score of text as a `Reward`: it reads prompt and answer as a person does, whatever tokens they were.

    Args:
        score: prompts and answers in, a number each out.
        asked: every prompt that a rollout may answer.
        texts: the policy's tokenizer.
    """

    score: TextScore
    asked: PromptSet
    texts: Texts

    def __call__(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """Score every response."""
        return self.score(self.asked.of(rollout), self.texts.responses(rollout)).to(rollout.logprobs)


@dataclass(frozen=True)
class Asked:
    """How many prompts at once, and answers to each."""

    batch: int
    n: int


@dataclass
class Standing:
    """A policy beside its reference, to be looked at and not moved."""

    policy: Policy
    reference: Policy
    generator: torch.Generator
    step: int
    config: Asked


@dataclass(frozen=True)
class Look:
    """Answers to the held-out prompts, those to one prompt together, and what was measured on them.

    Args:
        proxy: of each answer, as the optimiser would see it.
        gold: of each answer; None where there is no gold.
        kl: nats of each answer: exact, or the sampled log-ratio where no full distribution is at hand.
        entropy: nats per token; None where no full distribution is at hand.
        lengths: tokens of each answer.
        finished: which answers ended by themselves.
        answers: as a person reads them.
        n: answers to each prompt.
    """

    proxy: Float[Tensor, " answer"]
    gold: Float[Tensor, " answer"] | None
    kl: Float[Tensor, " answer"]
    entropy: float | None
    lengths: Tensor
    finished: Tensor
    answers: list[str]
    n: int

    def row(self, before: "dict[str, Any]", *, ends: bool) -> Row:
        """The ledger's columns of a look.

        Args:
            before: the scores of the reference, from the first look (`scores`).
            ends: whether a response can end by itself.
        """
        judged = "proxy" if self.gold is None else "gold"
        mine, theirs = (self.scores()[judged], before[judged])
        found = {
            "proxy": float(self.proxy.mean()),
            "gold": None if self.gold is None else float(self.gold.mean()),
            "gold_error": None if self.gold is None else clustered_error(self.gold, n=self.n),
            "gain_error": None if self.gold is None else clustered_error(mine - theirs, n=self.n),
            "proxy_error": clustered_error(self.proxy, n=self.n),
            "win": float(pair_accuracy(mine, theirs)),
            "kl": float(self.kl.mean()),
            "entropy": self.entropy,
            "length": float(self.lengths.float().mean()),
            "finished": float(self.finished.float().mean()) if ends else None,
        }
        return {PREFIX + name: value for name, value in found.items()}

    def scores(self) -> dict[str, Any]:
        """Proxy and gold of each answer, and the answers, as plain parts of a state."""
        gold = {} if self.gold is None else {"gold": self.gold}
        return {"proxy": self.proxy, **gold, "answers": self.answers}


def look(at: Standing, prompts: Prompts, *, proxy: Reward, gold: Reward | None, texts: Texts) -> Look:
    """Ask the held-out prompts, a batch at a time, and measure as in training.

    Args:
        at: whose policy answers; its generator is drawn from.
        prompts: all of them.
        proxy: what is optimised for.
        gold: what people want; None where nobody says.
        texts: of the answers.
    """
    found: list[Collected] = []
    golds: list[Tensor] = []
    for ids, mask in zip(*(part.split(at.config.batch) for part in prompts), strict=True):
        few = Standing(at.policy, at.reference, at.generator, at.step, Asked(len(ids), at.config.n))
        found.append(collect(few, proxy, prompts=given(ids, mask)))
        if gold is not None:
            golds.append(gold(found[-1].rollout))
    return Look(
        torch.cat([part.scores for part in found]),
        torch.cat(golds) if golds else None,
        torch.cat([part.log_ratio.sum(1) if part.kl is None else part.kl for part in found]),
        mean_entropy(found),
        torch.cat([part.rollout.lengths for part in found]),
        torch.cat([part.rollout.finished for part in found]),
        [text for part in found for text in texts.responses(part.rollout)],
        at.config.n,
    )


def given(ids: Tensor, mask: Tensor) -> PromptSource:
    """These prompts and no others."""
    return lambda *_: (ids, mask)


def mean_entropy(found: Sequence[Collected]) -> float | None:
    """Nats per token over all batches, each token counted once (O-53)."""
    tokens = [int(part.rollout.mask.sum()) for part in found]
    values = [part.entropy for part in found]
    if any(value is None for value in values):
        return None
    return sum(value * count for value, count in zip(values, tokens, strict=True) if value is not None) / sum(tokens)
