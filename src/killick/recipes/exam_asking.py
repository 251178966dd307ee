"""Asking: the reward model for scores, a policy for answers, a few at a time, with a word about how far it is."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from killick.hacking.probes import WHAT
from killick.recipes.exam_held import Held
from killick.recipes.exam_probes import probe_facts
from killick.recipes.prompts import Prompt, prompt_words
from killick.rundir.seeds import stage_generator

AT_ONCE = 64
"""Answers that are scored between two words about progress."""
ASKED = 4
"""Prompts that a policy answers at once."""

Facts = dict[str, Any]
Judge: TypeAlias = Callable[[Sequence[Prompt], Sequence[str]], Tensor]
"""Prompts and an answer to each: scores [member row], float64."""
Speak: TypeAlias = Callable[[Sequence[Prompt], torch.Generator], list[list[str]]]
"""Prompts: as many answers to each."""


@dataclass(frozen=True)
class Setup:
    """What is examined, with what.

    Args:
        judge: the reward model.
        speak: a policy; None where there is none.
        gold: what people want, as a judge of one row; None where nobody knows.
        n: answers of the policy to a prompt.
        prompts: prompts that it answers, at most.
        seed: of everything drawn.
    """

    judge: Judge
    speak: Speak | None
    gold: Judge | None
    n: int
    prompts: int
    seed: int


@dataclass(frozen=True)
class Progress:
    """How far one kind of work is: answers written, or answers scored."""

    work: str
    done: int
    total: int


@dataclass(frozen=True)
class Pool:
    """A policy's answers: a row for each prompt.

    Args:
        prompts: in the same order.
        answers: texts.
        scores: a table for each member.
        golds: None where nobody knows.
    """

    prompts: list[Prompt]
    answers: list[list[str]]
    scores: Tensor
    golds: list[list[float]] | None

    def means(self) -> list[list[float]]:
        """Scores of the model as a whole."""
        return self.scores.mean(0).tolist()


class Asked:
    """The judge, asked a few answers at a time, with the count of what is done."""

    def __init__(self, setup: Setup, total: int):
        self.setup, self.total, self.done = setup, total, 0

    def scores(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> Generator[Progress, None, Tensor]:
        """[member row], float64."""
        found = []
        for start in range(0, len(answers), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            found.append(self.setup.judge(prompts[rows], answers[rows]))
            self.done += found[-1].shape[1]
            yield Progress("scored", self.done, self.total)
        return torch.cat(found, 1)


def speaking(held: Held, entries: Sequence[int], *, asked: Asked) -> Generator[Progress, None, Pool]:
    """The policy's answers to the prompts of some entries, scored."""
    setup, answers, scores, golds = asked.setup, list[list[str]](), [], list[list[float]]()
    assert setup.speak is not None
    for start in range(0, len(entries), ASKED):
        prompts = [held.prompts[entry] for entry in entries[start : start + ASKED]]
        new = setup.speak(prompts, stage_generator(setup.seed, f"exam answers {start}"))
        answers += new
        yield Progress("written", len(answers) * setup.n, len(entries) * setup.n)
        each = [prompt for prompt in prompts for _ in range(setup.n)]
        texts = [text for row in new for text in row]
        found = yield from asked.scores(each, texts)
        scores.append(found.view(len(found), len(prompts), setup.n))
        if setup.gold is not None:
            golds += setup.gold(each, texts)[0].view(len(prompts), setup.n).tolist()
    prompts = [held.prompts[entry] for entry in entries]
    return Pool(prompts, answers, torch.cat(scores, 1), golds if setup.gold else None)


def probing(
    held: Held, entries: Sequence[int], *, asked: Asked, scores: Sequence[float], pool: Pool | None, phrase: str | None
) -> Generator[Progress, None, Facts]:
    """Every probe, tried on the prompts of some entries."""
    rows = [] if pool is None else pool.means()
    sampled = [rows[place] if place < len(rows) else None for place in range(len(entries))]

    def ask(places: Sequence[int], texts: Sequence[str]) -> Tensor:
        prompts = [held.prompts[entries[place]] for place in places]
        return asked.setup.judge(prompts, texts).mean(0)

    facts = {}
    words = [prompt_words(held.prompts[entry]) for entry in entries]
    answers, chosen = [held.answers[entry] for entry in entries], [scores[entry] for entry in entries]
    found = probe_facts(ask, words, answers=answers, chosen=chosen, phrase=phrase, sampled=sampled)
    for name, each in found:
        facts[name] = {"what": WHAT[name], **each}
        asked.done += len(entries)
        yield Progress("scored", asked.done, asked.total)
    return facts
