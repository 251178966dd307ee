"""Answers: 4 prompts x 8 answers. How close do REINFORCE and PPO come to the exact optimum, and what is it worth?

Reward models from noisy comparisons, optimisers on a table of logits, and the closed form beside them; then the same
with few comparisons, and with one thing after another broken. Proxy, gold and KL in its ledger are exact expectations,
not sample means, and the KL is to the reference where the run began, whatever reference an arm is charged for.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceState, reinforce
from killick.algorithms.tilt import tilt
from killick.models.tabular import TabularPolicy
from killick.ops.kl import exact_kl
from killick.ops.logprobs import entropy
from killick.recipes.answers.claims import claimed, finished
from killick.recipes.answers.config import Config, arms
from killick.recipes.answers.draws import distribution
from killick.recipes.answers.labels import learn, numpy_sampler
from killick.recipes.answers.tables import all_tables
from killick.recipes.cells import Begun, Cell, Seen
from killick.recipes.claims import judge
from killick.recipes.ledger import Note, Row, ledger_row
from killick.recipes.tables import Table
from killick.rewards.tabular import TabularReward
from killick.rundir.cache import cached
from killick.rundir.ledger import plain
from killick.rundir.seeds import stage_generator
from killick.types import Step
from killick.worlds.answers import Answers

__all__ = ["Config", "begin", "cells", "claims", "prepare", "seconds", "tables"]


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed, the longest first."""
    found = [Cell(name, seed, arm.optimiser.iterations) for name, arm in arms(config).items() for seed in config.seeds]
    return sorted(found, key=lambda cell: -cell.steps)


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    drawn = (0.2 + 0.012 * config.draws) * config.reinforce.iterations / 30 if config.draws else 0
    return 6 + 0.0016 * sum(cell.steps for cell in cells(config)) + drawn * len(config.seeds)


Scores = dict[str, Float[Tensor, "4 8"]]
"""Each of the 32 answers under each reward model, and under gold."""


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Scores, dict[str, Any]]]:
    """Comparisons and reward models; they are the same for all seeds, which are of the policies' draws."""
    world = Answers()
    labels = ("comparisons", "label_seed", "thin_comparisons", "thin_label_seed", "reward_seed")
    settings = {name: getattr(config, name) for name in labels} | {"fit": asdict(config.fit)}
    learnt = yield from cached("answers-rewards", settings, build=lambda: rewards(config))
    scores, found = learnt["scores"], learnt["found"]
    if config.draws:
        settings |= {"seed": seed, "draws": config.draws, "reinforce": asdict(config.reinforce)}
        found |= yield from cached("answers-draws", settings, build=lambda: spread(config, seed))
    climbed = {name: arm.scores for name, arm in arms(config).items()}
    listed = {"reference": world.reference, "gold": world.golds, "scores": scores, "arms": climbed}
    return scores, found | {"exact": plain(listed)}


def rewards(config: Config) -> Generator[Note, None, dict[str, Any]]:
    """The reward models, told in one sentence."""
    learnt = learn(config)
    found = learnt["found"]
    yield Note(
        f"Reward model on {config.comparisons} comparisons (answer 7 shown {found['shown_7']} times): loss "
        f"{found['loss_first']:.4f} to {found['loss_last']:.3f}, rank correlation with gold "
        f"{found['rank_correlation']:.3f}; on {config.thin_comparisons}: {found['thin_rank_correlation']:.3f}; gold of "
        f"the reference {found['reference_gold']:.3f}, best possible {found['best_gold']:.3f}"
    )
    return learnt


def spread(config: Config, seed: int) -> Generator[Note, None, dict[str, Any]]:
    """The thin run over other draws, announced, since all cells wait for it."""
    yield Note(f"{config.draws} draws of the {config.thin_comparisons} labels: fitted and optimised against together")
    return distribution(config, seed)


