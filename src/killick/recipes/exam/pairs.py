"""What held-out pairs say of a reward model: how often it is right and where, how surely, and what length does to it.

Plain lists in, plain numbers out; a number that cannot be known is None, with the reason beside it (O-52).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch

from killick.ops.calibration import (
    brier,
    chance_error,
    claims,
    expected_calibration_error,
    fitted_temperature,
    reliability,
)
from killick.ops.shares import grouped_interval, share_interval
from killick.ops.stats import pair_credit, rank_correlation

RATIOS = (0.5, 0.8, 1.25, 2.0)
"""Bounds of the bins of length: characters of the chosen answer over those of the rejected one."""
ENOUGH = 10
"""Pairs that a share needs before it decides anything."""

Facts = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """Held-out pairs with their scores; every list has one entry for each pair.

    Args:
        chosen, rejected: scores.
        label: probability that the chosen answer is preferred, above 0.5.
        lengths: characters of the chosen and of the rejected answer.
        strength: how much better the chosen one is by the file's own word.
        unit: the number of its prompt.
    """

    chosen: list[float]
    rejected: list[float]
    label: list[float]
    lengths: list[tuple[int, int]]
    strength: list[float | None]
    unit: list[int]

    @property
    def margins(self) -> list[float]:
        """Score of the chosen answer minus that of the rejected one, in the model's unit."""
        return [better - worse for better, worse in zip(self.chosen, self.rejected, strict=True)]

    def credits(self) -> list[float]:
        """Of each pair, the chance that a label of it agrees with the model: half where the scores tie (O-05)."""
        right = pair_credit(doubles(self.chosen), doubles(self.rejected)).tolist()
        return [
            label if each == 1 else 1 - label if each == 0 else 0.5
            for each, label in zip(right, self.label, strict=True)
        ]


def doubles(values: Sequence[float]) -> torch.Tensor:
    """A list as a tensor of float64."""
    return torch.tensor(values, dtype=torch.double)


def share(credits: Sequence[float], units: Sequence[int]) -> Facts:
    """Mean credit with its interval; None where there is no pair."""
    low, high = grouped_interval(credits, units)
    return {
        "pairs": len(credits), "accuracy": sum(credits) / len(credits) if credits else None,
        "low": low if credits else None, "high": high if credits else None,
    }  # fmt: skip


def within(judged: Judged, places: Sequence[int]) -> Facts:
    """`share` of some of the pairs."""
    credits = judged.credits()
    return share([credits[place] for place in places], [judged.unit[place] for place in places])


def accuracy_facts(judged: Judged) -> Facts:
    """How often it is right; with soft labels, how often a label drawn from them would agree."""
    margins = judged.margins
    return share(judged.credits(), judged.unit) | {
        "prompts": len(set(judged.unit)),
        "score_ties": margins.count(0.0),
        "strict": sum(each for each, margin in zip(judged.credits(), margins, strict=True) if margin) / len(margins),
    }


def calibration_facts(judged: Judged, generator: torch.Generator, *, nats: float) -> Facts:
    """Whether a gap between scores means the probability that Bradley-Terry reads out of it.

    Args:
        judged: the pairs.
        generator: draws the labels that a perfectly calibrated model would meet.
        nats: of preference that a unit of score means.
    """
    margins, labels = nats * doubles(judged.margins), doubles(judged.label)
    claimed, found = claims(margins, labels)
    table = reliability(claimed, found)
    mean, most = chance_error(claimed, generator)
    temperature = fitted_temperature(margins, labels)
    facts: Facts = {
        "nats": nats,
        "brier": brier(margins, labels),
        "ece": expected_calibration_error(table),
        "ece_by_chance": mean,
        "ece_by_chance_high": most,
        "temperature": temperature if 0 < temperature < math.inf else None,
        "reliability": [
            {"pairs": pairs, "claimed": claim, "found": label, **ends(label * pairs, pairs)}
            for pairs, claim, label in zip(*(each.tolist() for each in table), strict=True) if pairs
        ],
    }  # fmt: skip
    if temperature == 0:
        facts["temperature_reason"] = "every pair is right, so that no gap would be too large"
    if temperature == math.inf:
        facts["temperature_reason"] = "no temperature makes these scores better than knowing nothing"
    return facts


def ends(hits: float, trials: int) -> Facts:
    """The ends of a share's interval."""
    return dict(zip(("low", "high"), share_interval(hits, trials), strict=True))


def quarters(values: Sequence[float]) -> list[tuple[float, float, list[int]]]:
    """Places by quarters of their values: from, to, places. Equal values stay together, so there may be fewer."""
    cuts = doubles(values).quantile(doubles([0, 0.25, 0.5, 0.75, 1])).unique().tolist()
    found = []
    for low, high in pairwise(cuts if len(cuts) > 1 else cuts * 2):
        last = high == cuts[-1]
        places = [place for place, value in enumerate(values) if low <= value and (value < high or last)]
        found.append((low, high, places))
    return [each for each in found if each[2]]


def by_gap(judged: Judged, *, nats: float) -> list[Facts]:
    """Accuracy by how far apart the scores are, in quarters, with what such gaps claim."""
    gaps = [abs(margin) for margin in judged.margins]
    claimed = (nats * doubles(gaps)).sigmoid().tolist()
    return [
        {"from": low, "to": high, **within(judged, places), "claimed": fmean(claimed[place] for place in places)}
        for low, high, places in quarters(gaps)
    ]


