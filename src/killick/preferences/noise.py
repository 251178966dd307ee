"""Each annotator's noise: the kappa of the Bradley-Terry labeler, estimated from labels alone, without any gold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from killick.ops.noise import PULL, Choices, ceiling_of, most_likely
from killick.preferences.verdicts import Verdict

SURE = 1.96
"""Deviations on either side of an estimate that hold the truth in 95 of 100 cases."""
SIGNAL = math.sqrt(6) / math.pi
"""Deviation of a difference of two strengths, sqrt(2), over that of logistic noise, pi / sqrt(3)."""
BLOCKS = 512
"""Blocks whose strengths are integrated out at once."""


@dataclass(frozen=True)
class Noise:
    """An annotator's kappa, per deviation of the responses' strengths, and what follows from it.

    Args:
        kappa: 1 / noise; negative for one who stands against the others.
        interval: of kappa, 95 %.
        ceiling: the largest share of this annotator's labels, on pairs drawn at random, that any judge can foresee.
        ceiling_interval: the same from the ends of kappa's.
    """

    kappa: float
    interval: tuple[float, float]
    ceiling: float
    ceiling_interval: tuple[float, float]


def noise(verdicts: Sequence[Verdict]) -> tuple[dict[str, Noise | None], Noise | None]:
    """The noise of each annotator, and that of all as if they were one.

    Kappas come from how far annotators agree with each other (and with themselves, where responses are compared more
    than once, as in a tournament): without any overlap labels say nothing about noise, and two annotators who meet on
    single pairs only tell the product of their kappas. Such a one is None: not known. Ties are left out (`choices`):
    kappa and ceiling are those of the preferences that were stated.
    """
    names = sorted({verdict.annotator for verdict in verdicts})
    if not names:
        return {}, None
    number = {name: place for place, name in enumerate(names)}
    each = estimates(len(names), batches(verdicts, number))
    (pooled,) = estimates(1, batches(verdicts, dict.fromkeys(names, 0)))
    return dict(zip(names, each, strict=True)), pooled


def estimates(annotators: int, choices: list[Choices]) -> list[Noise | None]:
    """Maximum likelihood with the interval of the observed information."""
    kappa, information = most_likely(annotators, choices)
    deviation = torch.linalg.inv(information + torch.eye(annotators) / PULL**2).diagonal().sqrt()
    return [told(*pair) for pair in zip(kappa.tolist(), deviation.tolist(), strict=True)]


def told(kappa: float, deviation: float) -> Noise | None:
    """One estimate with its intervals; None where the labels hardly tell it.

    The interval is taken on the scale of the correlation between an annotator's noisy opinion and the strengths, where
    it is all but symmetric, and then read in kappas: the surer an annotator, the longer its upper side, which has no
    end where the labels would allow for somebody who never errs. Not told is what might have any correlation from none
    to a full one.
    """
    middle, slope = correlation(kappa)
    reach = SURE * slope * deviation
    if reach > 0.5:
        return None
    low, high = kappa_of(middle - reach), kappa_of(middle + reach)
    least = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    points = torch.tensor([kappa, least, max(abs(low), abs(high))], dtype=torch.double)
    ceiling, *ends = ceiling_of(points).tolist()
    return Noise(kappa, (low, high), ceiling, (ends[0], ends[1]))


def correlation(kappa: float) -> tuple[float, float]:
    """Of kappa times a difference of two strengths (variance 2) with itself plus logistic noise; and its slope."""
    scaled = SIGNAL * kappa
    return scaled / math.sqrt(1 + scaled**2), SIGNAL / (1 + scaled**2) ** 1.5


def kappa_of(correlated: float) -> float:
    """The kappa of a correlation; infinite from a full one on."""
    if abs(correlated) >= 1:
        return math.copysign(math.inf, correlated)
    return correlated / (SIGNAL * math.sqrt(1 - correlated**2))


def batches(verdicts: Sequence[Verdict], number: dict[str, int]) -> list[Choices]:
    """The verdicts as choices, blocks of one size together; those in which everything ties hold none.

    Args:
        verdicts: the table.
        number: of each annotator.
    """
    sizes: dict[int, list[list[Verdict]]] = {}
    for block in blocks([verdict for verdict in verdicts if choices(verdict)]):
        sizes.setdefault(len({name for verdict in block for name in verdict.names()}), []).append(block)
    return [
        gathered(same[start : start + BLOCKS], slots, number=number)
        for slots, same in sorted(sizes.items()) for start in range(0, len(same), BLOCKS)
    ]  # fmt: skip


def blocks(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Verdicts that share responses, directly or by way of others, stand together."""
    home: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        met = {id(home[name]): home[name] for name in verdict.names() if name in home}
        largest = max(met.values(), key=len, default=list[Verdict]())
        for other in met.values():
            if other is not largest:
                largest += other
                home.update(dict.fromkeys((name for moved in other for name in moved.names()), largest))
        largest.append(verdict)
        home.update(dict.fromkeys(verdict.names(), largest))
    return list({id(block): block for block in home.values()}.values())


def gathered(same: Sequence[Sequence[Verdict]], slots: int, *, number: dict[str, int]) -> Choices:
    """Blocks of one size as tensors; choices that were made several times are one row with their weight."""
    weights: dict[tuple[int, int, int, tuple[int, ...]], float] = {}
    for place, block in enumerate(same):
        slot: dict[str, int] = {}
        for verdict in block:
            own = [slot.setdefault(name, len(slot)) for name in verdict.names()]
            for chosen, there in choices(verdict):
                key = (place, number[verdict.annotator], own[chosen], tuple(sorted(own[each] for each in there)))
                weights[key] = weights.get(key, 0.0) + 1
    among = torch.zeros(len(weights), slots, dtype=torch.bool)
    for row, key in enumerate(weights):
        among[row, list(key[3])] = True
    rows = torch.tensor([key[:3] for key in weights])
    return Choices(len(same), rows, among, torch.tensor(list(weights.values()), dtype=torch.double))


def choices(verdict: Verdict) -> list[tuple[int, tuple[int, ...]]]:
    """A ranking as the choices that lead to it: what was chosen, and from what.

    Responses that tie are no choice among themselves: half a choice of each would read as somebody who contradicts
    himself, and make the surest annotator a coin. Against those that are worse, one of them stands for all, the first
    by number. To count each would count the noise of the worse ones again and again, so that one opinion of each item
    would seem to tell how noisy it is; like this the choices are events of one Plackett-Luce ranking, all orders of
    which are alike likely where nothing is known, and a single opinion tells nothing.
    """
    place, made = verdict.place, list[tuple[int, tuple[int, ...]]]()
    for best in sorted(set(place)):
        worse = [number for number, its in enumerate(place) if its > best]
        if worse:
            chosen = place.index(best)
            made.append((chosen, (chosen, *worse)))
    return made
