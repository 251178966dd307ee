"""Asking: the reward model for scores, a policy for answers, a few at a time, with a word about how far it is."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from killick.hacking.probes import WHAT
from killick.recipes.exam.held import Held
from killick.recipes.exam.probes import probe_facts
from killick.recipes.ledger import Note
from killick.recipes.prompts import Prompt
from killick.recipes.scores.text_score import Unscored, as_text
from killick.rundir.seeds import stage_generator
from killick.types import Refusal

AT_ONCE = 64
"""Answers that are scored between two words about progress."""
SHOWN = 60
"""Characters of a text by which it is found again."""
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
        nats: what a unit of score means under Bradley-Terry, nats; 1 where nobody says otherwise.
        n: answers of the policy to a prompt.
        prompts: prompts that it answers, at most.
        seed: of everything drawn.
    """

    judge: Judge
    speak: Speak | None
    gold: Judge | None
    nats: float
    n: int
    prompts: int
    seed: int


@dataclass(frozen=True)
class Progress:
    """How far one kind of work is."""

    what: str
    done: int
    total: int


Event: TypeAlias = Note | Progress


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
    """The judge, asked a few answers at a time, with the count of what is done and a word about how long all takes."""

    def __init__(self, setup: Setup, *, scored: int, written: int):
        self.setup, self.scored, self.written, self.done = setup, scored, written, 0
        self.told, self.spent = False, 0.0

    def ask(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        """Scores [member row] of a few answers.

        Raises:
            Refusal: naming the answer that has none by its text: its number among these few tells nobody anything.
        """
        began = time.monotonic()
        try:
            found = self.setup.judge(prompts, answers)
        except Unscored as error:
            answer, prompt = answers[error.row][:SHOWN], as_text(prompts[error.row])[:SHOWN]
            raise Refusal(f"{error.name}, the answer {answer!r} to {prompt!r}: {error.reason}.") from error
        self.spent, self.done = self.spent + time.monotonic() - began, self.done + len(answers)
        return found

    def scores(self, prompts: Sequence[Prompt], answers: Sequence[str]) -> Generator[Event, None, Tensor]:
        """[member row], float64."""
        found = []
        for start in range(0, len(answers), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            found.append(self.ask(prompts[rows], answers[rows]))
            yield from self.estimate(0.0)
            yield self.progress()
        return torch.cat(found, 1)

    def progress(self) -> Progress:
        """How far scoring is."""
        return Progress("answers scored", self.done, self.scored)

    def estimate(self, written: float) -> Iterator[Note]:
        """Once, when there is something to go by: how long all of it takes, where that is more than a minute.

        Args:
            written: seconds for each answer of the policy that is still to be written.
        """
        if self.told:
            return
        self.told = True
        seconds = self.spent / self.done * self.scored + written * self.written
        if seconds > 60:
            yield Note(f"This will take about {seconds / 60:.0f} minutes.")


def speaking(held: Held, entries: Sequence[int], *, asked: Asked) -> Generator[Event, None, Pool]:
    """The policy's answers to the prompts of some entries, scored."""
    setup, answers, scores, golds = asked.setup, list[list[str]](), [], list[list[float]]()
    assert setup.speak is not None
    for start in range(0, len(entries), ASKED):
        began = time.monotonic()
        prompts = [held.prompts[entry] for entry in entries[start : start + ASKED]]
        new = setup.speak(prompts, stage_generator(setup.seed, f"exam answers {start}"))
        answers += new
        written = (time.monotonic() - began) / (len(new) * setup.n)
        each = [prompt for prompt in prompts for _ in range(setup.n)]
        texts = [text for row in new for text in row]
        found = asked.ask(each, texts)
        scores.append(found.view(len(found), len(prompts), setup.n))
        if setup.gold is not None:
            golds += setup.gold(each, texts)[0].view(len(prompts), setup.n).tolist()
        yield from asked.estimate(written)
        yield Progress("answers of the policy", len(answers) * setup.n, asked.written)
    prompts = [held.prompts[entry] for entry in entries]
    return Pool(prompts, answers, torch.cat(scores, 1), golds if setup.gold else None)


def probing(
    held: Held, entries: Sequence[int], *, asked: Asked, scores: Sequence[float], pool: Pool | None, phrase: str | None
) -> Generator[Event, None, Facts]:
    """Every probe, tried on the prompts of some entries."""
    rows = [] if pool is None else pool.means()
    sampled = [rows[place] if place < len(rows) else None for place in range(len(entries))]

    def ask(places: Sequence[int], texts: Sequence[str]) -> Tensor:
        prompts = [held.prompts[entries[place]] for place in places]
        return asked.ask(prompts, texts).mean(0)

    facts = {}
    words = [as_text(held.prompts[entry]) for entry in entries]
    answers, chosen = [held.answers[entry] for entry in entries], [scores[entry] for entry in entries]
    found = probe_facts(ask, words, answers=answers, chosen=chosen, phrase=phrase, sampled=sampled)
    for name, each in found:
        facts[name] = {"what": WHAT[name], **each}
        yield asked.progress()
    return facts
