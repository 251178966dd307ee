"""Emphasis: a proxy that extrapolates. What happens past the edge of the preference data?

SFT on a corpus, 4,000 noisy pairs of its samples, a bag-of-tokens reward model, then PPO at sequence level.
"""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy, check_network
from killick.models.transformer import Transformer, TransformerConfig
from killick.preferences.labelers import BradleyTerry, ceiling
from killick.preferences.pairing import neighbours
from killick.recipes.ledger import Note, Row, arm_name, in_arm, ledger_row
from killick.recipes.settings import check_betas, check_seed, find_device
from killick.rewards.fit import FitConfig, FitState, Standardised, accuracy, fit, standardise
from killick.rewards.pooled import Pooled
from killick.rundir import stage_generator
from killick.types import Refusal, check_speaks
from killick.worlds.emphasis import Emphasis


@dataclass(frozen=True)
class Config:
    """Settings of the emphasis recipe.

    Args:
        betas: the leashes, one arm each: reward deviations per nat.
        seed: every stage draws from its own stream of this number.
        pairs: labelled pairs that the reward model learns from.
        validation: labelled pairs that it is judged by.
        noise: gold units by which a labeler errs; P(a wins) = sigma((gold a - gold b) / noise).
        hidden: width of the reward model.
        device: auto takes a GPU where there is one.
        network: the policy's shape.
        sft: supervised fine-tuning.
        fit: the reward model's.
        ppo: the optimiser's.
    """

    betas: tuple[float, ...] = (0.0,)
    seed: int = 42
    pairs: int = 4000
    validation: int = 2000
    noise: float = 0.1
    hidden: int = 64
    device: str = "auto"
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
        check_seed(self.seed)
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


def rows(config: Config) -> int:
    """Ledger rows that a run will have."""
    return len(config.betas) * config.ppo.iterations


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 42 + 0.28 * rows(config)


def run(config: Config) -> Iterator[Note | Row]:
    """SFT, pairs, reward model, then one PPO run for each beta."""
    config = replace(config, device=find_device(config.device))
    world = Emphasis()
    policy = yield from supervised(config, world)
    check_speaks(policy, world)
    reward = yield from reward_model(config, world, policy=policy)
    for beta in config.betas:
        arm = arm_name(beta)
        learner, reference = deepcopy(policy), deepcopy(policy).requires_grad_(False)
        generator = stage_generator(config.seed, f"ppo {arm}", device=config.device)
        state = PPOState(learner, reference, None, config.ppo, generator, Leash(beta))
        with in_arm(arm):
            for step in ppo(state, reward, prompts=world.prompts):
                count = float(world.count(step.rollout).float().mean())
                yield ledger_row(
                    arm,
                    config.seed,
                    step=step,
                    gold=world.gold(step.rollout),
                    vocabulary=world.vocabulary,
                    emphasis=count,
                )


def supervised(config: Config, world: Emphasis) -> Generator[Note | Row, None, TransformerPolicy]:
    """Imitate the corpus; returns the policy."""
    generator = stage_generator(config.seed, "sft", device=config.device)
    policy = TransformerPolicy(Transformer(config.network, generator), world.vocabulary)
    for step in sft(SFTState(policy, config.sft, generator), world.demonstrations):
        if (step.step + 1) % 100 == 0:
            yield Note(f"SFT step {step.step + 1}: loss {step.loss:.3f} nats per token")
    rollout = policy.sample(world.prompts(8000, generator), 1, generator)
    gold, many = float(world.gold(rollout).mean()), float((world.count(rollout) > 3).float().mean())
    yield Note(f"SFT policy: gold {gold:.3f}, more than three emphasis tokens in {many:.2%} of its samples")
    return policy


def reward_model(
    config: Config, world: Emphasis, *, policy: TransformerPolicy
) -> Generator[Note | Row, None, Standardised]:
    """Label pairs of samples, fit a bag of tokens, scale it on the SFT policy; returns the reward."""
    generator = stage_generator(config.seed, "labels", device=config.device)
    labeler = BradleyTerry(1 / config.noise)
    learned, held = (
        labeler.label(neighbours(rollout), world.gold(rollout), generator)
        for rollout in (
            policy.sample(world.prompts(n, generator), 2, generator) for n in (config.pairs, config.validation)
        )
    )
    generator = stage_generator(config.seed, "reward model", device=config.device)
    model = Pooled(world.vocabulary.size, config.hidden, generator)
    for _ in fit(FitState(model, config.fit, generator), learned):
        pass
    best = ceiling(labeler, held, gold=world.gold(held.rollout))
    yield Note(
        f"Reward model on {len(learned)} pairs: accuracy {accuracy(model, held, tie_credit=0):.3f} on {len(held)} "
        f"others, at a ceiling of {best:.3f}"
    )
    return standardise(model, policy.sample(world.prompts(2000, generator), 1, generator))
