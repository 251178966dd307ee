"""Text: a real language model, 1,000 noisy labels, a learned reward model. When does PPO start to hack it, and how?

SmolLM2 goes on with beginnings of sentences. People, here a formula, want it warm but sincere: no gushing, nothing said
twice. A reward model learns that from noisy comparisons; best-of-n and PPO then optimise against what it has learnt.
"""

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.models.prompting import PromptSet
from killick.models.trunk import TopValue
from killick.recipes.cells import Begun, Cell, Seen
from killick.recipes.claims import judge
from killick.recipes.fetching import found as model_folder
from killick.recipes.ledger import Note, Row, arm_name, ledger_row
from killick.recipes.scores.loading import load_score
from killick.recipes.settings import check_betas, check_seeds, find_device
from killick.recipes.tables import Table
from killick.recipes.text import tables as text_tables
from killick.recipes.text.best_of_n import curves, doublings
from killick.recipes.text.claims import CLAIMS
from killick.recipes.text.prompts import BEGINNINGS, HELD_OUT, LEARNT, drawn
from killick.recipes.text.relabel import Relabelled
from killick.recipes.text.rewards import Heads, Proxy, fitted_heads, lessons
from killick.recipes.text.speaker import Answers, Speaker, answers, speaker
from killick.recipes.text.watching import Watch
from killick.rewards.fit import FitConfig
from killick.rundir.seeds import stage_generator
from killick.types import Refusal


@dataclass(frozen=True)
class Config:
    """Settings of the text recipe.

    Args:
        model: a folder of the Llama layout, or smollm2, which killick models get smollm2 fetches.
        betas: the leashes, one arm each: deviations of the reward per nat.
        relabel: adds an arm without a leash whose own answers are labelled at every evaluation, and its reward model
            fitted anew on all labels.
        gold: what people want: sincere (VADER's sentiment, less for repeats and for gushing) or vader alone, which
            counts words as the reward model does, so nothing is hacked.
        pairs: labelled pairs that the reward model learns from.
        seeds: of answers, labels and arms; every arm runs once for each.
        learnt: prompts that are labelled and trained on, of 192.
        held_out: prompts about other things, of 112, on which everything is judged.
        n: answers to each prompt, from which pairs are drawn.
        pool: answers to each held-out prompt, from which best-of-n is read.
        samples: answers to each held-out prompt at an evaluation.
        every: rollouts from one evaluation to the next.
        time: tokens of an answer at most.
        spoken: tokens that may be said, the most probable printable ones; the end token comes on top.
        temperature: of policy and reference alike.
        train_layers: at the top of the model, that PPO trains; the reward model reads the states below them.
        kappa: 1 / noise of a label, per unit of gold; P(a wins) = sigma(kappa (gold a - gold b)).
        device: auto takes a GPU where there is one.
        workers: processes at once; 0 takes one a core.
        fit: the reward model's.
        ppo: the optimiser's.
    """

    model: str = "smollm2"
    betas: tuple[float, ...] = (0.0, 0.1)
    relabel: bool = False
    gold: Literal["sincere", "vader"] = "sincere"
    pairs: int = 1000
    seeds: tuple[int, ...] = (0,)
    learnt: int = 96
    held_out: int = 48
    n: int = 16
    pool: int = 64
    samples: int = 4
    every: int = 6
    time: int = 20
    spoken: int = 8192
    temperature: float = 0.8
    train_layers: int = 6
    kappa: float = 4.0
    device: str = "auto"
    workers: int = 0
    fit: FitConfig = FitConfig(steps=200, learning_rate=5e-3, l2=0.1)
    ppo: PPOConfig = PPOConfig(
        iterations=25,
        batch=64,
        epochs=2,
        minibatches=2,
        learning_rate=3e-4,
        value_learning_rate=3e-3,
        adam_betas=(0.9, 0.95),
    )

    def quick(self) -> "Config":
        """The same path with fewer prompts, answers and rollouts, in about three minutes: too short to see a hack."""
        return replace(self, learnt=32, held_out=16, n=8, pool=16, samples=2, every=2, pairs=400,
                       ppo=replace(self.ppo, iterations=5, batch=32))  # fmt: skip

    def validate(self) -> None:
        """Refuse settings that cannot run.

        Raises:
            Refusal: naming the field.
        """
        check_betas(self.betas or ((0.0,) if self.relabel else ()))
        check_seeds(self.seeds)
        find_device(self.device)
        if self.workers < 0:
            raise Refusal(f"--workers must be at least 0, not {self.workers}; 0 takes one a core.")
        least = {"learnt": 1, "held_out": 2, "n": 2, "pool": 2, "samples": 1, "every": 1, "time": 3, "spoken": 2}
        for name, floor in least.items():
            if getattr(self, name) < floor:
                raise Refusal(f"--{name.replace('_', '-')} must be at least {floor}, not {getattr(self, name)}.")
        for name, nouns in (("learnt", LEARNT), ("held_out", HELD_OUT)):
            most = len(nouns) * len(BEGINNINGS)
            if getattr(self, name) > most:
                raise Refusal(f"--{name.replace('_', '-')} must be at most {most}, not {getattr(self, name)}.")
        if self.samples > self.pool:
            raise Refusal(f"--samples must be at most the --pool of {self.pool}, not {self.samples}.")
        if not 1 <= self.pairs <= self.most_pairs():
            raise Refusal(
                f"--pairs must be between 1 and {self.most_pairs()}, the pairs of {self.n} answers to {self.learnt} "
                f"prompts, not {self.pairs}."
            )
        if not 0 < self.temperature < float("inf") or not 0 < self.kappa < float("inf"):
            raise Refusal(
                f"--temperature and --kappa must be positive numbers, not {self.temperature:g} and {self.kappa:g}."
            )
        load_score(self.gold, flag="--gold")
        self.fit.validate()
        self.ppo.validate()
        if self.ppo.level == "sequence" or self.ppo.ptx_coefficient:
            raise Refusal(
                "This recipe has a critic and no demonstrations: leave --ppo.level and --ppo.ptx-coefficient."
            )
        folder = model_folder(self.model)
        if not (folder / "config.json").is_file():
            raise Refusal(f"--model {self.model} is no model folder; killick models get smollm2 fetches one.")
        depth = json.loads((folder / "config.json").read_bytes()).get("num_hidden_layers", self.train_layers)
        if not 1 <= self.train_layers <= depth:
            raise Refusal(
                f"--train-layers must lie in 1..{depth}, the layers of --model {self.model}, not {self.train_layers}."
            )

    def most_pairs(self) -> int:
        """Pairs of answers to one prompt that there are."""
        return self.learnt * self.n * (self.n - 1) // 2


