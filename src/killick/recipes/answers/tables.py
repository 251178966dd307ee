"""What goes beyond the source of the answers recipe: distances to the optimum, other draws of the labels, a recap."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import torch

from killick.algorithms.tilt import tilt
from killick.ops.kl import exact_kl
from killick.recipes.answers import demonstrations as six
from killick.recipes.answers.claims import FALL, fallen, helped
from killick.recipes.answers.config import LEASH
from killick.recipes.answers.labels import SHORT
from killick.recipes.claims import Found
from killick.recipes.ledger import Row
from killick.recipes.tables import Ledger, Table, by_arm, numbers

RECAP = [
    "People compare two answers at a time; from many such choices a reward model learns to score any answer.",
    "The policy climbs that score. What it sees is the proxy; what people want is gold, and nobody tells it.",
    "Where nothing was compared the proxy guesses, and the climb finds the best guess, not the best answer.",
    "A leash, beta times KL, holds the policy near the comparisons: too loose is hacked, too tight learns little.",
    "So read proxy, gold and KL together, beside the exact optimum where there is one, and over several draws.",
]


def distances(ledger: Ledger, found: Found) -> Table | None:
    """Each arm beside reference x exp(score / beta)."""
    exact, rows = found["exact"], []
    reference, gold = (torch.tensor(exact[name]) for name in ("reference", "gold"))
    for arm, name in exact["arms"].items():
        if arm not in ledger or arm.endswith(("moving", "flipped")):
            continue
        last, scores = ledger[arm][-1], torch.tensor(exact["scores"][name])
        optimum = tilt(reference, scores, beta=last["beta"])
        proxy, best = (float((optimum.exp() * table).sum(1).mean()) for table in (scores, gold))
        kl = float(exact_kl(optimum, reference).mean())
        rows.append([arm, proxy, best, kl, *numbers(last), last["tv_to_optimum"], last["kl_to_optimum"]])
    return Table.unless_empty(
        "3. Optimise on the leash: how far from the exact optimum?",
        "Starred: the optimum, reference x exp(score / beta), computed. Then the learned policy, and how far apart the "
        "two are: total variation (0 to 1), and KL, infinite (-) at beta = 0, where the optimum is one answer alone.",
        ["arm", "proxy*", "gold*", "KL*", "proxy", "gold", "KL", "TV", "KL to it"], rows=rows,
    )  # fmt: skip


def draws(_: Ledger, found: Found) -> Table | None:
    """The thin run over other labels: lowest, middle, highest."""
    runs = found.get("draws")
    if not runs:
        return None
    columns: dict[str, Callable[[Any], float]] = {
        "final gold, no leash": lambda run: run["gold"],
        f"final gold, beta = {LEASH:g}": lambda run: run["held_gold"],
        "best gold on the way": lambda run: run["peak_gold"],
        "at step": lambda run: run["peak_step"],
        "fall from it": lambda run: run["peak_gold"] - run["gold"],
        "final proxy": lambda run: run["proxy"],
        "final KL": lambda run: run["kl"],
        "rank correlation": lambda run: run["rank_correlation"],
    }
    rows: list[list[Any]] = []
    for name, read in columns.items():
        values = [read(run) for run in runs]
        middle = round(median(values)) if name == "at step" else median(values)
        rows.append([name, values[0], min(values), middle, max(values)])
    return Table(
        f"Over {len(runs)} draws of the labels: what one should believe",
        f"The thin run again; the first column is the source's labels once more, under other policy draws. Gold falls "
        f"by more than {FALL} in {fallen(found):.0%} of the draws, and a leash of {LEASH:g} ends better in "
        f"{helped(found):.0%}.",
        ["", "source's draw", "lowest", "middle", "highest"], rows,
    )  # fmt: skip


def blind_spots(_: Ledger, found: Found) -> Table | None:
    """Which answer each start of the reward model over-scores."""
    runs = found.get("inits")
    if not runs:
        return None
    long = sum(run["worst_lost"] > 0 and run["picks"][run["worst_prompt"]] >= SHORT for run in found["draws"])
    rows = [
        [run["reward_seed"], " ".join(map(str, run["picks"])), run["worst_prompt"], run["picks"][run["worst_prompt"]],
         run["worst_score"], run["worst_lost"], run["gold"]]
        for run in runs
    ]  # fmt: skip
    return Table(
        "Over five starts of the reward model: which answer is over-scored?",
        "The same labels as in the thin run, another start of the network. The favourite that loses most gold is not "
        f"always the same, the blind spot is: it is a long answer (5, 6 or 7), as in {long} of the "
        f"{len(found['draws'])} draws above.",
        ["torch seed", "favourites of the model, by prompt", "worst: prompt", "answer", "its score", "gold it loses",
         "final gold"], rows,
    )  # fmt: skip


def recap(_: Ledger, __: Found) -> Table:
    """The whole idea."""
    return Table("The whole idea in five lines", "", ["line", "idea"], [[i, line] for i, line in enumerate(RECAP, 1)])


TABLES: tuple[Callable[[Ledger, Found], Table | None], ...] = (
    six.candidates, six.questions, six.losses, six.opinions, six.on_the_leash, six.favourites, six.good_model,
    distances, six.hacked, six.correlations, six.furthest, six.lengths, six.breaks, draws, blind_spots, recap,
)  # fmt: skip


def all_tables(rows: Sequence[Row], found: Mapping[str, Found]) -> list[Table]:
    """Every table of a run, in the order in which they are read, of its first seed."""
    if not found:
        return []
    seed = min(found, key=int)
    ledger = by_arm(rows, int(seed))
    return [table for table in (make(ledger, found[seed]) for make in TABLES) if table]
