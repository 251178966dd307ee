"""Brand: a chat model, a reviewer, best-of-n and PPO. What does a reward model learn from 293 pairs, and what is lost?

The chat model that comes with killick answers 360 prompts, a reviewer counts flaws, a linear head learns from the best
against the worst of four answers. Then the head chooses among answers, and PPO optimises against it, one arm a leash.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.models.value import Critic
from killick.recipes.brand import tables as brand_tables
from killick.recipes.brand.best_of_n import best_of, counts, promises
from killick.recipes.brand.claims import CLAIMS
from killick.recipes.brand.preferences import K, Speaker, preferences, speaker, split
from killick.recipes.brand.rewards import FIT, fitted_head, fitted_scalar, marks
from killick.recipes.cells import Begun, Cell, Seen, answers_shown
from killick.recipes.claims import judge
from killick.recipes.ledger import Note, Row, arm_name, ledger_row
from killick.recipes.settings import check_betas, check_seeds, find_device
from killick.recipes.starting import leashed
from killick.recipes.tables import Table
from killick.rewards.fit import FitConfig, Standardised
from killick.types import Refusal
from killick.worlds.brand import question
from killick.worlds.catalogue import FLAWS, PRODUCTS
from killick.worlds.copywriting import WRITTEN


@dataclass(frozen=True)
class Config:
    """Settings of the brand recipe.

    Args:
        betas: the leashes, one arm each: deviations of the reward per nat; none at all leaves PPO out.
        seeds: of the answers; every arm runs once for each.
        pool: answers about each of the 72 held-out products, from which best-of-n is read.
        ns: where the curves are read, each at most the pool; 1, 2, 3, 4, 6, 8, 12, ... as far as it goes where none
            are given.
        device: auto takes a GPU where there is one.
        workers: processes at once; 0 takes one a core.
        fit: the linear head's.
        scalar_fit: the full fine-tune's.
        ppo: the optimiser's.
    """

    betas: tuple[float, ...] = (0.0, 0.1, 0.5, 2.0)
    seeds: tuple[int, ...] = (0,)
    pool: int = 64
    ns: tuple[int, ...] = ()
    device: str = "auto"
    workers: int = 0
    fit: FitConfig = FIT
    scalar_fit: FitConfig = FitConfig(steps=60, batch=16, learning_rate=1e-4)
    ppo: PPOConfig = PPOConfig(
        iterations=30, batch=64, epochs=2, minibatches=2, learning_rate=1e-4, value_learning_rate=5e-4, warmup=5
    )

    def quick(self) -> "Config":
        """The same path with a smaller pool, a shorter fine-tune and a few steps of PPO, in under a minute."""
        return replace(self, pool=8, scalar_fit=replace(self.scalar_fit, steps=10),
                       ppo=replace(self.ppo, iterations=5, batch=32))  # fmt: skip

    def reach(self) -> tuple[int, ...]:
        """Where the curves are read: two points a doubling, as far as the pool goes, where none are given."""
        steps = sorted({1, *(3 * 2**power // part for power in range(self.pool.bit_length()) for part in (1, 3))})
        return self.ns or tuple(n for n in steps if n <= self.pool)

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        if self.betas:
            check_betas(self.betas)
        check_seeds(self.seeds)
        find_device(self.device)
        if self.workers < 0:
            raise Refusal(f"--workers must be at least 0, not {self.workers}; 0 takes one a core.")
        if self.pool < K:
            raise Refusal(
                f"--pool must be at least {K}, not {self.pool}: the best of {K} answers is among its figures."
            )
        if not all(1 <= n <= self.pool for n in self.ns):
            asked = " ".join(map(str, self.ns))
            raise Refusal(f"--ns takes numbers from 1 to the --pool of {self.pool}, not {asked}.")
        self.fit.validate()
        self.scalar_fit.validate()
        self.ppo.validate()
        self.ppo.check(speaker().policy.vocabulary, critic=True, demonstrations=False)


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed; without arms one cell a seed that only prepares."""
    arms = [(arm_name(beta), config.ppo.iterations) for beta in config.betas] or [("before", 0)]
    return [Cell(arm, seed, steps) for arm, steps in arms for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run on one core of 2023, for the announcement."""
    rows = config.ppo.batch * sum(cell.steps for cell in cells(config)) / 1000
    seed = 12 + 0.14 * config.scalar_fit.steps + 0.3 * config.pool
    return 6 + seed * len(config.seeds) + 29 * rows


@dataclass(frozen=True)
class Prepared:
    """What all arms of a seed begin with."""

    speaks: Speaker
    reward: Standardised


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """Pairs, reward models and best-of-n of a seed, from the cache where they are; returns what was found."""
    speaks = speaker(config.device)
    asked = yield from preferences(speaks, seed=seed)
    pairs = split(asked, PRODUCTS)
    head, found_head = yield from fitted_head(speaks, config.fit, pairs=pairs, seed=seed)
    scalar, found_scalar = yield from fitted_scalar(speaks, config.scalar_fit, pairs=pairs, seed=seed)
    mark = [marks(speaks, fit, pairs=pairs, seed=seed) for fit in (config.fit, config.scalar_fit)]
    chosen = yield from best_of(speaks, head, scalar=scalar, seed=seed, pool=config.pool, ns=config.reach(), mark=mark)
    found = {"pairs": len(asked), "prompts": len(PRODUCTS), "head": found_head, "scalar": found_scalar, **chosen}
    first, kept, best = (found["of_four"][name][0] for name in ("first", "head", "reviewer"))
    yield Note(
        f"Seed {seed}: {len(asked)} pairs of {len(PRODUCTS)} prompts; held-out accuracy {found_head['accuracy']:.3f} "
        f"(fine-tune {found_scalar['accuracy']:.3f}); flaws {first:.2f} first, {kept:.2f} the head's best of {K}, "
        f"{best:.2f} the reviewer's"
    )
    return Prepared(speaks, head), found


class Still:
    """The state of a cell without steps: nothing in it changes."""

    step = 0

    def state_dict(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one cell, not yet moved."""
    if not cell.steps:
        return Still(), iter(())
    leash = {arm_name(beta): Leash(beta) for beta in config.betas}[cell.arm]
    policy = prepared.speaks.policy
    critic = Critic.from_network(policy.network)
    state = leashed(cell, leash, policy=policy, config=config.ppo, device=config.device, critic=critic)
    return state, watch(cell, state, prepared=prepared)


def watch(cell: Cell, state: PPOState, *, prepared: Prepared) -> Iterator[Seen]:
    """The cell's steps, the reviewer's count beside each: how many flaws, and of which kind."""
    world = prepared.speaks.world(WRITTEN)
    for step in ppo(state, prepared.reward, prompts=world.prompts):
        flaws = counts(world, step.rollout)
        own = {f"flaw_{kind}": share for kind, share in zip(FLAWS, flaws.mean(0).tolist(), strict=True)}
        own["promises"] = promises(world, step.rollout)
        gold = 0.0 - flaws.sum(1)
        row = ledger_row(cell.arm, cell.seed, step=step, gold=gold, vocabulary=world.vocabulary, **own)
        asked = [question(product) for product in world.asked(step.rollout[:6])]
        yield Seen(row, answers_shown(cell, step, world=world, prompts=asked, gold=gold))


def claims(rows: list[Row], found: dict[str, Any]) -> list[Row]:
    """The source's figures beside ours."""
    return judge(CLAIMS, rows, found=found)


def tables(rows: list[Row], found: dict[str, Any]) -> list[Table]:
    """Best of four, the reward models, their optimum, what each flaw costs, and what PPO traded."""
    return brand_tables.tables(rows, found)
