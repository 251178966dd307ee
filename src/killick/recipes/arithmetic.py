"""Arithmetic: the InstructGPT recipe in miniature. What does PPO do to a reward model that counts digits?

SFT on correct sums until half of the samples are right, rankings by a labeler who rewards even last digits, one weight
per digit, then PPO with a critic.
"""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy, check_network
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from killick.preferences.labelers import PlackettLuce, ceiling
from killick.preferences.pairing import pairs, part
from killick.recipes.ledger import Note, Row, arm_name, in_arm, ledger_row
from killick.recipes.settings import check_betas, check_seed, find_device
from killick.rewards.counts import Counts
from killick.rewards.fit import FitConfig, FitState, accuracy, fit
from killick.rundir import stage_generator
from killick.types import Preference, Refusal, check_speaks
from killick.worlds.arithmetic import Arithmetic

HELD_OUT = 400
"""Held-out ranked prompts: 2,400 pairs, a standard error of 0.01 on their accuracy."""


@dataclass(frozen=True)
class Config:
    """Settings of the arithmetic recipe.

    Args:
        betas: the leashes, one arm each: reward units per nat.
        seed: every stage draws from its own stream of this number.
        rankings: ranked prompts that the reward model learns from.
        k: responses per ranking.
        kappa: 1 / noise of the labeler.
        sft_accuracy: stop SFT when this share of sampled answers is right.
        device: auto takes a GPU where there is one.
        network: the policy's and the critic's shape.
        sft: supervised fine-tuning.
        fit: the reward model's.
        ppo: the optimiser's.
    """

    betas: tuple[float, ...] = (0.0,)
    seed: int = 0
    rankings: int = 600
    k: int = 4
    kappa: float = 2.0
    sft_accuracy: float = 0.5
    device: str = "auto"
    network: TransformerConfig = field(default_factory=lambda: TransformerConfig(14, 14, context=10))
    sft: SFTConfig = SFTConfig(steps=1000, batch=256, learning_rate=2e-3, warmup=50)
    fit: FitConfig = FitConfig(steps=100, learning_rate=0.01)
    ppo: PPOConfig = PPOConfig(iterations=120, batch=64, epochs=4, learning_rate=1e-4)

    def quick(self) -> "Config":
        """The same path, smaller, in well under a minute."""
        return replace(self, sft=replace(self.sft, steps=60), sft_accuracy=0.0, rankings=100,
                       ppo=replace(self.ppo, iterations=10))  # fmt: skip

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas)
        check_seed(self.seed)
        find_device(self.device)
        if self.k < 2:
            raise Refusal(f"A ranking needs --k of at least 2 responses per prompt, not {self.k}: one gives no pair.")
        if self.rankings < 1:
            raise Refusal(f"The reward model needs --rankings of at least 1, not {self.rankings}.")
        if not 0 <= self.sft_accuracy < 1:
            raise Refusal(f"--sft-accuracy must be at least 0 and below 1, not {self.sft_accuracy:g}.")
        PlackettLuce(self.kappa)
        self.network.validate()
        check_network(self.network, Arithmetic.vocabulary, prompt=6)
        self.sft.validate()
        self.fit.validate()
        self.ppo.validate()
        self.ppo.check(Arithmetic.vocabulary, critic=True)


def rows(config: Config) -> int:
    """Ledger rows that a run will have."""
    return len(config.betas) * config.ppo.iterations


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 20 + 0.12 * rows(config)


def run(config: Config) -> Iterator[Note | Row]:
    """SFT, labels, reward model, then one PPO run for each beta."""
    config = replace(config, device=find_device(config.device))
    world = Arithmetic()
    policy = yield from supervised(config, world)
    check_speaks(policy, world)
    reward = yield from reward_model(config, world, policy=policy)
    for beta in config.betas:
        arm = arm_name(beta)
        learner, reference = deepcopy(policy), deepcopy(policy).requires_grad_(False)
        generator = stage_generator(config.seed, f"ppo {arm}", device=config.device)
        critic = Critic.from_network(policy.network)
        state = PPOState(learner, reference, critic, config.ppo, generator, Leash(beta))
        with in_arm(arm):
            for step in ppo(state, reward, prompts=world.prompts, demonstrations=world.demonstrations):
                correct = float(world.correct(step.rollout).float().mean())
                yield ledger_row(
                    arm,
                    config.seed,
                    step=step,
                    gold=world.gold(step.rollout),
                    vocabulary=world.vocabulary,
                    accuracy=correct,
                )


def supervised(config: Config, world: Arithmetic) -> Generator[Note | Row, None, TransformerPolicy]:
    """Imitate correct sums until enough samples are right; returns the policy."""
    generator = stage_generator(config.seed, "sft", device=config.device)
    policy = TransformerPolicy(Transformer(config.network, generator), world.vocabulary)
    state, reached = SFTState(policy, config.sft, generator), 0.0
    for step in sft(state, world.demonstrations):
        if (step.step + 1) % 25 == 0 or state.step == config.sft.steps:
            rollout = policy.sample(world.prompts(1000, generator), 1, generator)
            reached = float(world.correct(rollout).float().mean())
            yield Note(f"SFT step {state.step}: loss {step.loss:.3f} nats per token, sampled accuracy {reached:.3f}")
            if reached >= config.sft_accuracy > 0:
                break
    if reached < config.sft_accuracy:
        raise Refusal(
            f"SFT reached a sampled accuracy of {reached:.3f} in {config.sft.steps} steps, short of "
            f"{config.sft_accuracy:g}; raise --sft.steps or lower --sft-accuracy."
        )
    return policy


def reward_model(
    config: Config, world: Arithmetic, *, policy: TransformerPolicy
) -> Generator[Note | Row, None, Counts]:
    """Rank samples of the SFT policy, split by prompt, fit one weight per digit; returns the reward."""
    generator = stage_generator(config.seed, "labels", device=config.device)
    ids, _ = world.prompts(4 * (config.rankings + HELD_OUT), generator)
    sides = torch.tensor(
        [part(text, config.seed, shares=(0.6, 0.4)) for text in world.questions(ids)], device=ids.device
    )
    learned, held = (
        labelled(config, world, policy=policy, ids=ids[sides == side][:count], generator=generator)
        for side, count in enumerate((config.rankings, HELD_OUT))
    )
    model = Counts(range(10)).to(ids.device)
    for _ in fit(FitState(model, config.fit, generator), learned):
        pass
    best = ceiling(PlackettLuce(config.kappa), held, gold=world.gold(held.rollout))
    learnt = model.weights.detach()
    even, odd = float(learnt[::2].mean()), float(learnt[1::2].mean())
    yield Note(
        f"Reward model on {len(learned)} pairs: held-out accuracy {accuracy(model, held):.3f} at a ceiling of "
        f"{best:.3f}; even digits {even:+.2f}, odd {odd:+.2f}"
    )
    return model.requires_grad_(False)


def labelled(
    config: Config, world: Arithmetic, *, policy: TransformerPolicy, ids: torch.Tensor, generator: torch.Generator
) -> Preference:
    """Sample k responses to each prompt and let the labeler rank them."""
    rollout = policy.sample((ids, torch.ones_like(ids, dtype=torch.bool)), config.k, generator)
    return pairs(PlackettLuce(config.kappa).rank(rollout, world.gold(rollout), config.k, generator))