RELABELLED = arm_name(0.0, "relabel")


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed; all seeds of an arm before the next arm."""
    arms = [arm_name(beta) for beta in config.betas] + [RELABELLED] * config.relabel
    return [Cell(arm, seed, config.ppo.iterations) for arm in arms for seed in config.seeds]


def seconds(config: Config) -> float:
    """Rough CPU seconds of a run with SmolLM2 on one core of 2023, for the announcement."""
    drawn = (config.learnt * config.n + config.held_out * config.pool) * config.time / 20
    seen = -(-config.ppo.iterations // config.every) - 1
    arm = config.ppo.iterations * config.ppo.batch * 0.1 + seen * config.held_out * config.samples * 0.085
    return 20 + 0.034 * drawn * len(config.seeds) + arm * config.time / 20 * len(cells(config))


@dataclass(frozen=True)
class Prepared:
    """What all arms of a seed begin with."""

    speaks: Speaker
    said: Answers
    held: Answers
    heads: Heads


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[Prepared, dict[str, Any]]]:
    """Spoken tokens, answers, reward models and best-of-n of a seed, from the cache where they are."""
    learnt, held_out = drawn(LEARNT, config.learnt), drawn(HELD_OUT, config.held_out)
    speaks, coverage = yield from speaker(
        model_folder(config.model), prompts=learnt, layers=config.train_layers, time=config.time,
        temperature=config.temperature, spoken=config.spoken, device=config.device,
    )  # fmt: skip
    gold = load_score(config.gold, flag="--gold")
    said = yield from answers(speaks, learnt, n=config.n, seed=seed, part="learnt", gold=gold)
    held = yield from answers(speaks, held_out, n=config.pool, seed=seed, part="held-out", gold=gold)
    sizes = [config.learnt, config.n, config.held_out, config.pool, config.time, config.temperature]
    mark = {"model": speaks.mark, "gold": config.gold, "layers": config.train_layers, "answers": sizes,
            "spoken": speaks.settings["spoken"]}  # fmt: skip
    heads, found_heads = yield from fitted_heads(
        said, held, config=config.fit, taught=lessons(config.pairs, most=config.most_pairs()), kappa=config.kappa,
        seed=seed, mark=mark,
    )  # fmt: skip
    found: dict[str, Any] = {
        "gold": config.gold,
        "coverage": coverage,
        "heads": found_heads,
        "reference": {"learnt_gold": float(said.gold.mean()), "held_gold": float(held.gold.mean()),
                      "finished": float(held.rollout.finished.float().mean())},
        "best_of_n": curves(held, heads, ns=doublings(config.pool), seed=seed),
    }  # fmt: skip
    proxy = found_heads["proxy"]
    yield Note(
        f"Seed {seed}: {proxy['pairs']:,} labels of {len(said.texts):,} answers; held-out accuracy "
        f"{proxy['accuracy']:.3f} at a ceiling of {proxy['ceiling']:.3f}; gold of the reference "
        f"{found['reference']['held_gold']:.2f}"
    )
    return Prepared(speaks, said, held, heads), found


def begin(config: Config, cell: Cell, *, prepared: Prepared) -> Begun:
    """PPO of one cell, not yet moved."""
    speaks = prepared.speaks
    beta = {arm_name(beta): beta for beta in config.betas}.get(cell.arm, 0.0)
    # The arm that is labelled on draws as the one without: until its first refit the two are one run.
    generator = stage_generator(cell.seed, f"text ppo {arm_name(beta)}", device=config.device)
    critic = TopValue(speaks.trunk, generator).to(config.device)
    state = PPOState(speaks.policy(), speaks.reference, critic, config.ppo, generator, Leash(beta))
    proxy = Proxy(speaks, prepared.heads)
    learnt = PromptSet(drawn(LEARNT, config.learnt), speaks.texts, limit=10**6)
    gold = load_score(config.gold, flag="--gold")
    watch = Watch(
        cell, arm_name(beta), speaks, gold=gold, proxy=proxy, learnt=learnt, held=prepared.held, samples=config.samples,
        every=config.every,
    )  # fmt: skip
    if cell.arm != RELABELLED:
        return state, seen(watch, state)
    relabelled = Relabelled(state, proxy, prepared.said, fit=config.fit, kappa=config.kappa, pairs=config.pairs)
    return relabelled, seen(watch, state, relabelled=relabelled)


def seen(watch: Watch, state: PPOState, *, relabelled: Relabelled | None = None) -> Iterator[Seen]:
    """The cell's steps with gold beside them, and an evaluation now and then."""
    steps = ppo(state, watch.proxy, prompts=watch.learnt.source)
    while state.step < state.config.iterations:
        now = state.step
        held, answers = watch.held_out(now, state.policy)
        if relabelled is not None and now and not now % watch.every:
            relabelled.refit(watch.cell.seed, now)
        step = next(steps)
        for optimiser in (state.optimiser, state.value_optimiser):
            optimiser.zero_grad()  # gradients would only take memory until the next update
        own, told, gold = watch.told(now, step.rollout)
        if relabelled is not None:
            relabelled.take(step.rollout, gold)
        row = ledger_row(watch.cell.arm, watch.cell.seed, step=step, gold=gold,
                         vocabulary=watch.speaks.reference.vocabulary, **own, **held)  # fmt: skip
        yield Seen(row, told + answers)


def claims(rows: list[Row], found: dict[str, Any]) -> list[Row]:
    """The trial's figures beside ours, where the gold and the number of labels are the trial's."""
    alike = all((stages["gold"], stages["heads"]["proxy"]["pairs"]) == ("sincere", 1000) for stages in found.values())
    return judge(CLAIMS, rows, found=found) if alike else []


def tables(rows: list[Row], found: dict[str, Any]) -> list[Table]:
    """The reward models, what held-out prompts show, the hack in words, best-of-n."""
    return text_tables.tables(rows, found)
