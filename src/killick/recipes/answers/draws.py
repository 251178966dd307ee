"""The thin run of the answers recipe over other draws of its labels and other starts of its reward model."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.leash import Leash
from killick.algorithms.reinforce import ReinforceState, reinforce
from killick.models.tabular import TabularPolicy
from killick.ops.kl import exact_kl
from killick.ops.stats import rank_correlation
from killick.recipes.answers.config import LEASH, Config
from killick.recipes.answers.labels import compare, fitted
from killick.rewards.tabular import TabularReward
from killick.rundir.seeds import stage_generator
from killick.types import Prompts
from killick.worlds.answers import ANSWERS, PROMPTS, Answers

INITS = 5
"""Starts of the reward model that are tried on the source's labels: torch seeds 0 to 4."""
EVERY = 25
"""Steps between two readings."""


def distribution(config: Config, seed: int) -> dict[str, Any]:
    """Each draw's run, loose and on a leash: the first draw is the source's labels under the source's start.

    Draw i takes the labels of stream `thin_label_seed + i` and the start `reward_seed + i`; then come the source's
    labels under each of five starts. All policies are one table of 4 prompts a draw, so that one run of REINFORCE
    moves them together; they share nothing but the stream of random numbers.

    Returns:
        "draws" and "inits": one row of plain numbers each.
    """
    world = Answers()
    seeds = [(config.thin_label_seed + i, config.reward_seed + i) for i in range(config.draws)]
    seeds += [(config.thin_label_seed, start) for start in range(INITS)]
    labels = {label: compare(world, config.thin_comparisons, seed=label) for label, _ in seeds}
    scores = torch.stack([fitted(world, labels[label], seed=start, settings=config.fit)[0] for label, start in seeds])
    loose, held = (readings(config, scores, beta=beta, seed=seed) for beta in (0.0, LEASH))
    last = config.reinforce.iterations - 1
    rows = [
        {"label_seed": label, "reward_seed": start, "last_step": last}
        | told(world, scores[place], loose={name: each[:, place] for name, each in loose.items()})
        | {"held_gold": float(held["gold"][-1, place])}
        for place, (label, start) in enumerate(seeds)
    ]
    return {"draws": rows[: config.draws], "inits": rows[config.draws :]}


def readings(
    config: Config, scores: Float[Tensor, "draw 4 8"], *, beta: float, seed: int
) -> dict[str, Float[Tensor, "reading draw"]]:
    """Exact proxy, gold and KL of every draw's policy at every 25th step and at the last, before its update."""
    world, draws = Answers(), len(scores)
    logits = world.reference.repeat(draws, 1)[:, None]
    policy, reference = (TabularPolicy(logits, world.vocabulary) for _ in range(2))
    settings = replace(config.reinforce, batch=PROMPTS * draws)
    generator = stage_generator(seed, f"draws beta={beta:g}")
    state = ReinforceState(policy, reference, settings, generator, Leash(beta))
    seen: dict[str, list[Tensor]] = {"proxy": [], "gold": [], "kl": []}
    steps = reinforce(state, TabularReward(scores.view(-1, ANSWERS)), prompts=every_prompt, exact=lambda _: False)
    for step in range(settings.iterations):
        if step % EVERY == 0 or step == settings.iterations - 1:
            now = policy.table()[:, 0].detach().view(draws, PROMPTS, ANSWERS)
            seen["proxy"].append((now.exp() * scores).sum(2).mean(1))
            seen["gold"].append((now.exp() * world.golds).sum(2).mean(1))
            seen["kl"].append(exact_kl(now, world.reference.expand_as(now)).mean(1))
        next(steps)
    return {name: torch.stack(each) for name, each in seen.items()}


def every_prompt(count: int, generator: torch.Generator) -> Prompts:
    """All prompts of all draws in order."""
    ids = torch.arange(count, device=generator.device)[:, None]
    return ids, torch.ones_like(ids, dtype=torch.bool)


def told(
    world: Answers, scores: Float[Tensor, "4 8"], *, loose: dict[str, Float[Tensor, " reading"]]
) -> dict[str, Any]:
    """One draw in plain numbers: its reward model's favourites, what they lose, and where gold peaked and ended.

    The answer that is over-scored is the favourite that loses most gold against the best answer to its prompt.
    """
    peak = int(loose["gold"].argmax())
    picks = scores.argmax(1)
    lost = world.golds.max(1).values - world.golds[torch.arange(PROMPTS), picks]
    worst = int(lost.argmax())
    return {
        "rank_correlation": rank_correlation(scores.flatten(), world.golds.flatten()),
        "picks": picks.tolist(),
        "worst_prompt": worst,
        "worst_score": float(scores[worst].max()),
        "worst_lost": float(lost[worst]),
        "peak_gold": float(loose["gold"][peak]),
        "peak_step": EVERY * peak,
        "proxy": float(loose["proxy"][-1]),
        "gold": float(loose["gold"][-1]),
        "kl": float(loose["kl"][-1]),
    }