def begin(config: Config, cell: Cell, *, prepared: Scores) -> Begun:
    """REINFORCE (with the source's draws) or PPO from the reference, not yet moved."""
    arm, world = arms(config)[cell.arm], Answers()
    scores, leash, settings = prepared[arm.scores], Leash(arm.beta), arm.optimiser
    policy, reference = speakers(config, world)
    # An arm ten times as long as the others shows as many rows as they do: it moves a tenth as far in a step.
    every = config.every * max(1, round(cell.steps / config.reinforce.iterations))

    def shown(step: int) -> bool:
        return step % every == 0 or step == cell.steps - 1

    reward = TabularReward(scores.to(config.device))
    state: PPOState | ReinforceState
    asked = world.prompts(settings.batch, torch.Generator(config.device))  # the same four each time, in order
    if isinstance(settings, PPOConfig):
        generator = stage_generator(cell.seed, "ppo", device=config.device)
        state = PPOState(policy, reference, None, settings, generator, leash)
        steps = ppo(state, reward, prompts=lambda *_: asked, exact=shown)
    else:
        generator = stage_generator(cell.seed, "reinforce", device=config.device)
        state = ReinforceState(policy, policy if arm.moving else reference, settings, generator, leash)
        policy.sampler = numpy_sampler(state, cell.seed, n=settings.n)
        steps = reinforce(state, reward, prompts=lambda *_: asked, exact=lambda _: False)  # `measure` is exact, too
    optimum = tilt(world.reference, scores, beta=arm.beta)
    return state, watch(cell, state, policy=policy, steps=steps, scores=scores, optimum=optimum, shown=shown)


def speakers(config: Config, world: Answers) -> tuple[TabularPolicy, TabularPolicy]:
    """The policy and its reference, both at the reference's log-probs."""
    logits = world.reference[:, None].to(config.device)
    return TabularPolicy(logits, world.vocabulary), TabularPolicy(logits, world.vocabulary)


@torch.no_grad()
def standing(policy: TabularPolicy) -> Float[Tensor, "4 8"]:
    """The policy's log-probs as they stand now."""
    return policy.table()[:, 0].cpu()


def watch(
    cell: Cell, state: PPOState | ReinforceState, *, policy: TabularPolicy, steps: Iterator[Step],
    scores: Float[Tensor, "4 8"], optimum: Float[Tensor, "4 8"],
    shown: Callable[[int], bool],
) -> Iterator[Seen]:  # fmt: skip
    """The cell's steps; every so often, and at the last, exact figures of the policy that drew, before its update."""
    world = Answers()
    while state.step < cell.steps:
        now = standing(policy) if shown(state.step) else None
        step = next(steps)
        if now is None:
            yield Seen(None)
            continue
        row = ledger_row(cell.arm, cell.seed, step=step, gold=None, vocabulary=world.vocabulary)
        yield Seen(row | measure(world, now, scores=scores, optimum=optimum))


def measure(
    world: Answers, logprobs: Float[Tensor, "4 8"], *, scores: Float[Tensor, "4 8"], optimum: Float[Tensor, "4 8"]
) -> Row:
    """Exact proxy, gold, KL and entropy, the distance to the optimum, and gold and favourite at each prompt."""
    p = logprobs.exp()
    golds, picks = (p * world.golds).sum(1).tolist(), p.argmax(1).tolist()
    kl, kl_to_optimum = exact_kl(logprobs.expand(2, -1, -1), torch.stack((world.reference, optimum))).mean(1).tolist()
    return {
        "proxy": world.expected(logprobs, scores),
        "gold": sum(golds) / len(golds),
        "kl": kl,
        "entropy": float(entropy(logprobs).mean()),
        "tv_to_optimum": float((p - optimum.exp()).abs().sum(1).mean() / 2),
        "kl_to_optimum": kl_to_optimum,
        **{f"gold_{prompt}": gold for prompt, gold in enumerate(golds)},
        **{f"pick_{prompt}": pick for prompt, pick in enumerate(picks)},
    }


def claims(rows: list[Row], found: dict[str, Any]) -> list[Row]:
    """The source's figures beside ours: of its own draws, which are seed 0, in the arms that ran to its end."""
    source = {seed: stages for seed, stages in found.items() if seed == "0"}
    return judge(claimed(source), finished(rows), found=source)


def tables(rows: list[Row], found: dict[str, Any]) -> list[Table]:
    """The six demonstrations, the distribution, and the idea in five lines."""
    return all_tables(rows, found)
