"""Emphasis: a proxy that extrapolates. What happens past the edge of the preference data?

SFT on a corpus, 4,000 noisy pairs of its samples, a bag-of-tokens reward model, then PPO at sequence level.
"""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy, check_network
from killick.models.transformer import Transformer, TransformerConfig
from killick.preferences.labelers import BradleyTerry, ceiling
from killick.preferences.pairing import neighbours
from killick.recipes.cells import Begun, Cell, Seen, answers_shown
from killick.recipes.ledger import Note, arm_name, ledger_row
from killick.recipes.settings import check_betas, check_seeds, find_device
from killick.rewards.fit import FitConfig, FitState, Standardised, accuracy, fit, standardise
from killick.rewards.pooled import Pooled
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Refusal, check_speaks
from killick.worlds.emphasis import Emphasis


@dataclass(frozen=True)
class Config:
    """Settings of the emphasis recipe.

    Args:
        betas: the leashes, one arm each: reward deviations per nat.
        seeds: every arm runs once for each.
        pairs: labelled pairs that the reward model learns from.
        validation: labelled pairs that it is judged by.
        noise: gold units by which a labeler errs; P(a wins) = sigma((gold a - gold b) / noise).
        hidden: width of the reward model.
        device: auto takes a GPU where there is one.
        workers: processes at once; 0 takes one a core.
        network: the policy's shape.
        sft: supervised fine-tuning.
        fit: the reward model's.
        ppo: the optimiser's.
    """

    betas: tuple[float, ...] = (0.0,)
    seeds: tuple[int, ...] = (42,)
    pairs: int = 4000
    validation: int = 2000
    noise: float = 0.1
    hidden: int = 64
    device: str = "auto"
    workers: int = 0
    network: TransformerConfig = field(
        default_factory=lambda: TransformerConfig(25, 24, context=13, feed_forward=128, final_norm=False)
    )
    sft: SFTConfig = SFTConfig(steps=800, batch=256, learning_rate=3e-3)
    fit: FitConfig = FitConfig(steps=600, batch=128, learning_rate=1e-3)
    ppo: PPOConfig = PPOConfig(iterations=150, batch=256, epochs=4, minibatches=4, learning_rate=3e-5, level="sequence")

    def quick(self) -> "Config":
        """The same path, smaller, in well under a minute."""
        return replace(self, sft=replace(self.sft, steps=100), pairs=1000, ppo=replace(self.ppo, iterations=10))

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas)
        check_seeds(self.seeds)
        find_device(self.device)
        if min(self.pairs, self.validation, self.hidden) < 1:
            asked = f"{self.pairs}, {self.validation} and {self.hidden}"
            raise Refusal(f"--pairs, --validation and --hidden must be at least 1, not {asked}.")
        if not 0 < self.noise < float("inf"):
            raise Refusal(f"--noise must be a positive number, not {self.noise:g}.")
        self.network.validate()
        check_network(self.network, Emphasis.vocabulary, prompt=1)
        self.sft.validate()
        self.fit.validate()
        self.ppo.validate()
        self.ppo.check(Emphasis.vocabulary, critic=False, demonstrations=False)


