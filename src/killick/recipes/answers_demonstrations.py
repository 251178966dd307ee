"""The answers recipe's tables: six demonstrations, how far each arm is from the optimum, other draws, five lines.

Each is read from the ledger and from what the stages found, of the first seed; one whose arms did not run is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any

import torch

from killick.algorithms.tilt import tilt
from killick.ops.kl import exact_kl
from killick.recipes.answers_claims import FALL, READ, fallen, helped, peak
from killick.recipes.answers_config import LEASH
from killick.recipes.answers_labels import ask
from killick.recipes.claims import Found
from killick.recipes.ledger import Row
from killick.recipes.tables import Table
from killick.worlds.answers import ANSWERS, PROMPTS, Answers

Ledger = Mapping[str, Sequence[Row]]
"""Arm -> its rows at one seed, by step."""
RECAP = [
    "People compare two answers at a time; from many such choices a reward model learns to score any answer.",
    "The policy climbs that score. What it sees is the proxy; what people want is gold, and nobody tells it.",
    "Where nothing was compared the proxy guesses, and the climb finds the best guess, not the best answer.",
    "A leash, beta times KL, holds the policy where the comparisons were: too loose is hacked, too tight learns little.",
    "So read proxy, gold and KL together, beside the exact optimum where there is one, and over several draws.",
]


def demonstrations(rows: Sequence[Row], found: Mapping[str, Found]) -> list[Table]:
    """All tables of a run, in the order in which they are read."""
    if not found:
        return []
    seed = min(found, key=int)
    ledger: dict[str, list[Row]] = {}
    for row in rows:
        if str(row["seed"]) == seed:
            ledger.setdefault(row["arm"], []).append(row)
    made = [make(ledger, found[seed]) for make in TABLES]
    return [table for table in made if table]


# 1. Ask the people


def candidates(_: Ledger, found: Found) -> Table:
    """Prompt 0: what is seen of each answer, what people want, how often the reference writes it."""
    world = Answers()
    rows = [
        [answer, "yes" if sound else "no", length, hedges, polite, gold, 100 * share]
        for answer, ((sound, length, hedges, polite), gold, share) in enumerate(
            zip(world.seen[0].tolist(), world.golds[0].tolist(), world.reference[0].exp().tolist(), strict=True)
        )
    ]
    return Table(
        "1. Ask the people: the eight answers to prompt 0",
        "Gold is what people want; a reward model will see the four columns before it. Answers 5 to 7 are long, and the "
        "reference hardly ever writes them, so hardly anybody will be asked about them.",
        ["answer", "sounds right", "length", "hedges", "polite", "gold", "reference, %"], rows,
    )  # fmt: skip


def questions(_: Ledger, found: Found) -> Table:
    """Six comparisons with the chance that the first wins, and who won."""
    world = Answers()
    rows: list[list[Any]] = [
        [each.prompt, each.first, each.second, float(world.golds[each.prompt, each.first]),
         float(world.golds[each.prompt, each.second]), each.probability, "A" if each.won else "B"]
        for each in ask(world, 6, seed=1)
    ]  # fmt: skip
    return Table(
        "1. Ask the people: six comparisons",
        "A person prefers the answer with more gold, but not always: where the two are close, the label is almost a "
        "coin flip. These choices, not gold, are all that is learnt from.",
        ["prompt", "A", "B", "gold of A", "gold of B", "P(A wins)", "preferred"], rows,
    )  # fmt: skip


# 2. Fit the reward model


def losses(_: Ledger, found: Found) -> Table:
    """The fit's loss on the way."""
    return Table(
        "2. Fit the reward model: its loss",
        f"A coin flip costs 0.693 nats a pair, and noise in the labels keeps the loss well above 0. The scores end with a "
        f"rank correlation of {found['rank_correlation']:.3f} with gold over all 32 answers.",
        ["step", "loss, nats per pair"], found["losses"],
    )  # fmt: skip


def opinions(_: Ledger, found: Found) -> Table:
    """Prompt 0 again, with the model's score and how often each answer was shown."""
    world, scores = Answers(), found["exact"]["scores"]["full"][0]
    order = sorted(range(ANSWERS), key=lambda answer: -scores[answer])
    rows = [
        [answer, found["shown"]["full"][answer], "yes" if world.seen[0, answer, 0] else "no",
         float(world.golds[0, answer]), scores[answer], order.index(answer) + 1]
        for answer in range(ANSWERS)
    ]  # fmt: skip
    return Table(
        "2. Fit the reward model: prompt 0 again",
        f"Of {sum(found['shown']['full']):,} answers shown over all prompts, number 7 was shown "
        f"{found['shown_7']} times: its score is little more than a guess.",
        ["answer", "times shown", "sounds right", "gold", "model's score", "its rank"], rows,
    )  # fmt: skip


