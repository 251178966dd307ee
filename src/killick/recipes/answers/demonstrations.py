"""The six demonstrations of the answers recipe as tables, each with a sentence or two on what to see.

A table is read from the ledger and from what the stages found, of one seed; one whose arms did not run is left out.
"""

from typing import Any

from killick.recipes.answers.claims import READ, peak
from killick.recipes.answers.labels import ask
from killick.recipes.claims import Found
from killick.recipes.tables import Ledger, Table, every, numbers
from killick.worlds.answers import ANSWERS, PROMPTS, Answers

# 1. Ask the people


def candidates(_: Ledger, __: Found) -> Table:
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
        "Gold is what people want; a reward model will see the four columns before it. Answers 5 to 7 are long, and "
        "the reference hardly ever writes them, so hardly anybody will be asked about them.",
        ["answer", "sounds right", "length", "hedges", "polite", "gold", "reference, %"], rows,
    )  # fmt: skip


def questions(_: Ledger, __: Found) -> Table:
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
        "A coin flip costs 0.693 nats a pair, and noise in the labels keeps the loss well above 0. The scores end with "
        f"a rank correlation of {found['rank_correlation']:.3f} with gold over all 32 answers.",
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
    rows = ledger.get("beta=0.5+reinforce", [])
    return Table.unless_empty(
        "3. Optimise on the leash: beta = 0.5, a good reward model",
        f"Proxy and gold rise together and settle within a nat of the reference (gold {found['reference_gold']:.3f}); "
        f"the best that any policy could do is {found['best_gold']:.3f}.",
        ["step", "proxy", "gold", "KL, nats"], rows=every(rows, 50),
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
        f"At {right} of {PROMPTS} prompts the policy's favourite is the best answer there is, though nobody ever told "
        "it gold.",
        ["prompt", "favourite", "its gold", "best answer", "its gold "], cells,
    )  # fmt: skip


def good_model(ledger: Ledger, _: Found) -> Table | None:
    """Where gold peaked and ended under the full reward model."""
    rows = [
        [arm, peak(ledger[arm])["gold"], peak(ledger[arm])["step"], *numbers(ledger[arm][-1])]
        for arm in ledger if arm.endswith(("+reinforce", "+ppo"))
    ]  # fmt: skip
    return Table.unless_empty(
        "3. Optimise on the leash: with and without it",
        "Without a leash (beta = 0) the proxy goes highest, yet gold is at its best on the way and falls back: even a "
        "good reward model is only good near its comparisons.",
        ["arm", "best gold", "at step", "final proxy", "final gold", "final KL"], rows=rows,
    )  # fmt: skip


# 4. Reward hacking


def hacked(ledger: Ledger, _: Found) -> Table | None:
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
        "The thin model ranks the short answers, which it was shown, well and the long ones badly. Fresh pairs of the "
        "same kind hold few long answers too, so a check on them would hardly notice.",
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
        f"From step {peak(rows)['step']} on gold fell there from {peak(rows)[f'gold_{prompt}']:.3f} to "
        f"{last[f'gold_{prompt}']:.3f}. The thin model scores answer 6 {scores[6]:+.2f} and answer 7 {scores[7]:+.2f} "
        f"(deviations of the reference), having been shown {found['shown']['thin'][6]} and {found['thin_shown_7']} of "
        "them over all prompts.",
        ["answer", "times shown", "gold", "thin model's score", ""], cells,
    )  # fmt: skip


# 5. The leash's length


def lengths(ledger: Ledger, found: Found) -> Table | None:
    """The thin model's arms beside the reference."""
    rows = [[arm, *numbers(ledger[arm][-1])] for arm in sorted(ledger) if arm.endswith("+thin")]
    return Table.unless_empty(
        "5. The leash's length: the thin model at every beta",
        "Too loose and the reward model's errors are found, too tight and little is learnt. The proxy alone would "
        "always choose the loosest; look at gold, and at the KL that it costs.",
        ["arm", "proxy", "gold", "KL, nats"],
        rows=rows and [["the reference", 0.0, found["reference_gold"], 0.0], *rows],
    )  # fmt: skip


# 6. Four more breaks


def breaks(ledger: Ledger, found: Found) -> Table | None:
    """One thing broken at a time."""
    words = {
        "beta=0+flipped": "labels flipped: the reward model ranks upside down (correlation "
        f"{found['flipped_rank_correlation']:.3f}), so gold falls from the first step on",
        "beta=0.5+thin+moving": "the reference moves along: the KL that is charged reads zero while the real one "
        "grows, as if beta were 0",
        "beta=0+thin+ascent": "plain gradient ascent for Adam: an answer that is hardly drawn hardly moves, so the "
        "over-scored long one is never found; luck, not a cure",
        "beta=0+direct": f"gold itself for the reward: it nears the best possible, {found['best_gold']:.3f}, and "
        "nothing is left to hack",
    }
    rows = [
        [arm, *numbers(ledger[arm][-1]), ledger[arm][-1]["kl_k1"], told] for arm, told in words.items() if arm in ledger
    ]
    return Table.unless_empty(
        "6. Four more breaks",
        "KL is the real distance from where the run began; charged is what the run itself measured on its last "
        "rollout (k1).",
        ["arm", "proxy", "gold", "KL", "charged", "what broke, and what it does"], rows=rows,
    )  # fmt: skip
