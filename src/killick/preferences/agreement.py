"""How far annotators agree with each other, who leans towards what is shown first, and how noisy each of them is.

Rankings are read as all pairs of their responses; a skip is no verdict and is left out by whoever makes the table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch

from killick.ops.agreement import cohen_kappa, krippendorff_alpha
from killick.ops.shares import fair_coin_p, share_interval
from killick.preferences.noise import Noise, noise
from killick.preferences.verdicts import Verdict, by_item, latest


@dataclass(frozen=True)
class Leaning:
    """How often the response shown first was chosen, over pairs with a winner whose order of showing is known.

    Args:
        first: choices of the first.
        chosen: pairs with a winner.
        ties: pairs without, left out.
        interval: of the share of firsts, 95 %.
        p: chance that somebody without a leaning strays as far from one half.
    """

    first: int
    chosen: int
    ties: int
    interval: tuple[float, float]
    p: float

    @property
    def share(self) -> float:
        """Of choices that went to the first; NaN where there are none."""
        return self.first / self.chosen if self.chosen else math.nan


@dataclass(frozen=True)
class AnnotatorAgreement:
    """One annotator among the others.

    Args:
        labels: items judged.
        met: answers of others to the same pairs.
        agreed: how many of these say the same.
        leaning: towards what is shown first.
        noise: None where the labels do not tell it.
    """

    labels: int
    met: int
    agreed: int
    leaning: Leaning
    noise: Noise | None


@dataclass(frozen=True)
class Agreement:
    """A whole table of verdicts.

    Args:
        items: judged by anybody.
        shared: judged by two or more.
        ties: answers to a pair that prefer neither; in kappa and ceiling they do not count.
        percent: share of all two answers to one pair, by different annotators, that are the same; NaN without any.
        alpha_nominal: Krippendorff's, with first, second and tie as three names.
        alpha_ordinal: the same with a tie between the two.
        cohen: two annotators -> pairs that both judged, and Cohen's kappa on them.
        annotators: by name.
        leaning: of all.
        noise: of all as if they were one; None where the labels do not tell it.
    """

    items: int
    shared: int
    ties: int
    percent: float
    alpha_nominal: float
    alpha_ordinal: float
    cohen: dict[tuple[str, str], tuple[int, float]]
    annotators: dict[str, AnnotatorAgreement]
    leaning: Leaning
    noise: Noise | None


def agreement(verdicts: Sequence[Verdict], *, with_noise: bool = True) -> Agreement:
    """Everything that a table of verdicts tells about its annotators; of two on one item by one annotator, the last.

    Args:
        verdicts: the table.
        with_noise: also fit how noisy each annotator is, which takes seconds where the rest takes none.

    Raises:
        Refusal: where two verdicts on one item are about different responses.
    """
    table = latest(verdicts)
    items = by_item(table)
    answers = [answer for mine in items for answer in pair_answers(mine)]
    numbers = torch.tensor([pair for pair, given in enumerate(answers) for _ in given], dtype=torch.long)
    values = torch.tensor([value for given in answers for value in given.values()], dtype=torch.double)
    names = sorted({verdict.annotator for verdict in table})
    noises, pooled = noise(table) if with_noise else (dict.fromkeys(names), None)
    met, agreed = meetings(answers, names)
    return Agreement(
        items=len(items),
        shared=sum(len(mine) > 1 for mine in items),
        ties=int((values == 0).sum()),
        percent=sum(agreed.values()) / sum(met.values()) if any(met.values()) else math.nan,
        alpha_nominal=krippendorff_alpha(numbers, values, level="nominal"),
        alpha_ordinal=krippendorff_alpha(numbers, values, level="ordinal"),
        cohen=cohen(answers, names),
        annotators={
            name: AnnotatorAgreement(sum(verdict.annotator == name for verdict in table), met[name], agreed[name],
                                     leaning([each for each in table if each.annotator == name]), noises[name])
            for name in names
        },
        leaning=leaning(table),
        noise=pooled,
    )  # fmt: skip


def pair_answers(mine: Sequence[Verdict]) -> list[dict[str, int]]:
    """For each pair of an item's responses: annotator -> 1 for the first, -1 for the second, 0 for a tie."""
    pairs = combinations(range(len(mine[0].place)), 2)
    return [{verdict.annotator: verdict.order(*pair) for verdict in mine} for pair in pairs]


def meetings(answers: Sequence[dict[str, int]], names: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """For each annotator, the answers of others to the same pairs, and how many of these say the same."""
    met, agreed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for given in answers:
        said = list(given.values())
        for name, value in given.items():
            met[name] += len(said) - 1
            agreed[name] += said.count(value) - 1
    return met, agreed


def cohen(answers: Sequence[dict[str, int]], names: Sequence[str]) -> dict[tuple[str, str], tuple[int, float]]:
    """Cohen's kappa of each two annotators who met."""
    found = {}
    for two in combinations(names, 2):
        both = [[given[name] for name in two] for given in answers if all(name in given for name in two)]
        if both:
            first, second = torch.tensor(both, dtype=torch.double).unbind(1)
            found[two] = (len(both), cohen_kappa(first, second))
    return found


def leaning(verdicts: Sequence[Verdict]) -> Leaning:
    """Position bias. Rankings of three and more are left out: their first place is no coin."""
    pairs = [verdict for verdict in verdicts if len(verdict.place) == 2 and verdict.shown]
    said = [verdict.order(*verdict.shown) for verdict in pairs]
    first, chosen = said.count(1), len(said) - said.count(0)
    return Leaning(first, chosen, said.count(0), share_interval(first, chosen), fair_coin_p(first, chosen))
