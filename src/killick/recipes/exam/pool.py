"""What a policy's own answers say of a reward model: how scores spread, and what choosing among more of them gives.

Plain lists in, a row for each prompt; plain numbers out.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import torch

from killick.algorithms.best_of_n import Curve, along, best_of_n_curve
from killick.ops.stats import bootstrap_interval, rank_correlation

REACH = 0.975
"""The labels reach as high as one labelled answer in forty scores above the mean of its prompt."""

Facts = dict[str, Any]


def spread_facts(scores: Sequence[Sequence[float]]) -> Facts:
    """How far scores lie apart within a prompt, and the means of prompts between each other.

    Only what lies apart within a prompt can teach a policy. `between` is free of what few answers a prompt add to it:
    the variance of the prompts' means less the mean variance within over the number of answers, 0 where that is less.

    Args:
        scores: a row for each prompt, all of one length, two at least.
    """
    table = torch.tensor(scores, dtype=torch.double)
    prompts, count = table.shape
    inner = float(table.var(1).mean())
    outer = max(0.0, float(table.mean(1).var()) - inner / count) if prompts > 1 else None
    whole = inner + (outer or 0.0)
    return {
        "prompts": prompts, "answers": count, "mean": float(table.mean()), "within": inner**0.5,
        "between": None if outer is None else outer**0.5,
        "share_within": inner / whole if outer is not None and whole > 0 else None,
        "levels": len(table.unique()),
    }  # fmt: skip


def length_in_pool(scores: Sequence[Sequence[float]], lengths: Sequence[Sequence[int]]) -> float:
    """Rank correlation of score and length among the answers to one prompt, in the mean over prompts."""
    rows = zip(scores, lengths, strict=True)
    return fmean(
        rank_correlation(*(torch.tensor(each, dtype=torch.double) for each in (score, length)))
        for score, length in rows
    )


def labelled_reach(scores: Sequence[float], units: Sequence[int]) -> float | None:
    """How far above the mean of its prompt one labelled answer in forty scores; None where no prompt has two.

    The deviation from a mean that an answer is itself part of is stretched by sqrt(k / (k - 1)) for k answers.

    Args:
        scores: of the labelled answers.
        units: the prompt of each.
    """
    rows: dict[int, list[float]] = {}
    for score, unit in zip(scores, units, strict=True):
        rows.setdefault(unit, []).append(score)
    apart = [
        (score - fmean(row)) * (len(row) / (len(row) - 1)) ** 0.5
        for row in rows.values()
        if len(row) > 1
        for score in row
    ]
    return float(torch.tensor(apart, dtype=torch.double).quantile(REACH)) if apart else None


def slope_facts(
    scores: Sequence[Sequence[float]], golds: Sequence[Sequence[float]] | None, *, reach: float | None,
    generator: torch.Generator,
) -> Facts:  # fmt: skip
    """Best-of-n from the policy's answers: score and gold along n, and how far the labels reach.

    Args:
        scores: a row for each prompt, all of one length.
        golds: what people want of the same answers; None where nobody knows.
        reach: `labelled_reach`.
        generator: of the resamples.
    """
    table = [torch.tensor(row, dtype=torch.double) for row in scores]
    wanted = None if golds is None else [torch.tensor(row, dtype=torch.double) for row in golds]
    ns = [2**power for power in range(len(table[0]).bit_length()) if 2**power <= len(table[0])]
    curve = best_of_n_curve(table, wanted, ns=ns, generator=generator)
    start = curve.points[0].proxy
    facts: Facts = {
        "points": [point_facts(curve, place) for place in range(len(ns))],
        "prompts": curve.prompts,
        "reach": reach,
        "covered": None,
        "top": curve.top,
        "top_interval": None if curve.top_interval is None else list(curve.top_interval),
        "turns": curve.turns,
    }
    if reach is not None:
        covered = [point for point in curve.points if point.proxy - start <= reach]
        facts["covered"] = {"n": covered[-1].n, "kl": covered[-1].kl_bound, "score": start + reach}
    if wanted is not None:
        gold = along(table, wanted, ns=[1, ns[-1]])
        gain = gold[:, 1] - gold[:, 0]
        low, high = bootstrap_interval(gain, generator)
        facts |= {"gold_gain": float(gain.mean()), "gold_gain_low": low, "gold_gain_high": high}
    return facts


def point_facts(curve: Curve, place: int) -> Facts:
    """One n of the curve."""
    point = curve.points[place]
    gold = point.gold_interval or (None, None)
    return {
        "n": point.n, "kl_bound": point.kl_bound, "proxy": point.proxy, "low": point.proxy_interval[0],
        "high": point.proxy_interval[1], "gold": point.gold, "gold_low": gold[0], "gold_high": gold[1],
    }  # fmt: skip