# 3. Optimise on the leash


def on_the_leash(ledger: Ledger, found: Found) -> Table | None:
    """Proxy, gold and KL every 50 steps."""
    rows = ledger.get("beta=0.5+reinforce")
    return rows and Table(
        "3. Optimise on the leash: beta = 0.5, a good reward model",
        f"Proxy and gold rise together and settle, at a small distance from the reference (gold "
        f"{found['reference_gold']:.3f}) and near the best that any policy could do ({found['best_gold']:.3f}).",
        ["step", "proxy", "gold", "KL, nats"], every(rows, 50),
    )  # fmt: skip


def favourites(ledger: Ledger, _: Found) -> Table | None:
    """What the policy likes best at each prompt against what is best."""
    rows = ledger.get("beta=0.5+reinforce")
    if not rows:
        return None
    golds, last = Answers().golds, rows[-1]
    cells: list[list[Any]] = []
    for prompt in range(PROMPTS):
        pick, best = last[f"pick_{prompt}"], int(golds[prompt].argmax())
        cells.append([prompt, pick, float(golds[prompt, pick]), best, float(golds[prompt, best])])
    right = sum(row[1] == row[3] for row in cells)
    return Table(
        "3. Optimise on the leash: the policy's favourite at each prompt",
        f"At {right} of {PROMPTS} prompts the policy's favourite is the best answer there is; where it is not, what "
        "sounds right is not right, or the leash holds.",
        ["prompt", "favourite", "its gold", "best answer", "its gold "], cells,
    )  # fmt: skip


def good_model(ledger: Ledger, _: Found) -> Table | None:
    """Where gold peaked and ended under the full reward model."""
    rows = [
        [arm, peak(ledger[arm])["gold"], peak(ledger[arm])["step"], *numbers(ledger[arm][-1])]
        for arm in ledger if arm.endswith(("+reinforce", "+ppo"))
    ]  # fmt: skip
    return table_or_none(
        "3. Optimise on the leash: with and without it",
        "Without a leash (beta = 0) the proxy goes highest, yet gold is at its best on the way and falls back: even a "
        "good reward model is only good near its comparisons.",
        ["arm", "best gold", "at step", "final proxy", "final gold", "final KL"], rows=rows,
    )  # fmt: skip


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
    return table_or_none(
        "3. Optimise on the leash: how far from the exact optimum?",
        "The optimum is reference x exp(score / beta), computed; the learned policy comes after it, then how far apart "
        "they are: total variation (0 to 1) and KL, which is infinite (-) at beta = 0, where the optimum is one answer.",
        ["arm", "proxy*", "gold*", "KL*", "proxy", "gold", "KL", "TV", "KL to it"], rows=rows,
    )  # fmt: skip


# 4. Reward hacking


def hacked(ledger: Ledger, found: Found) -> Table | None:
    """The thin model without a leash, every 25 steps."""
    rows = ledger.get("beta=0+thin")
    if not rows:
        return None
    top = peak(rows)
    return Table(
        "4. Reward hacking: few comparisons, no leash",
        f"The proxy never stops climbing. Gold is at its best at step {top['step']} ({top['gold']:.3f}) and then falls "
        f"to {rows[-1]['gold']:.3f}: from there on the policy learns what only the reward model likes.",
        ["step", "proxy", "gold", "KL, nats"], every(rows, READ),
    )  # fmt: skip


def correlations(_: Ledger, found: Found) -> Table:
    """How well each reward model ranks all answers, and the short ones."""
    return Table(
        "4. Reward hacking: how good is the reward model?",
        "The thin model ranks the answers it was shown well and the long ones badly: a check on fresh pairs of the same "
        "kind cannot find that out.",
        ["comparisons", "answer 7 shown", "rank correlation, all 32", "answers 0 to 4"],
        [[sum(found["shown"][name]) // 2, found["shown"][name][7], found[f"{prefix}rank_correlation"],
          found[f"{name}_rank_short"]] for name, prefix in (("full", ""), ("thin", "thin_"))],
    )  # fmt: skip


def furthest(ledger: Ledger, found: Found) -> Table | None:
    """The prompt at which the hacked policy lost most, answer by answer."""
    rows = ledger.get("beta=0+thin")
    if not rows:
        return None
    world, last = Answers(), rows[-1]
    prompt = max(range(PROMPTS), key=lambda prompt: peak(rows)[f"gold_{prompt}"] - last[f"gold_{prompt}"])
    scores = found["exact"]["scores"]["thin"][prompt]
    cells = [
        [answer, found["shown"]["thin"][answer], float(world.golds[prompt, answer]), scores[answer],
         "<- the policy's favourite" if answer == last[f"pick_{prompt}"] else ""]
        for answer in range(ANSWERS)
    ]  # fmt: skip
    return Table(
        f"4. Reward hacking: prompt {prompt}, which went furthest wrong",
        f"Gold there fell from {peak(rows)[f'gold_{prompt}']:.3f} to {last[f'gold_{prompt}']:.3f}. Look at answers 6 and "
        f"7: the thin model has seen number 7 {found['thin_shown_7']} times and scores them {scores[6]:.2f} and "
        f"{scores[7]:.2f}, in deviations of the reference.",
        ["answer", "times shown", "gold", "thin model's score", ""], cells,
    )  # fmt: skip


