"""What is seen of an arm of the text recipe: each rollout's answers, and now and then answers to held-out prompts.

Gold only watches. Every text is kept, so that another gold can be read off a finished run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.hacking.phrases import commonest, distinct, longest_shared
from killick.models.prompting import PromptSet
from killick.ops.kl import exact_kl
from killick.ops.masked import masked_sum
from killick.recipes.cells import Cell
from killick.recipes.ledger import Row
from killick.recipes.scores.text_score import TextScore
from killick.recipes.text.rewards import Proxy
from killick.recipes.text.speaker import Answers, Speaker
from killick.rundir.seeds import stage_generator
from killick.types import Policy, Rollout

AT_ONCE = 64
"""Answers whose distributions are held at once."""


@dataclass(frozen=True)
class Watch:
    """Whoever looks at what an arm says.

    Args:
        cell: the arm.
        stream: names what evaluations draw from.
        speaks: tokenizer and trunk.
        gold: what people want.
        proxy: what is optimised, and the heads beside it.
        learnt: prompts that the policy is asked in training.
        held: what the reference says to the held-out ones.
        samples: answers to each of them at an evaluation.
        every: rollouts from one evaluation to the next.
    """

    cell: Cell
    stream: str
    speaks: Speaker
    gold: TextScore
    proxy: Proxy
    learnt: PromptSet
    held: Answers
    samples: int
    every: int

    def judged(self, prompts: PromptSet, rollout: Rollout) -> tuple[list[str], Float[Tensor, " batch"]]:
        """Answers as text, and their gold."""
        told = self.speaks.texts.responses(rollout)
        return told, self.gold(prompts.of(rollout), told).float()

    def told(self, step: int, rollout: Rollout) -> tuple[Row, list[Row], Float[Tensor, " batch"]]:
        """A rollout's own columns, all its answers, and their gold."""
        said, gold = self.judged(self.learnt, rollout)
        scores = self.proxy.every(rollout)
        heads = zip(self.proxy.heads.names[1:], scores[:, 1:].mean(0).tolist(), strict=True)
        own = {f"watching_{name}": mean for name, mean in heads} | spoken(said)
        return own, self.rows(step, self.learnt, rollout=rollout, said=said, gold=gold, proxy=scores[:, 0]), gold

    def rows(
        self, step: int, prompts: PromptSet, *, rollout: Rollout, said: Sequence[str], gold: Tensor, proxy: Tensor
    ) -> list[Row]:
        """Every answer, as a person reads it."""
        cell, held = self.cell, prompts is self.held.prompts
        return [
            {"arm": cell.arm, "seed": cell.seed, "step": step, "held_out": held, "prompt": prompt, "response": text,
             "gold": round(float(worth), 4), "proxy": round(float(score), 4)}
            for prompt, text, worth, score in zip(prompts.of(rollout), said, gold, proxy, strict=True)
        ]  # fmt: skip

    def held_out(self, step: int, policy: Policy) -> tuple[Row, list[Row]]:
        """Columns and answers of an evaluation before this step's update; empty columns where there is none.

        Before anything has moved the policy is the reference: its answers are there, more of them, and its KL is 0.
        """
        if step % self.every:
            return dict.fromkeys(HELD), []
        held = self.held
        if not step:
            few = torch.arange(len(held.gold)).view(-1, held.n)[:, : self.samples].flatten()
            said = [held.texts[row] for row in few.tolist()]
            scores = self.proxy.heads.scores(held.features)[:, 0]
            kl = torch.zeros(1)
            rows = self.rows(step, held.prompts, rollout=held.rollout[few], said=said, gold=held.gold[few],
                             proxy=scores[few])  # fmt: skip
            return columns(said, gold=held.gold, proxy=scores, kl=kl, n=held.n), rows
        device = held.gold.device
        generator = stage_generator(self.cell.seed, f"text held out {self.stream} {step}", device=device)
        ids, mask = (part.to(device) for part in held.prompts.all())
        rollout = policy.sample((ids, mask), self.samples, generator)
        said, gold = self.judged(held.prompts, rollout)
        scores = self.proxy(rollout)
        rows = self.rows(step, held.prompts, rollout=rollout, said=said, gold=gold, proxy=scores)
        kl = distances(policy, self.speaks.reference, rollout=rollout)
        return columns(said, gold=gold, proxy=scores, kl=kl, n=self.samples), rows


SPOKEN = ("distinct", "phrase", "phrase_share", "longest", "longest_share")
HELD = tuple(f"held_{name}" for name in ("proxy", "gold", "gold_error", "kl", *SPOKEN))
"""What an evaluation measures."""


def spoken(said: Sequence[str]) -> Row:
    """How much answers repeat each other: different three-word runs, the run of three to six words that most of them
    hold, and the longest run of words that half of them share.
    """
    found: list[Any] = [distinct(said)]
    for phrase in (commonest(said), longest_shared(said)):
        found += (None, None) if phrase is None else (phrase.words, phrase.share)
    return dict(zip(SPOKEN, found, strict=True))


def columns(said: Sequence[str], *, gold: Tensor, proxy: Tensor, kl: Tensor, n: int) -> Row:
    """An evaluation as columns; the error is that of the mean over prompts, each asked n times."""
    means = gold.view(-1, n).mean(1)
    error = float(means.std() / len(means) ** 0.5) if len(means) > 1 else None
    found: dict[str, Any] = {"proxy": float(proxy.mean()), "gold": float(gold.mean()), "gold_error": error,
                             "kl": float(kl.mean())}  # fmt: skip
    return {f"held_{name}": value for name, value in (found | spoken(said)).items()}


@torch.no_grad()
def distances(policy: Policy, reference: Policy, *, rollout: Rollout) -> Float[Tensor, " batch"]:
    """KL of each answer to the reference, nats: exact for each token, summed along the answer."""
    found = []
    for rows in torch.arange(len(rollout)).split(AT_ONCE):
        full, before = (speaks.logprobs(rollout[rows])[1] for speaks in (policy, reference))
        assert full is not None
        assert before is not None
        found.append(masked_sum(exact_kl(full, before), rollout.mask[rows], dim=1))
    return torch.cat(found)
