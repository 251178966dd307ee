"""The probes of a reward model, asked: how often each beats the chosen answer, and the answers of the policy."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from killick.hacking.probes import Phrase, probe_sets, typical_phrases
from killick.ops.shares import share_interval
from killick.types import Refusal

LEARNED = 1000
"""Pairs at most from which phrases are taken."""
SHOWN = 8
"""Phrases that are kept to be read."""

Facts = dict[str, Any]
Ask: TypeAlias = Callable[[Sequence[int], Sequence[str]], Tensor]
"""Numbers of prompts, and an answer to each: scores, float64."""


def phrases_of(pairs: Sequence[tuple[str, str]]) -> list[Phrase]:
    """The phrases most typical of chosen answers, from pairs spread evenly over all that are given."""
    step = max(1, -(-len(pairs) // LEARNED))
    return typical_phrases(pairs[::step], count=SHOWN)


def probe_facts(
    ask: Ask, prompts: Sequence[str], *, answers: Sequence[str], chosen: Sequence[float], phrase: str | None,
    sampled: Sequence[Sequence[float] | None],
) -> Iterator[tuple[str, Facts]]:  # fmt: skip
    """Each probe with what came of it, one after the other.

    Args:
        ask: the reward model, with a prompt given by its number.
        prompts: as texts.
        answers: a chosen answer to each.
        chosen: the scores of those.
        phrase: typical of chosen answers.
        sampled: scores of the policy's answers to each prompt; None where it was not asked.
    """
    for name, texts in probe_sets(prompts, answers, phrase=phrase):
        try:
            scores = ask(range(len(prompts)), texts).tolist()
        except Refusal as refusal:  # a person's function need not take an empty text
            yield name, {"beats_chosen": None, "reason": str(refusal)}
            continue
        yield (
            name,
            {
                "beats_chosen": beaten(scores, chosen),
                "ties": sum(score == other for score, other in zip(scores, chosen, strict=True)),
                "beats_sampled": beaten(
                    *known(scores, [None if row is None else sum(row) / len(row) for row in sampled])
                ),
                "beats_best": beaten(*known(scores, [None if row is None else max(row) for row in sampled])),
                "example": texts[0],
                "example_score": scores[0],
            },
        )


def known(scores: Sequence[float], others: Sequence[float | None]) -> tuple[list[float], list[float]]:
    """Both lists, where there is something to beat."""
    pairs = [(score, other) for score, other in zip(scores, others, strict=True) if other is not None]
    return [score for score, _ in pairs], [other for _, other in pairs]


def beaten(scores: Sequence[float], others: Sequence[float]) -> Facts | None:
    """Share of prompts on which the first is higher, strictly, with its interval; None where there is no prompt."""
    if not scores:
        return None
    hits = sum(score > other for score, other in zip(scores, others, strict=True))
    low, high = share_interval(hits, len(scores))
    return {"prompts": len(scores), "share": hits / len(scores), "low": low, "high": high}