# 5. The leash's length


def lengths(ledger: Ledger, found: Found) -> Table | None:
    """The thin model's arms beside the reference."""
    rows = [[arm, *numbers(ledger[arm][-1])] for arm in sorted(ledger) if arm.endswith("+thin")]
    return table_or_none(
        "5. The leash's length: the thin model at every beta",
        "Too loose and the reward model's errors are found, too tight and little is learnt: gold is best in between, and "
        "the proxy alone would always choose the loosest.",
        ["arm", "proxy", "gold", "KL, nats"],
        rows=rows and [["the reference", 0.0, found["reference_gold"], 0.0], *rows],
    )  # fmt: skip


# 6. Four more breaks


def breaks(ledger: Ledger, found: Found) -> Table | None:
    """One thing broken at a time."""
    words = {
        "beta=0+flipped": f"labels flipped: the model ranks upside down ({found['flipped_rank_correlation']:.3f}), and "
        "the policy learns the worst",
        "beta=0.5+thin+moving": "the reference moves along: the KL that is charged reads zero while the real one grows, "
        "as if there were no leash",
        "beta=0+thin+ascent": "plain gradient ascent for Adam: steps follow how often an answer is drawn, so it never "
        "finds the long ones",
        "beta=0+direct": f"gold itself for the reward: the best possible is {found['best_gold']:.3f}; nothing is left to "
        "hack",
    }
    rows = [
        [arm, *numbers(ledger[arm][-1]), ledger[arm][-1]["kl_k1"], told] for arm, told in words.items() if arm in ledger
    ]
    return table_or_none(
        "6. Four more breaks",
        "KL is the real distance from where the run began; charged is what the run itself measured on its last rollout "
        "(k1). A break in any one place shows in one of the three numbers.",
        ["arm", "proxy", "gold", "KL", "charged", "what broke, and what it does"], rows=rows,
    )  # fmt: skip


# Over other draws


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
        rows.append([name, values[0], min(values), median(values), max(values)])
    return Table(
        f"Over {len(runs)} draws of the labels: what one should believe",
        f"The run above is one draw (the first column). Over all of them gold falls by more than {FALL} in "
        f"{fallen(found):.0%}, and a leash of {LEASH:g} ends better in {helped(found):.0%}: hacking is likely, not certain.",
        ["", "the source's", "lowest", "middle", "highest"], rows,
    )  # fmt: skip


def blind_spots(_: Ledger, found: Found) -> Table | None:
    """Which answer each start of the reward model over-scores."""
    runs = found.get("inits")
    if not runs:
        return None
    long = sum(run["over_answer"] >= 5 for run in found["draws"])
    return Table(
        "Over five starts of the reward model: which answer is over-scored?",
        "The same 150 labels, another start of the network: the answer that is scored most above its gold changes, and "
        f"it is always one that was hardly shown (so it is in {long} of the {len(found['draws'])} draws above).",
        ["torch seed", "prompt", "answer", "model's score", "gold", "final gold"],
        [[run["reward_seed"], run["over_prompt"], run["over_answer"], run["over_score"], run["over_gold"], run["gold"]]
         for run in runs],
    )  # fmt: skip


def recap(_: Ledger, __: Found) -> Table:
    """The whole idea."""
    return Table("The whole idea in five lines", "", ["", " "], [[i, line] for i, line in enumerate(RECAP, 1)])


def numbers(row: Row) -> list[float]:
    """Proxy, gold and KL, never one of them alone."""
    return [row["proxy"], row["gold"], row["kl"]]


def every(rows: Sequence[Row], steps: int) -> list[list[Any]]:
    """The three numbers at every so many steps."""
    return [[row["step"], *numbers(row)] for row in islice(rows, 0, None, steps)]


def table_or_none(title: str, note: str, columns: list[str], *, rows: list[list[Any]]) -> Table | None:
    """A table with rows, or nothing."""
    return Table(title, note, columns, rows) if rows else None


TABLES: tuple[Callable[[Ledger, Found], Table | None], ...] = (
    candidates, questions, losses, opinions, on_the_leash, favourites, good_model, distances, hacked, correlations,
    furthest, lengths, breaks, draws, blind_spots, recap,
)  # fmt: skip
