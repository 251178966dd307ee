"""Answers: 4 prompts x 8 answers. How close do REINFORCE and PPO come to the exact optimum of the same table?

A reward model from noisy comparisons, two optimisers on a table of logits, and the closed form beside them. Proxy, gold
and KL in its ledger are exact expectations, not sample means.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

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
from killick.ops.logprobs import draw
from killick.ops.stats import rank_correlation
from killick.preferences.labelers import BradleyTerry
from killick.recipes.ledger import Note, Row, arm_name, in_arm, ledger_row
from killick.recipes.settings import check_betas, check_seed, find_device
from killick.rewards.fit import FitConfig, FitState, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.rundir import stage_generator
from killick.types import Comparison, Preference, Refusal, Reward, Step
from killick.worlds.answers import ANSWERS, PROMPTS, Answers


@dataclass(frozen=True)
class Config:
    """Settings of the answers recipe. The defaults are the source's, down to its random streams.

    Args:
        betas: the leashes, one arm for each and each algorithm: reward deviations per nat.
        seed: of the policies' draws.
        comparisons: labelled pairs that the reward model learns from.
        label_seed: numpy's, of the comparisons.
        reward_seed: of the reward model's start.
        device: auto takes a GPU where there is one (the table is small: a CPU is faster).
        fit: the reward model's.
        reinforce: the first optimiser's.
        ppo: the second's.
    """

    betas: tuple[float, ...] = (0.5,)
    seed: int = 0
    comparisons: int = 2000
    label_seed: int = 2
    reward_seed: int = 4
    device: str = "auto"
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
        for seed in (self.seed, self.label_seed, self.reward_seed):
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


def rows(config: Config) -> int:
    """Ledger rows that a run will have."""
    return len(config.betas) * (config.reinforce.iterations + config.ppo.iterations)


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 5 + 0.004 * rows(config)


def run(config: Config) -> Iterator[Note | Row]:
    """Comparisons, reward model, then REINFORCE and PPO for each beta, beside the closed form."""
    config = replace(config, device=find_device(config.device))
    world = Answers()
    preference = compare(world, config.comparisons, seed=config.label_seed)
    model = Head(
        world.features, mlp(4, 16, generator=torch.Generator().manual_seed(config.reward_seed), activation="tanh")
    )
    losses = [step.loss for step in fit(FitState(model, config.fit, torch.Generator()), preference)]
    everything = world.everything()
    reward = standardise(model, everything, weights=everything.logprobs[:, 0].exp())
    scores = reward(everything).view(PROMPTS, ANSWERS)
    seventh = int((preference.rollout.responses[torch.cat((preference.chosen, preference.rejected))] == 7).sum())
    yield Note(
        f"Reward model on {len(preference)} comparisons (answer 7 shown {seventh} times): loss {losses[0]:.4f} to "
        f"{losses[-1]:.3f}, rank correlation with gold {rank_correlation(scores.flatten(), world.golds.flatten()):.3f}"
    )
    start = world.expected(world.reference, world.golds)
    yield Note(f"Reference: gold {start:.3f}. Best possible: {world.best:.3f}")
    reward = reward.to(config.device)
    for beta in config.betas:
        optimum = tilt(world.reference, scores, beta=beta)
        yield Note(
            f"Closed form at beta={beta:g}: " + words(measure(world, world.reference, scores=scores, logprobs=optimum))
        )
        for name, loop in (("reinforce", by_reinforce), ("ppo", by_ppo)):
            arm = arm_name(beta, name)
            yield from trained(
                arm,
                config,
                world=world,
                scores=scores,
                optimum=optimum,
                loop=loop(config, world, reward=reward, beta=beta),
            )


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


def numpy_sampler(seed: int, n: int) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Draw as the source does: numpy's choice, `n` answers a prompt, prompts in order."""
    rng = np.random.default_rng(seed)

    def choose(log_probs: Tensor, _: torch.Generator) -> Tensor:
        rows = log_probs[::n].double().exp().cpu().numpy()
        drawn = [rng.choice(ANSWERS, n, p=row / row.sum()) for row in rows]
        return torch.tensor(np.concatenate(drawn), device=log_probs.device)

    return choose


Loop = Iterator[tuple[Tensor, Step]]


def by_reinforce(config: Config, world: Answers, *, reward: Reward, beta: float) -> Loop:
    """REINFORCE from the reference, with the source's draws: each step with the log-probs before its update."""
    settings = config.reinforce
    policy, reference = tables(config, world, sampler=numpy_sampler(config.seed, settings.n))
    generator = stage_generator(config.seed, "reinforce", device=config.device)
    state = ReinforceState(policy, reference, settings, generator, Leash(beta))
    yield from before_update(policy, reinforce(state, reward, prompts=world.prompts))


def by_ppo(config: Config, world: Answers, *, reward: Reward, beta: float) -> Loop:
    """PPO on the same table."""
    policy, reference = tables(config, world)
    generator = stage_generator(config.seed, "ppo", device=config.device)
    state = PPOState(policy, reference, None, config.ppo, generator, Leash(beta))
    yield from before_update(policy, ppo(state, reward, prompts=world.prompts))


def tables(
    config: Config, world: Answers, *, sampler: Callable[[Tensor, torch.Generator], Tensor] = draw
) -> tuple[TabularPolicy, TabularPolicy]:
    """The policy and its reference, both at the reference's log-probs."""
    logits = world.reference[:, None].to(config.device)
    policy = TabularPolicy(logits, world.vocabulary, sampler=sampler)
    return policy, TabularPolicy(logits, world.vocabulary).requires_grad_(False)


def before_update(policy: TabularPolicy, steps: Iterator[Step]) -> Loop:
    """Pair each step with the policy's log-probs as they stood when its rollout was drawn."""
    with torch.no_grad():
        now = policy.table()[:, 0].cpu()
    for step in steps:
        yield now, step
        with torch.no_grad():
            now = policy.table()[:, 0].cpu()


def measure(world: Answers, reference: Tensor, *, scores: Tensor, logprobs: Tensor) -> dict[str, float]:
    """Exact proxy, gold and KL of a policy."""
    return {
        "proxy": world.expected(logprobs, scores),
        "gold": world.expected(logprobs, world.golds),
        "kl": float(exact_kl(logprobs, reference).mean()),
    }


def words(found: Row) -> str:
    """The three numbers as one reads them."""
    return f"proxy {found['proxy']:.3f}, gold {found['gold']:.3f}, KL {found['kl']:.3f} nats"


def trained(
    arm: str, config: Config, *, world: Answers, scores: Tensor, optimum: Tensor, loop: Loop
) -> Iterator[Note | Row]:
    """Rows of one arm, exact, with the distance to the optimum; the last one in words."""
    with in_arm(arm):
        for logprobs, step in loop:
            row = ledger_row(arm, config.seed, step=step, gold=world.gold(step.rollout), vocabulary=world.vocabulary)
            row |= measure(world, world.reference, scores=scores, logprobs=logprobs)
            row["tv_to_optimum"] = float((logprobs.exp() - optimum.exp()).abs().sum(1).mean() / 2)
            row["kl_to_optimum"] = float(exact_kl(logprobs, optimum).mean())
            yield row
    yield Note(
        f"{arm}: {words(row)}; distance to the optimum {row['tv_to_optimum']:.3f} in total variation, "
        f"{row['kl_to_optimum']:.4f} nats"
    )
