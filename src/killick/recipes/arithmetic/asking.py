"""Which comparisons should people be asked? Accuracy of the digit weights against labels spent, by strategy.

All strategies of a seed choose from one pool of comparisons, begin with the same labels at random and get the same
answer to the same question, so that they differ in nothing but what they ask.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.preferences.active import ask_disagreement, ask_information, ask_random
from killick.preferences.labelers import BradleyTerry, ceiling
from killick.preferences.pairing import neighbours
from killick.recipes.ledger import Note
from killick.recipes.tables import Table
from killick.rewards.counts import Counts
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rundir.seeds import stage_generator
from killick.types import Policy, Preference
from killick.worlds.arithmetic import Arithmetic

STRATEGIES = ("random", "disagreement", "information")
POOL, HELD, START, BATCH, LABELS, MEMBERS = 1000, 2000, 10, 10, 150, 5
"""Comparisons to choose from, others to be judged by, labels at the start, a round and at the end, networks of the
ensemble that disagrees."""


@dataclass(frozen=True)
class Study:
    """What decides the curves of a seed, beside the policy whose samples are compared."""

    seed: int
    device: str
    kappa: float
    fit: FitConfig

    def draws(self, stage: str) -> torch.Generator:
        """A generator for one stage."""
        return stage_generator(self.seed, f"asking {stage}", device=self.device)


def compared(study: Study, policy: Policy) -> Generator[Note, None, dict[str, Any]]:
    """The curve of each strategy; the caller's cache keeps what is returned.

    Returns:
        "found": the sizes, each strategy's accuracy at each of them, that of the whole pool, and the ceiling.
    """
    world, draws, labeler = Arithmetic(), study.draws("labels"), BradleyTerry(study.kappa)

    def judged(count: int) -> Preference:
        rollout = policy.sample(world.prompts(count, draws), 2, draws)
        return labeler.label(neighbours(rollout), world.gold(rollout), draws)

    pool, held = judged(POOL), judged(HELD)
    gold = world.gold(held.rollout)
    chance = labeler.probability(gold[held.chosen], gold[held.rejected])
    start = ask_random(POOL, count=START, generator=study.draws("start"))
    curves = {}
    for strategy in STRATEGIES:
        spent = rounds(study, strategy, pool=pool, start=start)
        curves[strategy] = [expected_accuracy(model, held, chance=chance) for model in spent]
        yield Note(f"Asking by {strategy}: accuracy {curves[strategy][-1]:.3f} after {LABELS} labels")
    whole = taught(study, pool, generator=study.draws("whole"))
    found = {
        "sizes": list(range(START, LABELS + 1, BATCH)),
        "accuracy": curves,
        "whole": expected_accuracy(whole, held, chance=chance),
        "ceiling": ceiling(labeler, held, gold=gold),
    }
    return {"found": found}


def rounds(study: Study, strategy: str, *, pool: Preference, start: Int[Tensor, " start"]) -> list[Counts]:
    """The reward model after the first labels and after each further batch that the strategy asks for."""
    draws, known, models = study.draws(strategy), start, list[Counts]()
    while True:
        models.append(taught(study, pool.pairs(known), generator=study.draws(f"fit {len(known)}")))
        if len(known) >= LABELS:
            return models
        open_ones = torch.ones(len(pool), dtype=torch.bool, device=known.device).index_fill(0, known, False)
        left = open_ones.nonzero()[:, 0]
        asked = chosen(study, strategy, pool=pool, known=known, left=left, model=models[-1], draws=draws)
        known = torch.cat((known, left[asked]))


def chosen(
    study: Study, strategy: str, *, pool: Preference, known: Int[Tensor, " known"], left: Int[Tensor, " left"],
    model: Counts, draws: torch.Generator,
) -> Int[Tensor, " batch"]:  # fmt: skip
    """What the strategy asks next, as rows of `left`. It sees labels of what is known only."""
    if strategy == "random":
        return ask_random(len(left), count=BATCH, generator=draws)
    first, second = 2 * left, 2 * left + 1  # as they were sampled: who won is not known yet
    with torch.no_grad():
        if strategy == "disagreement":
            scores = torch.stack([member(pool.rollout) for member in ensemble(study, pool.pairs(known), draws=draws)])
            return ask_disagreement(scores[:, first], scores[:, second], count=BATCH)
        counts = model.encode(pool.rollout)
        labelled = counts[2 * known] - counts[2 * known + 1]
        return ask_information(counts[first] - counts[second], model.weights, labelled=labelled, count=BATCH)


def ensemble(study: Study, known: Preference, *, draws: torch.Generator) -> list[Counts]:
    """Members apart in their start and in the labels that they saw: each a bootstrap sample."""
    shape = (MEMBERS, len(known))
    samples = torch.randint(len(known), shape, generator=draws, device=draws.device)
    return [taught(study, one_by_one(known.pairs(rows)), generator=draws) for rows in samples]


def one_by_one(preference: Preference) -> Preference:
    """The same pairs, none grouped with another, so that one drawn twice weighs twice."""
    return Preference.hard(preference.rollout, preference.chosen, preference.rejected)


def taught(study: Study, known: Preference, *, generator: torch.Generator) -> Counts:
    """Digit weights after their fit to some labels."""
    model = Counts(range(10), generator)
    with torch.enable_grad():
        for _ in fit(FitState(model, study.fit, generator), known):
            pass
    return model


@torch.no_grad()
def expected_accuracy(model: Counts, held: Preference, *, chance: Float[Tensor, " pair"]) -> float:
    """Accuracy on held-out pairs, exact over the labeler's noise: what the chosen of each pair had for a chance."""
    scores = model(held.rollout)
    margin = scores[held.chosen] - scores[held.rejected]
    right = torch.where(margin > 0, chance, torch.where(margin < 0, 1 - chance, 0.5))
    return float(right.double().mean())


def tables(found: Mapping[str, Any]) -> list[Table]:
    """What each strategy reached, and how far it is from asking at random; none where no seed compared them.

    Args:
        found: seed (as text) -> what its stages found.
    """
    studies = [stages["asking"] for stages in found.values() if "asking" in stages]
    if not studies:
        return []
    sizes = studies[0]["sizes"]
    shown = [place for place, size in enumerate(sizes) if size in (10, 20, 40, 80, 150)]
    body: list[list[str | int | float | None]] = [
        [strategy, *(fmean(study["accuracy"][strategy][place] for study in studies) for place in shown),
         *lead([study["accuracy"] for study in studies], strategy)]
        for strategy in STRATEGIES
    ]  # fmt: skip
    whole, top = (fmean(study[name] for study in studies) for name in ("whole", "ceiling"))
    return [
        Table(
            "What to ask next",
            f"Held-out accuracy of the digit weights, mean over {len(studies)} seeds, by labels spent. The whole pool "
            f"of {POOL:,} labels gives {whole:.3f}; the labeler's noise allows {top:.3f}. The lead is over asking at "
            "random, mean over all sizes past the first, with its deviation over seeds.",
            ["strategy", *(f"{sizes[place]} labels" for place in shown), "lead", "deviation"],
            body,
        )
    ]


def lead(curves: Sequence[Mapping[str, list[float]]], strategy: str) -> list[float | None]:
    """By how much a strategy is ahead of random, mean over sizes, and the deviation over seeds of that."""
    ahead = [fmean(curve[strategy][1:]) - fmean(curve["random"][1:]) for curve in curves]
    if strategy == "random":
        return [None, None]
    return [fmean(ahead), stdev(ahead) if len(ahead) > 1 else None]
