"""Answers: 4 prompts x 8 answers. How close do REINFORCE and PPO come to the exact optimum of the same table?

A reward model from noisy comparisons, two optimisers on a table of logits, and the closed form beside them. Proxy, gold
and KL in its ledger are exact expectations, not sample means.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceConfig, ReinforceState, reinforce
from killick.algorithms.tilt import tilt
from killick.models.tabular import TabularPolicy
from killick.ops.kl import exact_kl
from killick.ops.stats import rank_correlation
from killick.preferences.labelers import BradleyTerry
from killick.recipes.cells import Begun, Cell, Seen
from killick.recipes.ledger import Note, Row, arm_name, ledger_row
from killick.recipes.settings import check_betas, check_seed, check_seeds, find_device
from killick.rewards.fit import FitConfig, FitState, Standardised, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.rundir.seeds import stage_generator
from killick.types import Comparison, Preference, Refusal, Step
from killick.worlds.answers import ANSWERS, PROMPTS, Answers


@dataclass(frozen=True)
class Config:
    """Settings of the answers recipe. The defaults are the source's, down to its random streams.

    Args:
        betas: the leashes, one arm for each and each algorithm: reward deviations per nat.
        seeds: of the policies' draws; every arm runs once for each.
        comparisons: labelled pairs that the reward model learns from.
        label_seed: numpy's, of the comparisons.
        reward_seed: of the reward model's start.
        device: auto takes a GPU where there is one (the table is small: a CPU is faster).
        workers: processes at once; 0 takes one a core.
        fit: the reward model's.
        reinforce: the first optimiser's.
        ppo: the second's.
    """

    betas: tuple[float, ...] = (0.5,)
    seeds: tuple[int, ...] = (0,)
    comparisons: int = 2000
    label_seed: int = 2
    reward_seed: int = 4
    device: str = "auto"
    workers: int = 0
    fit: FitConfig = FitConfig(steps=400, learning_rate=0.02)
    reinforce: ReinforceConfig = ReinforceConfig()
    ppo: PPOConfig = PPOConfig(
        iterations=301,
        batch=4,
        n=64,
        epochs=4,
        learning_rate=0.02,
        decay=True,
        level="sequence",
        baseline="leave-one-out",
    )

    def quick(self) -> "Config":
        """The same path, shorter."""
        return replace(self, reinforce=replace(self.reinforce, iterations=51), ppo=replace(self.ppo, iterations=51))

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas)
        check_seeds(self.seeds)
        for seed in (self.label_seed, self.reward_seed):
            check_seed(seed)
        find_device(self.device)
        if self.comparisons < 1:
            raise Refusal(f"--comparisons must be at least 1, not {self.comparisons}.")
        if self.reinforce.batch % PROMPTS or self.ppo.batch % PROMPTS:
            raise Refusal(f"A batch must hold the {PROMPTS} prompts equally often.")
        self.fit.validate()
        self.reinforce.validate()
        self.ppo.validate()
        self.ppo.check(Answers.vocabulary, critic=False, demonstrations=False)


def arms(config: Config) -> dict[str, tuple[float, str]]:
    """What each arm is: a beta and an optimiser."""
    return {arm_name(beta, name): (beta, name) for beta in config.betas for name in ("reinforce", "ppo")}


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed."""
    steps = {"reinforce": config.reinforce.iterations, "ppo": config.ppo.iterations}
    return [Cell(arm, seed, steps[name]) for arm, (_, name) in arms(config).items() for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 5 + 0.004 * sum(cell.steps for cell in cells(config))


@dataclass(frozen=True)
class Prepared:
    """What all arms begin with: the world, the reward, and its score of each of the 32 answers."""

    world: Answers
    reward: Standardised
    scores: Tensor


def prepare(config: Config, _: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """Comparisons and reward model, in half a second; the seed of a cell is of its policy's draws only."""
    world = Answers()
    preference = compare(world, config.comparisons, seed=config.label_seed)
    start = torch.Generator().manual_seed(config.reward_seed)
    model = Head(world.features, mlp(4, 16, generator=start, activation="tanh"))
    losses = [step.loss for step in fit(FitState(model, config.fit, torch.Generator()), preference)]
    everything = world.everything()
    reward = standardise(model, everything, weights=everything.logprobs[:, 0].exp())
    scores = reward(everything).view(PROMPTS, ANSWERS)
    shown = preference.rollout.responses[torch.cat((preference.chosen, preference.rejected))]
    found = {
        "shown_7": int((shown == 7).sum()),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "rank_correlation": rank_correlation(scores.flatten(), world.golds.flatten()),
        "reference_gold": world.expected(world.reference, world.golds),
        "best_gold": world.best,
    }
    yield Note(
        f"Reward model on {len(preference)} comparisons (answer 7 shown {found['shown_7']} times): loss "
        f"{losses[0]:.4f} to {losses[-1]:.3f}, rank correlation with gold {found['rank_correlation']:.3f}; gold of the "
        f"reference {found['reference_gold']:.3f}, best possible {world.best:.3f}"
    )
    return Prepared(world, reward.to(config.device), scores), found


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """REINFORCE (with the source's draws) or PPO from the reference, not yet moved."""
    beta, name = arms(config)[cell.arm]
    world, generator = prepared.world, stage_generator(cell.seed, name, device=config.device)
    policy, reference = speakers(config, world)
    if name == "reinforce":
        first = ReinforceState(policy, reference, config.reinforce, generator, Leash(beta))
        policy.sampler = numpy_sampler(first, cell.seed, n=config.reinforce.n)
        steps = reinforce(first, prepared.reward, prompts=world.prompts)
        return first, watch(cell, policy, steps=steps, prepared=prepared, beta=beta)
    second = PPOState(policy, reference, None, config.ppo, generator, Leash(beta))
    steps = ppo(second, prepared.reward, prompts=world.prompts)
    return second, watch(cell, policy, steps=steps, prepared=prepared, beta=beta)


def compare(world: Answers, count: int, *, seed: int) -> Preference:
    """The source's comparisons: a prompt, two different answers of the reference, a Bradley-Terry draw, by numpy."""
    rng, reference = np.random.default_rng(seed), world.reference.double().exp().numpy()
    reference = reference / reference.sum(1, keepdims=True)
    first, second, wins = [], [], []
    for _ in range(count):
        prompt = int(rng.integers(PROMPTS))
        a, b = rng.choice(ANSWERS, 2, replace=False, p=reference[prompt])
        rows = torch.tensor((a, b)) + ANSWERS * prompt
        gold = world.golds.flatten()[rows]
        wins.append(rng.uniform() < float(BradleyTerry().probability(gold[:1], gold[1:])))
        first.append(int(rows[0]))
        second.append(int(rows[1]))
    pair = Comparison(world.everything(), torch.tensor(first), torch.tensor(second))
    won = torch.tensor(wins)
    return Preference.hard(pair.rollout, pair.first.where(won, pair.second), pair.second.where(won, pair.first))


def numpy_sampler(state: ReinforceState, seed: int, *, n: int) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Draw as the source does: numpy's choice, `n` answers a prompt, prompts in order.

    The stream is part of no saved state: where the state was put down at a step, it is wound forward to it. A choice
    takes one uniform number per answer.
    """
    rng, drawn = np.random.default_rng(seed), 0

    def choose(log_probs: Tensor, _: torch.Generator) -> Tensor:
        nonlocal drawn
        rng.random((state.step - drawn) * len(log_probs))
        drawn = state.step + 1
        rows = log_probs[::n].double().exp().cpu().numpy()
        answers = [rng.choice(ANSWERS, n, p=row / row.sum()) for row in rows]
        return torch.tensor(np.concatenate(answers), device=log_probs.device)

    return choose


def speakers(config: Config, world: Answers) -> tuple[TabularPolicy, TabularPolicy]:
    """The policy and its reference, both at the reference's log-probs."""
    logits = world.reference[:, None].to(config.device)
    return TabularPolicy(logits, world.vocabulary), TabularPolicy(logits, world.vocabulary)


@torch.no_grad()
def standing(policy: TabularPolicy) -> Tensor:
    """The policy's log-probs as they stand now: [prompt, answer]."""
    return policy.table()[:, 0].cpu()


def watch(
    cell: Cell, policy: TabularPolicy, *, steps: Iterator[Step], prepared: Prepared, beta: float
) -> Iterator[Seen]:
    """The cell's steps with exact figures of the policy that drew them, before its update."""
    world, optimum = prepared.world, tilt(prepared.world.reference, prepared.scores, beta=beta)
    while True:
        now = standing(policy)  # after a restore at the first turn, after the last update at the others
        step = next(steps, None)
        if step is None:
            return
        row = ledger_row(cell.arm, cell.seed, step=step, gold=world.gold(step.rollout), vocabulary=world.vocabulary)
        yield Seen(row | measure(prepared, now, optimum=optimum))


def measure(prepared: Prepared, logprobs: Tensor, *, optimum: Tensor) -> Row:
    """Exact proxy, gold and KL of a policy, and its distance to the optimum."""
    world = prepared.world
    return {
        "proxy": world.expected(logprobs, prepared.scores),
        "gold": world.expected(logprobs, world.golds),
        "kl": float(exact_kl(logprobs, world.reference).mean()),
        "tv_to_optimum": float((logprobs.exp() - optimum.exp()).abs().sum(1).mean() / 2),
        "kl_to_optimum": float(exact_kl(logprobs, optimum).mean()),
    }
