"""What the source of the emphasis recipe says, and the bands in which we take our figures to agree.

`expected` is the source's value, or the middle of its range, and never moves. A band's half-width is the larger of half
that range and two standard deviations over our seeds 42 to 46 (docs/recipes.md); one-sided where the source tells a
direction. As in the source, an end is the last step, a peak the largest batch mean, and nothing is smoothed.
"""

from collections.abc import Sequence

import torch

from killick.ops.stats import rank_correlation
from killick.recipes.claims import Claim, Found, Measure, column
from killick.recipes.ledger import Row

FREE, LOOSE, TIGHT = "beta=0", "beta=0.5", "beta=2"


def told(name: str) -> Measure:
    """What the stages found of the policy in the source's shape; None where it did not run."""
    return lambda _, found: found.get("source", {}).get(name)


def relu(found: Found) -> Found:
    """What the stages found of the source's reward model; empty where it was not fitted."""
    families: dict[str, Found] = found.get("source", {}).get("families", {})
    return families.get("relu", {})


def right(found: Found, pairs: int) -> float | None:
    """Accuracy of the source's reward model after so many pairs."""
    return found.get("source", {}).get("accuracy_by_pairs", {}).get(str(pairs))


def after(pairs: int) -> Measure:
    """The same as what a claim reads."""
    return lambda _, found: right(found, pairs)


def gained(first: int, last: int) -> Measure:
    """Accuracy that more pairs bring."""

    def measure(_: Sequence[Row], found: Found) -> float | None:
        before, then = right(found, first), right(found, last)
        return None if before is None or then is None else then - before

    return measure


def agreement(_: Sequence[Row], found: Found) -> float | None:
    """Rank correlation of score and gold over 0 to 3 emphasis tokens."""
    score = relu(found).get("score_by_count")
    if score is None:
        return None
    return rank_correlation(torch.tensor(score[:4]), torch.tensor(found["source"]["gold_by_count"][:4]))


def climb(_: Sequence[Row], found: Found) -> float | None:
    """Rank correlation of score and count over 3 to 12 emphasis tokens."""
    score = relu(found).get("score_by_count")
    return None if score is None else rank_correlation(torch.tensor(score[3:]), torch.arange(10.0))


def collapse(_: Sequence[Row], found: Found) -> float | None:
    """Gold of twelve emphasis tokens less gold of three."""
    gold = found.get("source", {}).get("gold_by_count")
    return None if gold is None else gold[12] - gold[3]


def top(rows: Sequence[Row]) -> Row:
    """The step with the best gold."""
    return max(rows, key=lambda row: row["gold"])


def accuracy(id: str, pairs: int, *, source: str, band: tuple[float, float, float]) -> Claim:
    """A claim on the reward model after so many pairs; the band is expected, low, high."""
    return Claim(id, None, f"reward model accuracy, {pairs:,} pairs", source, *band, "share", after(pairs))


CLAIMS = [
    Claim("base-gold", None, "base gold", "+0.384 to +0.389", 0.3865, 0.364, 0.409, "gold", told("base_gold")),
    Claim("base-beyond", None, "samples of SFT with c > 3", "0.0005 to 0.0015", 0.001, 0, 0.0020, "share",
          told("beyond")),
    accuracy("rm-250", 250, source="0.822 to 0.824", band=(0.823, 0.812, 0.834)),
    accuracy("rm-500", 500, source="0.827 to 0.835", band=(0.831, 0.809, 0.853)),
    accuracy("rm-1000", 1000, source="0.841 to 0.854", band=(0.8475, 0.833, 0.862)),
    accuracy("rm-2000", 2000, source="0.847 to 0.862", band=(0.8545, 0.838, 0.871)),
    accuracy("rm-4000", 4000, source="0.848 to 0.861", band=(0.8545, 0.839, 0.870)),
    Claim("rm-accuracy", None, "reward model accuracy", "0.853 to 0.866", 0.8595, 0.844, 0.875, "share",
          lambda _, found: relu(found).get("accuracy")),
    Claim("rm-rises", None, "accuracy from 250 to 1,000 pairs", "rising", 0.0245, 0, None, "share", gained(250, 1000)),
    Claim("rm-flat", None, "accuracy from 2,000 to 4,000 pairs", "then flat", 0, -0.011, 0.011, "share",
          gained(2000, 4000)),
    Claim("rm-agrees", None, "score and gold, rank correlation for c <= 3", "agrees", 1, 0.99, None, "1", agreement),
    Claim("rm-climbs", None, "score and c, rank correlation for c >= 3", "keeps rising", 1, 0.99, None, "1", climb),
    Claim("gold-collapses", None, "gold at c = 12 less gold at c = 3", "collapses", -5.54, None, -5.526, "gold",
          collapse),
    Claim("free-peak", FREE, "gold at its best", "0.999 to 1.068", 1.0335, 0.969, 1.098, "gold",
          lambda rows, _: top(rows)["gold"]),
    Claim("free-peak-step", FREE, "iteration of the best gold", "near 30", 30, 25.4, 34.6, "step",
          lambda rows, _: float(top(rows)["step"])),
    Claim("free-proxy", FREE, "final proxy", "+7.05 to +8.04", 7.545, 5.68, 9.41, "deviations",
          column("proxy", last=1)),
    Claim("free-gold", FREE, "final gold", "-4.457", -4.457, -4.459, -4.455, "gold", column("gold", last=1)),
    Claim("free-count", FREE, "final emphasis tokens", "12.0", 12, 11.95, 12.05, "tokens", column("emphasis", last=1)),
    Claim("free-kl", FREE, "final KL: 12 log(1 / P(token 12)) in the corpus", "38.7", 38.7, 36.8, 40.6, "nats",
          column("kl", last=1), "ours"),
    Claim("loose-gold", LOOSE, "final gold", "+0.840 +- 0.019", 0.84, 0.792, 0.888, "gold", column("gold", last=1)),
    Claim("loose-kl", LOOSE, "final KL", "1.7", 1.7, 1.15, 2.25, "nats", column("kl", last=1)),
    Claim("tight-gold", TIGHT, "final gold", "+0.525 +- 0.011", 0.525, 0.479, 0.571, "gold", column("gold", last=1)),
    Claim("tight-kl", TIGHT, "final KL", "0.1", 0.1, 0.05, 0.15, "nats", column("kl", last=1)),
]  # fmt: skip
