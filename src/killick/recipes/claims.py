"""What a source says, what came out here, and whether the two agree: one row each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Literal

from killick.ops.stats import smoothed
from killick.recipes.ledger import Row

Found = Mapping[str, Any]
"""What a seed found before its arms: stages.json."""


Measure = Callable[[Sequence[Row], Found], float | None]


@dataclass(frozen=True)
class Claim:
    """One figure of a source.

    Args:
        id: a short name.
        arm: which arm it is read from; None for what comes before the arms.
        text: what is claimed, in words.
        source: its value as the source writes it.
        expected: its value as a number, never moved.
        low: smallest value that agrees; None for none.
        high: largest value that agrees; None for none.
        unit: of all of them.
        measure: from one seed's rows of the arm (none where arm is None) and what its stages found; None where the
            run has nothing to measure it by.
        kind: a claim of the source, a setting that our set-up fixes, or a figure of ours.
    """

    id: str
    arm: str | None
    text: str
    source: str
    expected: float | None
    low: float | None
    high: float | None
    unit: str
    measure: Measure
    kind: Literal["claim", "setting", "ours"] = "claim"


def judge(claims: Sequence[Claim], rows: Sequence[Row], *, found: Mapping[str, Found]) -> list[Row]:
    """Measure each claim at every seed; its mean has to lie within the band.

    A claim about an arm that did not run, or that nothing measures, is left out. With one seed the spread is None.

    Args:
        claims: what the source says.
        rows: the ledger.
        found: seed (as text) -> what its stages found.
    """
    out = []
    for claim in claims:
        values: list[float] = []
        for seed, stages in sorted(found.items(), key=lambda pair: int(pair[0])):
            mine = [row for row in rows if row["arm"] == claim.arm and str(row["seed"]) == seed]
            value = claim.measure(mine, stages) if claim.arm is None or mine else None
            values += [] if value is None else [value]
        if not values:
            continue
        mean = fmean(values)
        inside = (claim.low is None or mean >= claim.low) and (claim.high is None or mean <= claim.high)
        out.append({
            "id": claim.id, "arm": claim.arm, "text": claim.text, "source": claim.source, "expected": claim.expected,
            "low": claim.low, "high": claim.high, "measured": mean,
            "spread": stdev(values) if len(values) > 1 else None, "unit": claim.unit, "kind": claim.kind,
            "holds": None if claim.kind == "setting" else inside,
        })  # fmt: skip
    return out


def column(name: str, last: int = 10) -> Callable[[Sequence[Row], Found], float]:
    """Read a column at the end of an arm: the mean of its last steps, since one batch of 64 is noisy."""
    return lambda rows, _: fmean(row[name] for row in rows[-last:])


def stage(name: str) -> Callable[[Sequence[Row], Found], float]:
    """Read what a stage found."""
    return lambda _, found: float(found[name])


def peak_step(rows: Sequence[Row], _: Found) -> float:
    """The step at which gold, smoothed over five steps, was at its best."""
    gold = smoothed([row["gold"] for row in rows])
    return float(rows[max(range(len(gold)), key=gold.__getitem__)]["step"])


def peak_gold(rows: Sequence[Row], _: Found) -> float:
    """Gold at its best, smoothed over five steps."""
    return max(smoothed([row["gold"] for row in rows]))
