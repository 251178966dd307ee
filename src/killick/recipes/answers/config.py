"""Settings of the answers recipe, and what each of its arms is made of."""

from dataclasses import dataclass, replace
from typing import Literal

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceConfig
from killick.recipes.ledger import arm_name
from killick.recipes.settings import check_betas, check_seed, check_seeds, find_device
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from killick.worlds.answers import PROMPTS, Answers

LEASH = 0.5
"""The beta of the arm whose reference moves, and of the leash that the draws are tried on."""
Break = Literal["flipped", "moving", "ascent", "direct"]
Scores = Literal["full", "thin", "flipped", "gold"]


@dataclass(frozen=True)
class Config:
    """Settings of the answers recipe. The defaults are the source's, down to its random streams.

    Args:
        betas: the leashes under the full reward model, one arm for each and each algorithm: reward deviations per nat.
        thin_betas: the leashes under a reward model that learnt from few comparisons, one REINFORCE arm for each.
        breaks: further arms, each with one thing broken: labels flipped, a reference that moves with the policy, plain
            gradient ascent, gold itself for the reward.
        seeds: of the policies' draws; every arm runs once for each. The source's is 0.
        comparisons: labelled pairs that the full reward model learns from.
        label_seed: numpy's, of those comparisons.
        thin_comparisons: labelled pairs that the thin one learns from.
        thin_label_seed: numpy's, of those.
        reward_seed: of the reward models' start.
        every: steps between two rows of the ledger, ten times as many where an arm is ten times as long.
        draws: how many other draws of the thin labels to show beside the source's; 0 shows none.
        device: auto takes a GPU where there is one (the table is small: a CPU is faster).
        workers: processes at once; 0 takes one a core.
        fit: the reward models'.
        reinforce: the first optimiser's.
        ppo: the second's.
        ascent: the broken optimiser's. Its rate is 0.3 for each prompt, and the gradient is a mean over four prompts.
    """

    betas: tuple[float, ...] = (0.0, 0.5)
    thin_betas: tuple[float, ...] = (0.0, 0.5, 2.0)
    breaks: tuple[Break, ...] = ("flipped", "moving", "ascent", "direct")
    seeds: tuple[int, ...] = (0,)
    comparisons: int = 2000
    label_seed: int = 2
    thin_comparisons: int = 150
    thin_label_seed: int = 3
    reward_seed: int = 4
    every: int = 5
    draws: int = 20
    device: str = "auto"
    workers: int = 0
    fit: FitConfig = FitConfig(steps=400, learning_rate=0.02)
    reinforce: ReinforceConfig = ReinforceConfig()
    ppo: PPOConfig = PPOConfig(
        iterations=201,
        batch=4,
        n=64,
        epochs=3,
        learning_rate=0.03,
        decay=True,
        level="sequence",
        baseline="leave-one-out",
    )
    ascent: ReinforceConfig = ReinforceConfig(iterations=3001, learning_rate=0.3 * PROMPTS, optimiser="sgd")

    def quick(self) -> "Config":
        """The same path, shorter."""
        return replace(
            self,
            draws=5,
            reinforce=replace(self.reinforce, iterations=51),
            ppo=replace(self.ppo, iterations=51),
            ascent=replace(self.ascent, iterations=101),
        )

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas)
        check_betas(self.thin_betas or (0.0,))
        check_seeds(self.seeds)
        if len(set(self.breaks)) < len(self.breaks):
            raise Refusal(f"--breaks takes each break once, not {' '.join(self.breaks)}.")
        find_device(self.device)
        for name, least in (("comparisons", 1), ("thin_comparisons", 1), ("every", 1), ("draws", 0), ("workers", 0)):
            if getattr(self, name) < least:
                flag = name.replace("_", "-")
                raise Refusal(f"--{flag} must be at least {least}, not {getattr(self, name)}.")
        for seed in (self.label_seed, self.thin_label_seed, self.reward_seed):
            check_seed(seed)
            check_seed(seed + self.draws)
        for settings in (self.reinforce, self.ascent, self.ppo):
            if settings.batch % PROMPTS:
                raise Refusal(f"A batch must hold the {PROMPTS} prompts equally often, not {settings.batch} in all.")
            settings.validate()
        self.fit.validate()
        self.ppo.check(Answers.vocabulary, critic=False, demonstrations=False)


@dataclass(frozen=True)
class Arm:
    """One arm: its leash, whose scores it climbs, how, and whether its reference moves with it."""

    beta: float
    scores: Scores
    optimiser: ReinforceConfig | PPOConfig
    moving: bool = False


def arms(config: Config) -> dict[str, Arm]:
    """Every arm by name."""
    plain = config.reinforce
    found = {}
    for beta in config.betas:
        found[arm_name(beta, "reinforce")] = Arm(beta, "full", plain)
        found[arm_name(beta, "ppo")] = Arm(beta, "full", config.ppo)
    found |= {arm_name(beta, "thin"): Arm(beta, "thin", plain) for beta in config.thin_betas}
    broken = {
        "flipped": (arm_name(0, "flipped"), Arm(0, "flipped", plain)),
        "moving": (arm_name(LEASH, "thin", "moving"), Arm(LEASH, "thin", plain, moving=True)),
        "ascent": (arm_name(0, "thin", "ascent"), Arm(0, "thin", config.ascent)),
        "direct": (arm_name(0, "direct"), Arm(0, "gold", plain)),
    }
    return found | dict(broken[name] for name in config.breaks)
