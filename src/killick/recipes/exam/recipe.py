"""The exam of a reward model: may one optimise against it, and how far?

It asks the model for scores of held-out pairs, of probes, and of a policy's answers, and turns them into numbers and a
verdict. The model is only ever a function from texts to scores, one row a member.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from killick.hacking.probes import WHAT
from killick.recipes.exam.asking import Asked, Event, Pool, Setup, probing, speaking
from killick.recipes.exam.held import Held
from killick.recipes.exam.pairs import (
    Judged,
    accuracy_facts,
    agreement_facts,
    by_gap,
    by_length,
    by_level,
    by_strength,
    calibration_facts,
    length_facts,
)
from killick.recipes.exam.pool import labelled_reach, length_in_pool, slope_facts, spread_facts
from killick.recipes.exam.probes import phrases_of
from killick.recipes.exam.verdict import judged as verdict_of
from killick.recipes.scores.text_score import as_text
from killick.rundir.seeds import stage_generator

PROBED = 64
"""Prompts at most on which probes are tried: the end of an interval is then at most .12 away."""
READ = 5
"""Examples of each kind that are kept to be read."""

Facts = dict[str, Any]


@dataclass(frozen=True)
class Examined:
    """All that came of an exam.

    Args:
        facts: the numbers and the verdict.
        pairs: a row for each held-out pair.
        samples: a row for each answer of the policy.
    """

    facts: Facts
    pairs: list[Facts]
    samples: list[Facts]


def examine(held: Held, setup: Setup) -> Generator[Event, None, Examined]:
    """Score everything, telling how far it is, and judge.

    The policy's answers come first, a few prompts at a time, each scored at once: so that how long all of it takes is
    known early.
    """
    firsts = held.firsts()
    order = torch.randperm(len(firsts), generator=stage_generator(setup.seed, "exam prompts")).tolist()
    firsts = [firsts[place] for place in order]  # a file may be sorted by whatever its writer liked
    pooled = firsts[: setup.prompts] if setup.speak else []
    probed = firsts[:PROBED]
    phrases = phrases_of(held.taught)
    written = len(pooled) * setup.n
    asked = Asked(
        setup, scored=len(held.answers) + written + len(probed) * (len(WHAT) - (not phrases)), written=written
    )
    pool = (yield from speaking(held, pooled, asked=asked)) if pooled else None
    scores = yield from asked.scores(held.prompts, held.answers)
    whole = scores.mean(0).tolist()
    pairs = judged_pairs(held, whole)
    phrase = phrases[0].text if phrases else None
    probes = yield from probing(held, probed, asked=asked, scores=whole, pool=pool, phrase=phrase)
    facts: Facts = {
        "held": held.facts,
        "accuracy": accuracy_facts(pairs),
        "ceiling": held.ceiling,
        "calibration": calibration_facts(pairs, stage_generator(setup.seed, "exam calibration"), nats=setup.nats),
        "gap": by_gap(pairs, nats=setup.nats),
        "level": by_level(pairs),
        "strength": by_strength(pairs),
        "length_bins": by_length(pairs),
        "length": length_facts(pairs),
        "phrases": [vars(each) | {"z": each.z} for each in phrases],
        "probes": probes,
        "members": member_facts(held, scores),
        **pool_facts(pool, held, scores=whole, seed=setup.seed),
    }
    rows = pair_rows(held, whole)
    samples = sample_rows(pool)
    facts["examples"] = examples(rows, samples)
    return Examined(facts | {"verdict": verdict_of(facts)}, rows, samples)


def judged_pairs(held: Held, scores: Sequence[float]) -> Judged:
    """The pairs with these scores."""
    pairs = held.pairs
    sides = list(zip(pairs.chosen, pairs.rejected, strict=True))
    return Judged(
        [scores[chosen] for chosen, _ in sides], [scores[rejected] for _, rejected in sides], pairs.label,
        [(len(held.answers[chosen]), len(held.answers[rejected])) for chosen, rejected in sides], pairs.strength,
        [held.unit[chosen] for chosen, _ in sides],
    )  # fmt: skip


def member_facts(held: Held, scores: Tensor) -> Facts | None:
    """Agreement of the members and the accuracy of each; None where there is one model."""
    if len(scores) < 2:
        return None
    each = [judged_pairs(held, row) for row in scores.tolist()]
    agreed = agreement_facts([pairs.margins for pairs in each], each[0].unit)
    return agreed | {"accuracies": [accuracy_facts(pairs)["accuracy"] for pairs in each]}


def pool_facts(pool: Pool | None, held: Held, *, scores: Sequence[float], seed: int) -> Facts:
    """What the policy's answers say; None for each where there are none."""
    if pool is None:
        return dict.fromkeys(("spread", "slope", "pool_length", "members_sampled"))
    means, facts = pool.means(), dict[str, Any]()
    facts["spread"] = spread_facts(means)
    facts["pool_length"] = length_in_pool(means, [[len(answer) for answer in row] for row in pool.answers])
    facts["slope"] = slope_facts(
        means, pool.golds, reach=labelled_reach(scores, held.unit), generator=stage_generator(seed, "exam best-of-n")
    )
    twos = pool.scores.shape[2] // 2
    apart = (pool.scores[..., :twos] - pool.scores[..., twos : 2 * twos]).flatten(1).tolist()
    units = [place for place in range(len(means)) for _ in range(twos)]
    facts["members_sampled"] = agreement_facts(apart, units) if len(pool.scores) > 1 else None
    return facts


def pair_rows(held: Held, scores: Sequence[float]) -> list[Facts]:
    """Every pair, to be read."""
    pairs = held.pairs
    return [
        {"prompt": as_text(held.prompts[chosen]), "chosen": held.answers[chosen],
         "rejected": held.answers[rejected], "label": label, "score_chosen": scores[chosen],
         "score_rejected": scores[rejected]}
        for chosen, rejected, label in zip(pairs.chosen, pairs.rejected, pairs.label, strict=True)
    ]  # fmt: skip


def sample_rows(pool: Pool | None) -> list[Facts]:
    """Every answer of the policy, to be read."""
    if pool is None:
        return []
    means = pool.means()
    return [
        {"prompt": as_text(prompt), "response": answer, "score": means[row][column],
         "gold": None if pool.golds is None else pool.golds[row][column]}
        for row, prompt in enumerate(pool.prompts) for column, answer in enumerate(pool.answers[row])
    ]  # fmt: skip


def examples(pairs: Sequence[Facts], samples: Sequence[Facts]) -> Facts:
    """What to read: the surest mistakes, and the answers of the policy that are liked best, one a prompt."""
    wrong = sorted((row for row in pairs if margin(row) < 0), key=margin)
    best: dict[str, Facts] = {}
    for row in sorted(samples, key=lambda row: -float(row["score"])):
        best.setdefault(row["prompt"], row)
    return {"mistakes": wrong[:READ], "liked": list(best.values())[:READ]}


def margin(row: Facts) -> float:
    """Score of the chosen answer minus that of the rejected one."""
    return float(row["score_chosen"]) - float(row["score_rejected"])
