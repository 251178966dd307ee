"""What the brand recipe prints: choosing among answers, the reward models, what a flaw costs, what PPO traded."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from killick.ops.stats import ends
from killick.recipes.brand.preferences import K
from killick.recipes.ledger import Row
from killick.recipes.tables import Table, by_arm
from killick.worlds.catalogue import FLAWS

Found = Mapping[str, Any]


def tables(rows: Sequence[Row], found: Found) -> list[Table]:
    """All of them; those about arms only where there are any.

    Args:
        rows: the ledger, sorted by arm, seed and step.
        found: seed (as text) -> what its stages found.
    """
    told = sorted(found.items(), key=lambda pair: int(pair[0]))
    every = [
        best_of_four(told),
        rewards(told),
        optimum(told),
        curves(told),
        means(told),
        prices(told),
        winners(told),
        trades(rows),
    ]
    return [table for table in every if table is not None]


def best_of_four(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and chooser."""
    names = {"first": "none: the first", "head": "reward head", "scalar": "fine-tune", "reviewer": "reviewer"}
    return Table(
        f"Best of {K} on 72 held-out products",
        "Mean flaws of the answer that each would keep, with the 95 % interval over products. The reward model wins a "
        "part of what the reviewer could.",
        ["seed", "chosen by", "flaws", "low", "high"],
        [[int(seed), names[name], *each["of_four"][name]] for seed, each in told for name in names],
    )


