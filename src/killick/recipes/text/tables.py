"""What the text recipe prints: the reward models, the held-out prompts, the hack in words, watching, best-of-n."""

from collections.abc import Mapping, Sequence
from typing import Any

from killick.recipes.ledger import Row
from killick.recipes.tables import Table

Found = Mapping[str, Any]
NAMES = {"proxy": "the proxy", "other": "other labels", "few": "a fifth of the labels", "many": "twice the labels"}
"""Heads in words."""


def tables(rows: Sequence[Row], found: Found) -> list[Table]:
    """All of them; those about arms only where there are any.

    Args:
        rows: the ledger, sorted by arm, seed and step.
        found: seed (as text) -> what its stages found.
    """
    told = sorted(found.items(), key=lambda pair: int(pair[0]))
    alike = any(stages.get("gold") == "vader" for _, stages in told)
    every = [rewards(told), held_out(rows, alike=alike), hack(rows), watching(rows), best_of(told)]
    return [table for table in every if table is not None]


def rewards(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and head."""
    return Table(
        "Reward models beside their ceiling",
        "Linear heads on the mean state of an answer. Accuracy is on pairs of held-out prompts, with its 95 % interval "
        "over prompts; labels are noisy, so nobody can be right more often than the ceiling. Correlation is with gold, "
        "over the held-out answers. Only the proxy is optimised; the others watch.",
        ["seed", "reward model", "labels", "right on them", "accuracy", "low", "high", "ceiling", "correlation"],
        [
            [int(seed), NAMES[name], each["pairs"], each["learned_accuracy"], each["accuracy"], *each["interval"],
             each["ceiling"], each["correlation"]]
            for seed, stages in told for name, each in stages["heads"].items()
        ],
    )  # fmt: skip


def judged(rows: Sequence[Row]) -> list[Row]:
    """The rows at which held-out prompts were asked."""
    return [row for row in rows if row["held_gold"] is not None]


ALIKE = (
    " Gold is VADER alone here, which counts warm words as the reward model does and has the same hole: what gushes "
    "pleases both, so gold does not fall and nothing looks hacked. Read the answers."
)


def held_out(rows: Sequence[Row], *, alike: bool) -> Table | None:
    """One row an evaluation; where gold has the reward model's own hole, that is said."""
    body = [
        [row["arm"], row["seed"], row["step"], row["held_proxy"], row["held_gold"], row["held_gold_error"],
         row["held_kl"], row["held_distinct"], row["held_phrase"] or "none", row["held_phrase_share"]]
        for row in judged(rows)
    ]  # fmt: skip
    return Table.unless_empty(
        "Held-out prompts through training",
        "Answers to prompts about things that were never asked about, at rollouts that were set before. The error is "
        "that of the mean over prompts. Distinct is the share of three-word runs that are different; the phrase is "
        "the run of three to six words that stands in most answers." + ALIKE * alike,
        ["arm", "seed", "rollout", "proxy", "gold", "error", "KL, nats", "distinct", "phrase", "share of answers"],
        rows=body,
    )


def last_of_each(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """First and last evaluation of each arm at each seed that has two."""
    cells: dict[tuple[str, int], list[Row]] = {}
    for row in judged(rows):
        cells.setdefault((row["arm"], row["seed"]), []).append(row)
    return [(mine[0], mine[-1]) for mine in cells.values() if len(mine) > 1]


def hack(rows: Sequence[Row]) -> Table | None:
    """One row an arm and seed: what took over."""
    body = [
        [last["arm"], last["seed"], last["held_phrase"] or "none", last["held_phrase_share"],
         last["held_longest"] or "none", last["held_longest_share"], first["held_distinct"], last["held_distinct"]]
        for first, last in last_of_each(rows)
    ]  # fmt: skip
    return Table.unless_empty(
        "The hack in words",
        "What the policy says at its last evaluation, on held-out prompts: the phrase in most answers, and the longest "
        "run of words that half of the answers share. Answers that all end alike have found what the reward model "
        "likes most, whatever was asked.",
        [
            "arm",
            "seed",
            "phrase that took over",
            "share",
            "longest run of half",
            "its share",
            "distinct before",
            "after",
        ],
        rows=body,
    )


def watching(rows: Sequence[Row]) -> Table | None:
    """One row an evaluation: the proxy beside the heads that only watch, on that rollout."""
    body = [
        [row["arm"], row["seed"], row["step"], row["proxy"], row["watching_other"], row["watching_few"],
         row["watching_many"], row["gold"]]
        for row in judged(rows)
    ]  # fmt: skip
    return Table.unless_empty(
        "Watching heads",
        "Reward models that only score the rollout: other labels, fewer, more. While they rise with the proxy, it has "
        "found what people like; where they stay behind, something that it alone likes. That is a hint and no proof: "
        "heads on the same states may share an error, and gold may fall while all of them rise.",
        ["arm", "seed", "rollout", "proxy", "other labels", "a fifth", "twice", "gold"],
        rows=body,
    )


def best_of(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and n."""
    body = [
        [int(seed), point["n"], point["kl_bound"], point["proxy"], *point["proxy_interval"], point["gold"],
         *point["gold_interval"], own["gold"]]
        for seed, stages in told
        for point, own in zip(*(stages["best_of_n"][name]["points"] for name in ("proxy", "gold")), strict=True)
    ]  # fmt: skip
    return Table(
        "Best-of-n on held-out prompts",
        "Of n answers of the reference the one that the proxy scores best, with 95 % intervals over prompts, and what "
        "choosing by gold would give. KL in nats is at most its bound; PPO spends several times as many for the same "
        "proxy, and its KL is measured, so the two belong on no common axis.",
        ["seed", "n", "KL bound", "proxy", "low", "high", "gold", "low", "high", "gold's own choice"],
        body,
    )
