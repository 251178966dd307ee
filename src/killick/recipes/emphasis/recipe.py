"""Emphasis: a proxy that extrapolates. What happens past the edge of the preference data?

SFT on a corpus, 4,000 noisy pairs of its samples, a bag-of-tokens reward model, then PPO at sequence level. An arm is a
leash, a family of reward models and a shape of the policy; the source has one family and one shape.
"""

from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy
from killick.models.transformer import TransformerConfig
from killick.recipes.cells import Begun, Cell, Seen, answers_shown
from killick.recipes.claims import judge
from killick.recipes.emphasis import tables as emphasis_tables
from killick.recipes.emphasis.claims import CLAIMS
from killick.recipes.emphasis.rewards import FAMILIES, Family, Lesson, learn, restored
from killick.recipes.ledger import Note, Row, arm_name, ledger_row
from killick.recipes.settings import check_betas, check_choice, check_training
from killick.recipes.starting import fine_tuned, leashed
from killick.recipes.tables import Table
from killick.rewards.fit import FitConfig, Standardised
from killick.rundir.cache import cached
from killick.types import Refusal
from killick.worlds.emphasis import Emphasis

Shape = Literal["source", "llama"]
SHAPES: tuple[Shape, ...] = get_args(Shape)


@dataclass(frozen=True)
class Config:
    """Settings of the emphasis recipe.

    Args:
        betas: the leashes: reward deviations per nat.
        families: the reward models: a ReLU or a tanh network on the mean embedding, a weight for each token, the
            minimum or the mean of five ReLU networks.
        shapes: the policies: the source's shape, or Llama's of the same sizes; every beta meets every family and shape.
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

    betas: tuple[float, ...] = (0.0, 0.5, 2.0)
    families: tuple[Family, ...] = ("relu",)
    shapes: tuple[Shape, ...] = ("source",)
    seeds: tuple[int, ...] = (42, 43, 44)
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
        """The same path at one seed with smaller batches and longer steps: the same shapes in under a minute."""
        return replace(self, seeds=self.seeds[:1], sft=replace(self.sft, steps=200, batch=128),
                       ppo=replace(self.ppo, iterations=40, batch=128, learning_rate=1.5e-4))  # fmt: skip

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas)
        check_choice("families", self.families, known=FAMILIES)
        check_choice("shapes", self.shapes, known=SHAPES)
        if min(self.pairs, self.validation, self.hidden) < 1:
            asked = f"{self.pairs}, {self.validation} and {self.hidden}"
            raise Refusal(f"--pairs, --validation and --hidden must be at least 1, not {asked}.")
        if not 0 < self.noise < float("inf"):
            raise Refusal(f"--noise must be a positive number, not {self.noise:g}.")
        check_training(self, Emphasis.vocabulary, prompt=1, critic=False, demonstrations=False)


def arms(config: Config) -> dict[str, tuple[float, Family, Shape]]:
    """Every beta with every family and shape; what the source has stays out of the name."""
    found = {}
    for beta, family, shape in product(config.betas, config.families, config.shapes):
        parts = [part for part in (family, shape) if part not in ("relu", "source")]
        found[arm_name(beta, *parts)] = (beta, family, shape)
    return found


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed; all seeds of an arm before the next arm, so that seeds prepare side by side."""
    return [Cell(arm, seed, config.ppo.iterations) for arm in arms(config) for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    rows = config.ppo.batch * sum(cell.steps for cell in cells(config)) / 1000
    seed = 2 + config.sft.steps * config.sft.batch / 8000 + 4 * len(config.families)
    return 8 + len(config.seeds) * len(config.shapes) * seed + 0.78 * rows


@dataclass(frozen=True)
class Prepared:
    """What all arms of a seed begin with, by shape, and by shape and family."""

    policies: dict[Shape, TransformerPolicy]
    rewards: dict[tuple[Shape, Family], Standardised]


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """SFT and reward models of a seed for each shape, from the cache where they are; what was found is by shape."""
    ready, found = Prepared({}, {}), dict[str, Any]()
    for shape in config.shapes:
        found[shape] = yield from prepare_shape(config, seed, shape=shape, ready=ready)
    return ready, found


def prepare_shape(config: Config, seed: int, *, shape: Shape, ready: Prepared) -> Generator[Note, None, dict[str, Any]]:
    """Put the policy and the rewards of one shape into `ready`; returns what was found on the way."""
    policy, tuned = yield from starting_policy(config, seed, shape=shape)
    lesson = Lesson(seed, config.device, shape, config.families, config.pairs, config.validation, config.noise,
                    config.hidden, config.fit)  # fmt: skip
    settings = starting_settings(config, seed) | {
        "network": asdict(shaped(config.network, shape)), "lesson": asdict(lesson)
    }  # fmt: skip
    learnt = yield from cached("emphasis-reward", settings, build=partial(learn, lesson, policy))
    ready.policies[shape] = policy
    for family, state in learnt["families"].items():
        ready.rewards[shape, family] = restored(family, config.hidden, state=state, device=config.device)
    found: dict[str, Any] = tuned | learnt["found"]
    right = ", ".join(f"{family} {each['accuracy']:.3f}" for family, each in found["families"].items())
    yield Note(
        f"Seed {seed}, {shape}: base gold {found['base_gold']:.3f}, more than three emphasis tokens in "
        f"{found['beyond']:.2%}; reward model accuracy {right} at a ceiling of {found['reward_ceiling']:.3f}"
    )
    return found


def starting_settings(config: Config, seed: int) -> dict[str, Any]:
    """All that decides the starting policy, beside its network."""
    return {"seed": seed, "device": config.device, "sft": asdict(config.sft)}


def starting_policy(
    config: Config, seed: int, *, shape: Shape
) -> Generator[Note, None, tuple[TransformerPolicy, dict[str, Any]]]:
    """The policy that imitated the corpus, from the cache where it is, and what was found on the way."""
    settings, network = starting_settings(config, seed), shaped(config.network, shape)
    build = partial(supervise, config)
    return (yield from fine_tuned("emphasis-sft", settings, network=network, world=Emphasis(), build=build))


def shaped(network: TransformerConfig, shape: Shape) -> TransformerConfig:
    """The network as it is, or Llama's shape in the same sizes."""
    if shape == "source":
        return network
    sizes = {name: getattr(network, name) for name in ("hidden", "layers", "heads", "feed_forward")}
    return TransformerConfig.llama(network.inputs, network.outputs, network.context, **sizes)


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


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one cell, not yet moved."""
    beta, family, shape = arms(config)[cell.arm]
    state = leashed(cell, Leash(beta), policy=prepared.policies[shape], config=config.ppo, device=config.device)
    return state, watch(cell, state, reward=prepared.rewards[shape, family])


def watch(cell: Cell, state: PPOState, *, reward: Standardised) -> Iterator[Seen]:
    """The cell's steps with gold beside them, and how much of the rollout has left the data."""
    world = Emphasis()
    for step in ppo(state, reward, prompts=world.prompts):
        gold, count = world.gold(step.rollout), world.count(step.rollout)
        own = {"emphasis": float(count.float().mean()), "beyond": float((count > 3).float().mean())}
        row = ledger_row(cell.arm, cell.seed, step=step, gold=gold, vocabulary=world.vocabulary, **own)
        yield Seen(row, answers_shown(cell, step, world=world, prompts=["<bos>"] * 6, gold=gold))


def claims(rows: list[Row], found: dict[str, Any]) -> list[Row]:
    """The source's figures beside ours."""
    return judge(CLAIMS, rows, found=found)


def tables(rows: list[Row], found: dict[str, Any]) -> list[Table]:
    """What the source prints, and where each arm left the data."""
    return emphasis_tables.tables(rows, found)