def cells(config: Config) -> list[Cell]:
    """Every beta at every seed."""
    return [Cell(arm_name(beta), seed, config.ppo.iterations) for beta in config.betas for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 8 + 40 * len(config.seeds) + 0.28 * sum(cell.steps for cell in cells(config))


@dataclass(frozen=True)
class Prepared:
    """What all arms of a seed begin with."""

    policy: TransformerPolicy
    reward: Standardised


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """SFT and reward model of a seed, from the cache where they are; returns them and what was found on the way."""
    world, generator = Emphasis(), stage_generator(seed, "sft", device=config.device)
    settings: dict[str, Any] = {
        "seed": seed, "device": config.device, "network": asdict(config.network), "sft": asdict(config.sft)
    }  # fmt: skip
    policy = TransformerPolicy(Transformer(config.network, generator), world.vocabulary)
    check_speaks(policy, world)
    saved = yield from cached("emphasis-sft", settings, build=lambda: supervise(config, policy, generator=generator))
    policy.load_state_dict(saved["policy"])
    labels = {name: getattr(config, name) for name in ("pairs", "validation", "noise", "hidden")}
    model = Pooled(
        world.vocabulary.size, config.hidden, generator=stage_generator(seed, "reward model", device=config.device)
    )
    learnt = yield from cached(
        "emphasis-reward",
        settings | labels | {"fit": asdict(config.fit)},
        build=lambda: learn(config, seed, policy=policy, model=model),
    )
    model.load_state_dict(learnt["model"])
    found = saved["found"] | learnt["found"]
    yield Note(
        f"Seed {seed}: base gold {found['base_gold']:.3f}, more than three emphasis tokens in {found['beyond']:.2%}; "
        f"reward model accuracy {found['reward_accuracy']:.3f} at a ceiling of {found['reward_ceiling']:.3f}"
    )
    return Prepared(policy, Standardised(model.requires_grad_(False), learnt["mean"], learnt["deviation"])), found


def supervise(
    config: Config, policy: TransformerPolicy, *, generator: torch.Generator
) -> Generator[Note, None, dict[str, Any]]:
    """Imitate the corpus."""
    world = Emphasis()
    for step in sft(SFTState(policy, config.sft, generator), world.demonstrations):
        if (step.step + 1) % 100 == 0:
            yield Note(f"SFT step {step.step + 1}: loss {step.loss:.3f} nats per token")
    rollout = policy.sample(world.prompts(8000, generator), 1, generator)
    gold, many = float(world.gold(rollout).mean()), float((world.count(rollout) > 3).float().mean())
    return {"policy": policy.state_dict(), "found": {"base_gold": gold, "beyond": many}}


def learn(
    config: Config, seed: int, *, policy: TransformerPolicy, model: Pooled
) -> Generator[Note, None, dict[str, Any]]:
    """Label pairs of samples, fit a bag of tokens, scale it on the SFT policy."""
    world, generator = Emphasis(), stage_generator(seed, "labels", device=config.device)
    labeler = BradleyTerry(1 / config.noise)
    learned, held = (
        labeler.label(neighbours(rollout), world.gold(rollout), generator)
        for rollout in (
            policy.sample(world.prompts(n, generator), 2, generator) for n in (config.pairs, config.validation)
        )
    )
    for step in fit(FitState(model, config.fit, generator), learned):
        if step.step % 200 == 199:
            yield Note(f"Reward model step {step.step + 1}: loss {step.loss:.4f} nats per pair")
    found = {
        "reward_accuracy": accuracy(model, held, tie_credit=0.0),
        "reward_ceiling": ceiling(labeler, held, gold=world.gold(held.rollout)),
        "reward_pairs": len(learned),
    }
    scaled = standardise(model, policy.sample(world.prompts(2000, generator), 1, generator))
    return {
        "model": model.state_dict(),
        "found": found,
        "mean": float(scaled.mean),
        "deviation": float(scaled.deviation),
    }


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one cell, not yet moved."""
    beta = next(beta for beta in config.betas if arm_name(beta) == cell.arm)
    learner, reference = deepcopy(prepared.policy), deepcopy(prepared.policy)
    generator = stage_generator(cell.seed, f"ppo {cell.arm}", device=config.device)
    state = PPOState(learner, reference, None, config.ppo, generator, Leash(beta))
    return state, watch(cell, state, reward=prepared.reward)


def watch(cell: Cell, state: PPOState, *, reward: Standardised) -> Iterator[Seen]:
    """The cell's steps with gold beside them."""
    world = Emphasis()
    for step in ppo(state, reward, prompts=world.prompts):
        gold, count = world.gold(step.rollout), float(world.count(step.rollout).float().mean())
        row = ledger_row(cell.arm, cell.seed, step=step, gold=gold, vocabulary=world.vocabulary, emphasis=count)
        yield Seen(row, answers_shown(cell, step, world=world, prompts=["<bos>"] * 6, gold=gold))