def rewards(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and reward model."""
    return Table(
        "Two reward models on the same pairs",
        "A linear head on frozen states, and a full fine-tune of a copy of the chat model with a scalar head. Accuracy "
        "is on pairs about names that neither has learnt of, with its 95 % interval.",
        ["seed", "reward model", "learned pairs", "right on them", "held-out pairs", "accuracy", "low", "high",
         "ceiling"],
        [
            [int(seed), name, each["learned_pairs"], each["learned_accuracy"], each["held_pairs"], each["accuracy"],
             *each["interval"], each["ceiling"]]
            for seed, found in told for name, each in (("head", found["head"]), ("fine-tune", found["scalar"]))
        ],
    )  # fmt: skip


def optimum(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and way of fitting."""
    apart = sum(found["head"]["separable"] for _, found in told)
    note = (
        f"At {apart} of {len(told)} seeds some weights put every learned pair right: the loss then has no least value, "
        "L-BFGS runs towards 0, and the fit is where its steps end. Under a penalty on squared weights the optimum is "
        "one, and Adam and L-BFGS find the same. Agreement is the share of held-out pairs decided as the fit decides."
    )
    return Table(
        "The head beside the optimum of its loss", note,
        ["seed", "way", "loss, nats", "squared weights", "right on learned", "accuracy", "agreement"],
        [[int(seed), *row.values()] for seed, found in told for row in reordered(found["head"]["optimum"])],
    )  # fmt: skip


def reordered(rows: Sequence[Found]) -> list[dict[str, Any]]:
    """Rows with their columns in the order of the table; a file may have sorted them."""
    names = ("way", "loss", "squared", "learned_accuracy", "accuracy", "agreement")
    return [{name: row[name] for name in names} for row in rows]


def curves(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a seed and n, with the intervals over products."""
    body = [
        [int(seed), point["n"], point["kl_bound"], point["proxy"], *point["proxy_interval"], point["gold"],
         *point["gold_interval"], other["gold"]]
        for seed, found in told
        for point, other in zip(*(found["curves"][name]["points"] for name in ("head", "reviewer")), strict=True)
    ]  # fmt: skip
    tops = "; ".join(f"seed {seed}: {turn(found['curves']['head'])}" for seed, found in told)
    products = told[0][1]["curves"]["head"]["prompts"]
    return Table(
        "Best-of-n from one pool",
        f"Proxy and gold of what the head keeps, with 95 % intervals over the {products} held-out products; KL "
        "in nats is at most its bound. The reviewer's own choice shows what there was to win. "
        f"Gold by the head, {tops}.",
        ["seed", "n", "KL bound", "proxy", "low", "high", "gold", "low", "high", "reviewer's gold"],
        body,
    )


def turn(curve: Found) -> str:
    """Where gold is highest, and whether it surely falls beyond."""
    low, high = curve["top_interval"]
    sure = "surely falls beyond" if curve["turns"] else "not sure to fall beyond"
    at_end = curve["top"] == curve["points"][-1]["n"]
    return (
        f"highest at n = {curve['top']} (95 % between {low} and {high}), {'the end of the curve' if at_end else sure}"
    )


def means(told: Sequence[tuple[str, Found]]) -> Table | None:
    """One row an n, the mean over seeds, where there are several."""
    if len(told) == 1:
        return None
    curves = [found["curves"] for _, found in told]
    body: list[list[Any]] = []
    for place, point in enumerate(curves[0]["head"]["points"]):
        row = [fmean(each[name]["points"][place][column] for each in curves)
               for name, column in (("head", "proxy"), ("head", "gold"), ("reviewer", "gold"))]  # fmt: skip
        body.append([point["n"], point["kl_bound"], *row])
    return Table(
        "Best-of-n, the mean over seeds",
        "The same curves, without their intervals.",
        ["n", "KL bound, nats", "proxy by the head", "gold by the head", "gold by the reviewer"],
        body,
    )


def prices(told: Sequence[tuple[str, Found]]) -> Table:
    """One row a kind of flaw, the mean over seeds."""
    return Table(
        "What a flaw costs",
        "The reviewer takes off 1 for each. The head takes off this much, all else equal, in deviations of its score: "
        "near 0 it does not see the flaw, above 0 it likes it.",
        ["flaw", "share of answers", "the head's price"],
        [
            [kind, fmean(found["flaws"][kind] for _, found in told), fmean(found["prices"][kind] for _, found in told)]
            for kind in FLAWS
        ],
    )


def winners(told: Sequence[tuple[str, Found]]) -> Table:
    """The first seed's most flawed winners."""
    return Table(
        "Winners to check",
        "The best of its pool by score, and flawed all the same: what a person who reads a few winners would find.",
        ["product", "answer", "score", "the reviewer"],
        [list(row) for row in told[0][1]["winners"]],
    )


def trades(rows: Sequence[Row]) -> Table | None:
    """One row an arm: how often each flaw stood in answers before and after, and which way it went."""
    seeds = sorted({row["seed"] for row in rows})
    ledgers = [by_arm(rows, seed) for seed in seeds]
    body: list[list[Any]] = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [ledger[arm] for ledger in ledgers if arm in ledger]
        last = [change(mine, name)[1] for name in ("proxy", "gold", "kl")]
        moved = {kind: change(mine, f"flaw_{kind}") for kind in FLAWS}
        shown = [*moved.values(), change(mine, "promises")]
        body.append([arm, *last, *(f"{before:.2f} to {after:.2f}" for before, after in shown), bargain(moved)])
    return Table.unless_empty(
        "What PPO traded",
        "Share of answers with each flaw, over the first tenth of the steps and the last third, where the three "
        "numbers are read too; how often one promises a repair. A policy that pleases the reward model drops the flaws "
        "that it sees and takes on those that it does not; promises beyond the first are no flaw to the reviewer, who "
        "counts what his guidelines say.",
        ["arm", "proxy", "gold", "KL, nats", *FLAWS, "promises", "bargain"], rows=body,
    )  # fmt: skip


def change(cells: Sequence[Sequence[Row]], column: str) -> tuple[float, float]:
    """A column over the first steps, in which a policy has hardly moved, and over the last; mean over seeds."""
    before, after = zip(*(ends([row[column] for row in rows]) for rows in cells), strict=True)
    return fmean(before), fmean(after)


def bargain(moved: Mapping[str, tuple[float, float]], least: float = 0.1) -> str:
    """Which flaws became rarer and which more frequent by more than a tenth of the answers: what noise does not do."""
    less = [kind for kind, (before, after) in moved.items() if after < before - least]
    more = [kind for kind, (before, after) in moved.items() if after > before + least]
    return f"less {' and '.join(less) or 'of nothing'}, more {' and '.join(more) or 'of nothing'}"
