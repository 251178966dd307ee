"""What the emphasis recipe prints: the models of each seed, how each arm ended, and where it left the data."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from killick.recipes.ledger import Row
from killick.recipes.tables import Table

Found = dict[str, Any]


def tables(rows: Sequence[Row], found: Found) -> list[Table]:
    """All of them.

    Args:
        rows: the ledger, sorted by arm, seed and step.
        found: seed (as text) -> shape -> what its stages found.
    """
    return [models(found), ends(rows), coverage(found), departures(rows)]


def models(found: Found) -> Table:
    """One row for each seed, shape and family of reward models."""
    return Table(
        "Before the arms",
        "A reward model that is right as often as the labeler's noise allows, on pairs that say next to nothing beyond "
        "three emphasis tokens; what it scores at twelve is its own invention.",
        ["seed", "policy", "base gold", "P(c > 3)", "reward model", "accuracy", "ceiling", "score at 3", "score at 12"],
        [
            [int(seed), shape, facts["base_gold"], f"{facts['beyond']:.2%}", family, each["accuracy"],
             facts["reward_ceiling"], each["score_by_count"][3], each["score_by_count"][12]]
            for seed, shapes in sorted(found.items(), key=lambda pair: int(pair[0]))
            for shape, facts in shapes.items() for family, each in facts["families"].items()
        ],
    )  # fmt: skip


def cells(rows: Sequence[Row]) -> Iterator[tuple[str, int, list[Row]]]:
    """Arm, seed and rows of every cell."""
    for (arm, seed), mine in groupby(rows, key=lambda row: (row["arm"], row["seed"])):
        yield arm, seed, list(mine)


def ends(rows: Sequence[Row]) -> Table:
    """One row a cell: the best gold on the way, and the last step."""
    return Table(
        "How each arm ended",
        "Peak is the largest batch mean of gold; the rest is the last step. c counts emphasis tokens in a response.",
        ["arm", "seed", "peak gold", "at step", "proxy", "gold", "c", "KL, nats"],
        [
            [arm, seed, max(row["gold"] for row in mine), max(mine, key=lambda row: row["gold"])["step"],
             mine[-1]["proxy"], mine[-1]["gold"], mine[-1]["emphasis"], mine[-1]["kl"]]
            for arm, seed, mine in cells(rows)
        ],
    )  # fmt: skip


def coverage(found: Found) -> Table:
    """One row a count: the share of pairs that hold it, mean over seeds."""
    shares = [facts["coverage"] for shapes in found.values() for facts in shapes.values()]
    pairs = [facts["reward_pairs"] for shapes in found.values() for facts in shapes.values()]
    means = [fmean(column) for column in zip(*shares, strict=True)]
    last = max(c for c, share in enumerate(means) if share > 0)
    body: list[list[str | int | float | None]] = [
        [str(c), f"{share:.2%}", round(share * fmean(pairs))] for c, share in enumerate(means[: last + 1])
    ]
    return Table(
        "What the pairs cover",
        "Share of the labelled pairs in which a response has c emphasis tokens; a pair counts under each of its two.",
        ["c", "share of pairs", "pairs, mean over seeds"],
        [*body, [f"above {last}", "0", 0]],
    )


def departures(rows: Sequence[Row]) -> Table:
    """One row a cell: the KL that was spent at the best gold, on leaving the data, and on losing all that was gained.

    Left is the first step at which half of the responses have more than three emphasis tokens; hacked is the first
    after the best one at which gold is below where it began.
    """
    body: list[list[str | int | float | None]] = []
    for arm, seed, mine in cells(rows):
        best = max(mine, key=lambda row: row["gold"])
        left = next((row for row in mine if row["beyond"] > 0.5), None)
        lost = next((row for row in mine[best["step"] :] if row["gold"] < mine[0]["gold"]), None)
        kls = [None if row is None else row["kl"] for row in (best, left, lost)]
        body.append([arm, seed, *kls, "yes" if lost else "no"])
    return Table(
        "What KL buys before the data end",
        "KL at the best gold; when half of the responses have left the data (c > 3); when gold fell below its start.",
        ["arm", "seed", "KL at best gold", "KL on leaving", "KL when lost", "hacked"],
        body,
    )
