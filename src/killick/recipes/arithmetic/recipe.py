"""Arithmetic: the InstructGPT recipe in miniature. What does PPO do to a reward model that counts digits?

SFT on correct sums until half of the samples are right, rankings by a labeler who rewards even last digits, one weight
per digit, then PPO with a critic, one arm for each leash.
"""

from collections.abc import Generator, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy
from killick.models.reader import Reader
from killick.models.transformer import TransformerConfig
from killick.models.value import Critic
from killick.preferences.labelers import PlackettLuce, ceiling
from killick.preferences.pairing import pairs, part
from killick.recipes.arithmetic import asking as arithmetic_asking
from killick.recipes.arithmetic.claims import CLAIMS
from killick.recipes.cells import Begun, Cell, Seen, answers_shown
from killick.recipes.claims import judge
from killick.recipes.ledger import Note, Row, arm_name, ledger_row
from killick.recipes.settings import check_betas, check_training
from killick.recipes.starting import fine_tuned, leashed
from killick.recipes.tables import Table
from killick.rewards.counts import Counts
from killick.rewards.fit import FitConfig, FitState, accuracy, fit
from killick.rewards.scalar import Scalar
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Preference, Refusal
from killick.worlds.arithmetic import EOS, Arithmetic

HELD_OUT = 400
"""Held-out ranked prompts: 2,400 pairs, a standard error of 0.01 on their accuracy."""
ADAPTIVE_START = 0.1
"""Where the beta of the arm with a target KL begins."""


@dataclass(frozen=True)
class Config:
    """Settings of the arithmetic recipe.

    Args:
        betas: the leashes, one arm each: reward units per nat.
        ptx_betas: further arms, in which every step also imitates correct sums.
        target_kl: adds an arm whose beta starts at 0.1 and is steered to this KL, nats per response.
        seeds: every arm runs once for each.
        rankings: ranked prompts that the reward model learns from.
        k: responses per ranking.
        kappa: 1 / noise of the labeler.
        temperature: of the samples that are ranked; 1.5 shows malformed ones too.
        see_eos: let the reward model also count <eos>: its blind spot closes if the rankings show malformed ones.
        overtrained: fit the reward model three times as long at five times the rate.
        critic: compare with a critic's expectation; --no-critic compares scores with the batch mean.
        critic_from: the critic starts as a copy of the SFT policy with a head of zeros, or of a reward model that
            reads whole answers, fitted to the same rankings; the proxy stays the digit weights.
        asking: also compare what to ask people next: at random, by an ensemble's disagreement, by Fisher information;
            a table and a figure of accuracy against labels spent.
        sft_accuracy: stop SFT when this share of sampled answers is right.
        device: auto takes a GPU where there is one.
        workers: processes at once; 0 takes one a core.
        network: the policy's and the critic's shape.
        sft: supervised fine-tuning.
        fit: the reward model's.
        scalar_fit: that of the reward model from which the critic starts.
        ppo: the optimiser's.
    """

    betas: tuple[float, ...] = (0.0, 0.1, 1.0)
    ptx_betas: tuple[float, ...] = (0.1,)
    target_kl: float | None = None
    seeds: tuple[int, ...] = (0,)
    rankings: int = 600
    k: int = 4
    kappa: float = 2.0
    temperature: float = 1.0
    see_eos: bool = False
    overtrained: bool = False
    critic: bool = True
    critic_from: Literal["policy", "reward"] = "policy"
    asking: bool = False
    sft_accuracy: float = 0.5
    device: str = "auto"
    workers: int = 0
    network: TransformerConfig = field(default_factory=lambda: TransformerConfig(14, 14, context=10, final_norm=False))
    sft: SFTConfig = SFTConfig(steps=1000, batch=256, learning_rate=2e-3, warmup=50)
    fit: FitConfig = FitConfig(steps=60, learning_rate=0.01)
    scalar_fit: FitConfig = FitConfig(steps=100, batch=32, learning_rate=3e-4)
    ppo: PPOConfig = PPOConfig(
        iterations=120, batch=64, epochs=4, learning_rate=1e-4, value_learning_rate=5e-4, warmup=20, gae_lambda=0.5
    )

    def quick(self) -> "Config":
        """The same path, smaller, in well under a minute."""
        return replace(self, sft=replace(self.sft, steps=60), sft_accuracy=0.0, rankings=100,
                       ppo=replace(self.ppo, iterations=10))  # fmt: skip

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas or self.ptx_betas or ((ADAPTIVE_START,) if self.target_kl else ()))
        check_betas(self.ptx_betas or (0.0,))
        Leash(ADAPTIVE_START, self.target_kl).validate()
        if self.k < 2:
            raise Refusal(f"A ranking needs --k of at least 2 responses per prompt, not {self.k}: one gives no pair.")
        if self.rankings < 1:
            raise Refusal(f"--rankings must be at least 1, not {self.rankings}.")
        if not 0 <= self.sft_accuracy < 1:
            raise Refusal(f"--sft-accuracy must be at least 0 and below 1, not {self.sft_accuracy:g}.")
        if not 0 < self.temperature < float("inf"):
            raise Refusal(f"--temperature must be a positive number, not {self.temperature:g}.")
        PlackettLuce(self.kappa)
        check_training(self, Arithmetic.vocabulary, prompt=6, critic=self.critic, demonstrations=True)
        self.scalar_fit.validate()
        self.check_critic()

    def check_critic(self) -> None:
        """Refuse a critic that cannot start as it is asked to.

        Raises:
            Refusal: where there is none, or its network cannot read a whole answer.
        """
        if self.critic_from == "reward" and not self.critic:
            raise Refusal("--critic-from reward needs a critic; take --no-critic away, or --critic-from.")
        needed = 6 + Arithmetic.vocabulary.time
        if self.critic_from == "reward" and self.network.context < needed:
            raise Refusal(
                f"--critic-from reward reads whole answers: a context of {needed}, not {self.network.context}."
            )


