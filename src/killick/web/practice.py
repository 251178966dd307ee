"""The practice API: preferences to learn from, a reviewer, a model that answers, reward models that score.

Everything but the reviewer comes in as a function, so this module knows no file, no cache and no network.
"""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool

from killick.models.asking import Answer, Question, Unread
from killick.types import Refusal
from killick.web.practice_forms import (
    ANSWERS,
    ITEMS,
    PRODUCT,
    Answered,
    BrandCheck,
    BrandChecked,
    Generate,
    Generated,
    Models,
    Named,
    Pair,
    Preferences,
    Reviewed,
    Score,
    Scored,
    Scores,
    Written,
)
from killick.web.strict import ANYWHERE, REFUSALS, StrictRoute, wrong
from killick.web.together import Together
from killick.worlds.brand import review
from killick.worlds.wording import Phrases, sentences

Rows: TypeAlias = Sequence[Mapping[str, str]]
Speak: TypeAlias = Callable[[list[Question]], Sequence[list[Answer] | Refusal]]
"""Answers to each of several questions, the same that each would get alone; or why there are none."""
Judge: TypeAlias = Callable[[Sequence[str], Sequence[str]], Sequence[float | Unread]]
"""Prompts and answers as texts to one score each, the same that each would get alone; or why there is none."""

SHORT = 20_000
"""Characters that are reviewed in some milliseconds."""


@dataclass(frozen=True)
class Practice:
    """What the API offers.

    Args:
        preferences: rows of prompt, chosen and rejected; called at each request, so it should remember.
        models: language models by name.
        rewards: reward models by name.
    """

    preferences: Callable[[], Rows]
    models: Mapping[str, Speak]
    rewards: Mapping[str, Judge]


def practice(offers: Practice) -> APIRouter:
    """The endpoints under /v1.

    What may take long runs in threads, so that it keeps nobody else from being answered; short reviews are done at
    once, one after the other, since threads would only wait for each other.
    """
    router = APIRouter(prefix="/v1", tags=["practice"], route_class=StrictRoute)
    give(router, offers)
    check(router)
    ask(router, offers)
    return router


def give(router: APIRouter, offers: Practice) -> None:
    """What there is: preferences, and models by name."""

    @router.get("/preferences", responses=ANYWHERE | {422: REFUSALS[422]})
    def preferences(
        product: Annotated[
            str, Query(max_length=PRODUCT, description="Words of a product: a name, a kind or both.")
        ] = "",
        offset: Annotated[int, Query(ge=0, le=10**9, description="Pairs to leave out at the beginning.")] = 0,
        limit: Annotated[int, Query(ge=0, le=10**6, description="Pairs at most.")] = 10**6,
    ) -> Preferences:
        """Pairs of answers, the better one by the reviewer's count first; all of them where nothing is asked for."""
        rows = about(product, offers.preferences())
        return Preferences(data=[Pair(**row) for row in rows[offset : offset + limit]], total=len(rows))

    @router.get("/models", responses=ANYWHERE)
    async def models() -> Models:
        """Names that /v1/generate and /v1/reward take."""
        kinds = [*((name, "language") for name in offers.models), *((name, "reward") for name in offers.rewards)]
        return Models(data=[Named(name=name, kind=kind) for name, kind in kinds])


def check(router: APIRouter) -> None:
    """The reviewer."""

    @router.post("/brand-check", responses=REFUSALS)
    async def brand_check(asked: BrandCheck) -> BrandChecked:
        """The guidelines that each text breaks: a list whose length is the count.

        A flaw begins with its guideline (product, repetition, material, repair) and names the words that caused it.
        """
        if sum(len(item.text) for item in asked.items) > SHORT:
            return await run_in_threadpool(reviewed, asked)
        return reviewed(asked)


def ask(router: APIRouter, offers: Practice) -> None:
    """Models that answer, and models that score."""
    speakers = {name: Together(speak, answers_asked, most=ANSWERS * 4) for name, speak in offers.models.items()}
    judges = {name: Together(side_by_side(judge), len, most=ITEMS) for name, judge in offers.rewards.items()}

    @router.post("/generate", responses=REFUSALS)
    def generate(asked: Generate) -> Generated:
        """Answers of a language model. Those who ask at the same time are answered together, each as if alone."""
        speak = named(asked.model, speakers)
        seed = secrets.randbits(32) if asked.seed is None else asked.seed
        answers = speak(Question(asked.prompt, asked.n, asked.temperature, asked.max_tokens, seed))
        if isinstance(answers, Refusal):
            raise wrong(str(answers), "prompt")
        return Generated(answers=[Written(text=one.text, finished=one.finished) for one in answers], seed=seed)

    @router.post("/reward", responses=REFUSALS)
    def reward(asked: Score) -> Scores:
        """Scores of answers by a reward model. Those who ask at the same time are scored together, each as if alone."""
        judge = named(asked.model, judges)
        try:
            scores = judge(asked.items) if asked.items else ()
        except Refusal as refusal:
            raise wrong(str(refusal), "items") from refusal
        return Scores(results=[scored(score, place) for place, score in enumerate(scores)])


def reviewed(asked: BrandCheck) -> BrandChecked:
    """What the reviewer finds in each text.

    Raises:
        RequestValidationError: at a product of no kind that the catalogue knows.
    """
    results = []
    for place, item in enumerate(asked.items):
        try:
            flaws = review(item.product, item.text)
        except Refusal as refusal:
            raise wrong(str(refusal), "items", place, "product") from refusal
        results.append(Reviewed(flaws=list(map(str, flaws))))
    return BrandChecked(results=results)


def side_by_side(judge: Judge) -> Callable[[list[list[Answered]]], list[list[float | Unread]]]:
    """A judge of several lists of answers at once."""

    def judged(jobs: list[list[Answered]]) -> list[list[float | Unread]]:
        items = list(chain.from_iterable(jobs))
        scores = iter(judge([item.prompt for item in items], [item.answer for item in items]))
        return [list(islice(scores, len(job))) for job in jobs]

    return judged


def answers_asked(question: Question) -> int:
    """The work in a question."""
    return question.n


def about(product: str, rows: Rows) -> Rows:
    """The rows whose prompt says these words side by side, case and number aside."""
    if not product.strip():
        return rows
    wanted = Phrases([product])
    return [row for row in rows if any(any(wanted.find(words)) for words in sentences(row["prompt"]))]


def named(name: str, known: Mapping[str, Any]) -> Any:
    """A model by its name.

    Raises:
        RequestValidationError: naming those that there are.
    """
    if name not in known:
        raise wrong(f"There is no such model here; there are {', '.join(known) or 'none'}.", "model")
    return known[name]


def scored(score: float | Unread, place: int) -> Scored:
    """A score as JSON can say it.

    Raises:
        RequestValidationError: at an item that the reward model cannot read, by its place.
    """
    if isinstance(score, Unread):
        raise wrong(score.reason, "items", place, score.field)
    if math.isfinite(score):
        return Scored(reward=score)
    return Scored(reward=None, reason=f"The reward model gave {score}, which is no number.")