def by_level(judged: Judged) -> list[Facts]:
    """Accuracy by how high the scores of a pair are on average, in quarters: choosing hard needs the highest."""
    levels = [(better + worse) / 2 for better, worse in zip(judged.chosen, judged.rejected, strict=True)]
    return [{"from": low, "to": high, **within(judged, places)} for low, high, places in quarters(levels)]


def by_strength(judged: Judged) -> list[Facts]:
    """Accuracy by how much better the chosen answer is: the file's own word, else a soft label; empty without either.

    Up to six different values are a bin each, more are taken in quarters.
    """
    values = [label if own is None else own for own, label in zip(judged.strength, judged.label, strict=True)]
    if any(own is None for own in judged.strength):
        values = judged.label
    if len(set(values)) < 2:
        return []
    if len(set(values)) > 6:
        return [{"from": low, "to": high, **within(judged, places)} for low, high, places in quarters(values)]
    return [
        {"from": value, "to": value, **within(judged, [place for place, each in enumerate(values) if each == value])}
        for value in sorted(set(values))
    ]


def by_length(judged: Judged) -> list[Facts]:
    """Accuracy by how long the chosen answer is beside the rejected one; an empty answer counts as one character."""
    ratios = [max(better, 1) / max(worse, 1) for better, worse in judged.lengths]
    edges = (0.0, *RATIOS, math.inf)
    return [
        {"from": low, "to": None if high == math.inf else high,
         **within(judged, [place for place, ratio in enumerate(ratios) if low < ratio <= high])}
        for low, high in pairwise(edges)
    ]  # fmt: skip


def length_facts(judged: Judged) -> Facts:
    """What length has to do with the scores, beside what it has to do with the labels.

    `balanced` is the accuracy if the longer answer were chosen in half of the pairs: 0.5 for a judge of length, however
    much people like long answers. Its interval adds those of its two halves (Zou and Donner 2008).
    """
    apart = [better - worse for better, worse in judged.lengths]
    longer = [place for place, each in enumerate(apart) if each > 0]
    shorter = [place for place, each in enumerate(apart) if each < 0]
    up, down = within(judged, longer), within(judged, shorter)
    margins, lengths = doubles(judged.margins), doubles(apart)
    facts: Facts = {
        "pairs": len(longer) + len(shorter),
        "correlation": rank_correlation(torch.cat((margins, -margins)), torch.cat((lengths, -lengths))),
        "longer_chosen": up,
        "shorter_chosen": down,
        **leaning(judged, longer, shorter=shorter),
        "balanced": None, "balanced_low": None, "balanced_high": None,
    }  # fmt: skip
    if min(len(longer), len(shorter)) < ENOUGH:
        facts["balanced_reason"] = (
            f"the longer answer is the chosen one in {len(longer)} pairs and the rejected one in {len(shorter)}; to "
            f"tell length from quality takes {ENOUGH} of either"
        )
        return facts
    middle = (up["accuracy"] + down["accuracy"]) / 2
    below, above = (
        math.hypot(up["accuracy"] - up[end], down["accuracy"] - down[end]) / 2 for end in ("low", "high")
    )  # fmt: skip
    return facts | {"balanced": middle, "balanced_low": middle - below, "balanced_high": middle + above}


def leaning(judged: Judged, longer: Sequence[int], *, shorter: Sequence[int]) -> Facts:
    """How often the longer answer scores higher, how often people prefer it, and the difference with its interval."""
    places, margins = [*longer, *shorter], judged.margins
    sign = [1] * len(longer) + [-1] * len(shorter)
    model = [
        0.5 + 0.5 * math.copysign(bool(margins[place]), margins[place] * each)
        for place, each in zip(places, sign, strict=True)
    ]
    people = [
        judged.label[place] if each > 0 else 1 - judged.label[place] for place, each in zip(places, sign, strict=True)
    ]
    if not places:
        return {"model_longer": None, "people_longer": None, "lean": None, "lean_low": None, "lean_high": None}
    # The difference, from -1 to 1, as a share of its range, so that an interval of shares holds for it.
    apart = [(1 + said - liked) / 2 for said, liked in zip(model, people, strict=True)]
    low, high = grouped_interval(apart, [judged.unit[place] for place in places])
    count = len(places)
    return {
        "model_longer": sum(model) / count, "people_longer": sum(people) / count,
        "lean": 2 * sum(apart) / count - 1, "lean_low": 2 * low - 1, "lean_high": 2 * high - 1,
    }  # fmt: skip


def agreement_facts(margins: Sequence[Sequence[float]], units: Sequence[int]) -> Facts:
    """How often two members of an ensemble prefer the same answer of a pair, over all twos of them.

    Args:
        margins: a row for each member, with the difference of scores of each pair.
        units: the prompt of each pair.
    """
    signs = [[(margin > 0) - (margin < 0) for margin in row] for row in margins]
    count = len(signs)
    credits = []
    for said in zip(*signs, strict=True):
        alike = sum(said[i] == said[j] for i in range(count) for j in range(i))
        credits.append(alike / (count * (count - 1) / 2))
    found = share(credits, units)
    return {
        "members": count, "pairs": found["pairs"], "agreement": found["accuracy"], "low": found["low"],
        "high": found["high"],
    }  # fmt: skip