def arms(config: Config) -> dict[str, tuple[Leash, PPOConfig]]:
    """What each arm is on."""
    pulled = replace(config.ppo, ptx_coefficient=config.ppo.ptx_coefficient or 1.0)
    found = {arm_name(beta): (Leash(beta), config.ppo) for beta in config.betas}
    found |= {arm_name(beta, "ptx"): (Leash(beta), pulled) for beta in config.ptx_betas}
    if config.target_kl is not None:
        name = arm_name(ADAPTIVE_START, f"target={config.target_kl:g}")
        found[name] = (Leash(ADAPTIVE_START, config.target_kl), config.ppo)
    return found


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed; all seeds of an arm before the next arm, so that seeds prepare side by side."""
    return [Cell(arm, seed, config.ppo.iterations) for arm in arms(config) for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    return 7 + (10 + 10 * config.asking) * len(config.seeds) + 0.1 * sum(cell.steps for cell in cells(config))


@dataclass(frozen=True)
class Prepared:
    """What all arms of a seed begin with."""

    policy: TransformerPolicy
    reward: Counts
    critic: Critic | None


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """SFT and reward model of a seed, from the cache where they are; returns them and what was found on the way."""
    policy, tuned = yield from starting_policy(config, seed)
    settings = starting_settings(config, seed)
    labels = ("rankings", "k", "kappa", "temperature", "see_eos", "overtrained")
    settings |= {name: getattr(config, name) for name in labels}
    settings |= {"network": asdict(config.network), "fit": asdict(config.fit)}
    seen = [*range(10), EOS] if config.see_eos else range(10)
    reward = Counts(seen, stage_generator(seed, "reward model", device=config.device))
    learnt = yield from cached(
        "arithmetic-reward", settings, build=lambda: learn(config, seed, policy=policy, model=reward)
    )
    reward.load_state_dict(learnt["model"])
    found = tuned | learnt["found"]
    weights = ", ".join(f"{name} {weight:+.2f}" for name, weight in found["weights"].items())
    yield Note(
        f"Seed {seed}: SFT accuracy {found['sft_accuracy']:.3f}; reward model accuracy "
        f"{found['reward_accuracy']:.3f} at a ceiling of {found['reward_ceiling']:.3f}; weights {weights}"
    )
    if config.asking:
        study = arithmetic_asking.Study(seed, config.device, config.kappa, config.fit)
        asked = yield from cached(
            "arithmetic-asking", settings | asdict(study), build=partial(arithmetic_asking.compared, study, policy)
        )
        found["asking"] = asked["found"]
    critic = Critic.from_network(policy.network) if config.critic else None
    if config.critic_from == "reward":
        critic, whole = yield from judging_critic(config, seed, policy=policy, settings=settings)
        found |= whole
    return Prepared(policy, reward.requires_grad_(False), critic), found


def starting_settings(config: Config, seed: int) -> dict[str, Any]:
    """All that decides the starting policy, beside its network."""
    return {"seed": seed, "device": config.device, "sft": asdict(config.sft), "sft_accuracy": config.sft_accuracy}


def starting_policy(config: Config, seed: int) -> Generator[Note, None, tuple[TransformerPolicy, dict[str, Any]]]:
    """The policy that imitated sums, from the cache where it is, and what was found on the way."""
    settings, build = starting_settings(config, seed), partial(supervise, config)
    return (yield from fine_tuned("arithmetic-sft", settings, network=config.network, world=Arithmetic(), build=build))


def supervise(
    config: Config, policy: TransformerPolicy, *, generator: torch.Generator
) -> Generator[Note, None, dict[str, Any]]:
    """Imitate correct sums until enough samples are right."""
    world, state, reached = Arithmetic(), SFTState(policy, config.sft, generator), 0.0
    for step in sft(state, world.demonstrations):
        # Accuracy climbs steeply once it has begun to: closer looks near the mark keep it from overshooting.
        every = 2 if reached > 0.6 * config.sft_accuracy else 5 if reached > 0.2 * config.sft_accuracy else 25
        if state.step % every == 0 or state.step == config.sft.steps:
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
    return {"policy": policy.state_dict(), "found": {"sft_accuracy": reached, "sft_steps": state.step}}


def learn(
    config: Config, seed: int, *, policy: TransformerPolicy, model: Counts
) -> Generator[Note, None, dict[str, Any]]:
    """Fit one weight per token to rankings of samples."""
    learned, held, generator = ranked(config, seed, policy=policy)
    settings = FitConfig(steps=300, learning_rate=0.05) if config.overtrained else config.fit
    for step in fit(FitState(model, settings, generator), learned):
        if step.step % 100 == 99:
            yield Note(f"Reward model step {step.step + 1}: loss {step.loss:.4f} nats per pair")
    names = [str(token) if token != EOS else "<eos>" for token in model.tokens.tolist()]
    found = {
        "reward_accuracy": accuracy(model, held),
        "reward_ceiling": ceiling(PlackettLuce(config.kappa), held, gold=Arithmetic().gold(held.rollout)),
        "reward_pairs": len(learned),
        "weights": dict(zip(names, model.weights.tolist(), strict=True)),
    }
    return {"model": model.state_dict(), "found": found}


def judging_critic(
    config: Config, seed: int, *, policy: TransformerPolicy, settings: dict[str, Any]
) -> Generator[Note, None, tuple[Critic, dict[str, Any]]]:
    """A critic that starts from a reward model which reads whole answers, fitted to the same rankings."""
    generator = stage_generator(seed, "scalar reward model", device=config.device)
    reader = Reader(policy.network)
    model = Scalar(reader, config.network.hidden, generator)

    def learn_whole() -> Generator[Note, None, dict[str, Any]]:
        learned, held, _ = ranked(config, seed, policy=policy)
        for step in fit(FitState(model, config.scalar_fit, generator), learned):
            if step.step % 50 == 49:
                yield Note(f"Scalar reward model step {step.step + 1}: loss {step.loss:.4f} nats per pair")
        return {"model": model.state_dict(), "found": {"scalar_accuracy": accuracy(model, held)}}

    more = {"scalar_fit": asdict(config.scalar_fit)}
    saved = yield from cached("arithmetic-scalar", settings | more, build=learn_whole)
    model.load_state_dict(saved["model"])
    yield Note(
        f"Seed {seed}: scalar reward model accuracy {saved['found']['scalar_accuracy']:.3f}; the critic copies it"
    )
    return Critic.from_network(reader.network, head=model.head), saved["found"]


def ranked(config: Config, seed: int, *, policy: TransformerPolicy) -> tuple[Preference, Preference, torch.Generator]:
    """Rank samples, split by prompt: those to learn from, those held out, and the stream as it then stands.

    The same at every call: each reward model of a seed learns from the same rankings.
    """
    world, generator = Arithmetic(), stage_generator(seed, "labels", device=config.device)
    ids, _ = world.prompts(4 * (config.rankings + HELD_OUT), generator)
    sides = torch.tensor([part(text, seed, shares=(0.6, 0.4)) for text in world.questions(ids)], device=ids.device)
    speaker = TransformerPolicy(policy.network, world.vocabulary, config.temperature)
    learned, held = (
        labelled(config, world, policy=speaker, ids=ids[sides == side][:count], generator=generator)
        for side, count in enumerate((config.rankings, HELD_OUT))
    )
    return learned, held, generator


def labelled(
    config: Config, world: Arithmetic, *, policy: TransformerPolicy, ids: torch.Tensor, generator: torch.Generator
) -> Preference:
    """Sample k responses to each prompt and let the labeler rank them."""
    rollout = policy.sample((ids, torch.ones_like(ids, dtype=torch.bool)), config.k, generator)
    return pairs(PlackettLuce(config.kappa).rank(rollout, world.gold(rollout), config.k, generator))


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one cell, not yet moved."""
    leash, settings = arms(config)[cell.arm]
    critic = deepcopy(prepared.critic)
    state = leashed(cell, leash, policy=prepared.policy, config=settings, device=config.device, critic=critic)
    return state, watch(cell, state, reward=prepared.reward)


def watch(cell: Cell, state: PPOState, *, reward: Counts) -> Iterator[Seen]:
    """The cell's steps with gold beside them."""
    world = Arithmetic()
    for step in ppo(state, reward, prompts=world.prompts, demonstrations=world.demonstrations):
        gold = world.gold(step.rollout)
        right = float(world.correct(step.rollout).float().mean())
        row = ledger_row(cell.arm, cell.seed, step=step, gold=gold, vocabulary=world.vocabulary, accuracy=right)
        asked = world.questions(step.rollout.prompts[:6])
        yield Seen(row, answers_shown(cell, step, world=world, prompts=asked, gold=gold))


def claims(rows: list[Row], found: dict[str, Any]) -> list[Row]:
    """The source's figures beside ours."""
    return judge(CLAIMS, rows, found=found)


def tables(_: list[Row], found: dict[str, Any]) -> list[Table]:
    """What to ask next, where it was compared."""
    return arithmetic_asking.tables(found)
