"""The answers recipe's labels and draws by the source's numpy streams, and the reward models fitted to them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.reinforce import ReinforceState
from killick.ops.stats import rank_correlation
from killick.preferences.labelers import BradleyTerry
from killick.recipes.answers.config import Config
from killick.rewards.fit import FitConfig, FitState, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.types import Comparison, Preference
from killick.worlds.answers import ANSWERS, PROMPTS, Answers

SHORT = 5
"""Answers 0 to 4 are short enough to have been compared often."""


@dataclass(frozen=True)
class Asked:
    """One question to a person: which of two answers is better, how likely the first is to win, and whether it did."""

    prompt: int
    first: int
    second: int
    probability: float
    won: bool


def ask(world: Answers, count: int, *, seed: int) -> Iterator[Asked]:
    """The source's questions by numpy: a prompt, two different answers of the reference, a Bradley-Terry draw."""
    rng, reference = np.random.default_rng(seed), world.reference.double().exp().numpy()
    reference = reference / reference.sum(1, keepdims=True)
    pairs = world.golds.repeat_interleave(ANSWERS, 1).flatten(), world.golds.repeat(1, ANSWERS).flatten()
    chance = BradleyTerry().probability(*pairs).view(PROMPTS, ANSWERS, ANSWERS).numpy()
    for _ in range(count):
        prompt = int(rng.integers(PROMPTS))
        first, second = map(int, rng.choice(ANSWERS, 2, replace=False, p=reference[prompt]))
        probability = float(chance[prompt, first, second])
        yield Asked(prompt, first, second, probability, bool(rng.uniform() < probability))


def compare(world: Answers, count: int, *, seed: int) -> Preference:
    """So many questions, answered."""
    asked = list(ask(world, count, seed=seed))
    first, second = (
        torch.tensor([ANSWERS * each.prompt + getattr(each, side) for each in asked]) for side in ("first", "second")
    )
    pair, won = Comparison(world.everything(), first, second), torch.tensor([each.won for each in asked])
    return Preference.hard(pair.rollout, pair.first.where(won, pair.second), pair.second.where(won, pair.first))


def shown(preference: Preference) -> list[int]:
    """How often each answer number was shown, over all prompts."""
    rows = torch.cat((preference.chosen, preference.rejected))
    return preference.rollout.responses[rows, 0].bincount(minlength=ANSWERS).tolist()


def fitted(
    world: Answers, preference: Preference, *, seed: int, settings: FitConfig
) -> tuple[Float[Tensor, "4 8"], list[float]]:
    """A reward model's score of each of the 32 answers, in deviations of the reference, and its losses, nats a pair.

    The network starts as under torch's global seed of that number.
    """
    start = torch.Generator().manual_seed(seed)
    model = Head(world.features, mlp(4, 16, generator=start, activation="tanh"))
    losses = [step.loss for step in fit(FitState(model, settings, torch.Generator()), preference)]
    everything = world.everything()
    scaled = standardise(model, everything, weights=everything.logprobs[:, 0].exp())
    return scaled(everything).view(PROMPTS, ANSWERS), losses


def learn(config: Config) -> dict[str, Any]:
    """The three reward models (full, thin, flipped) as tables of scores, and what was found on the way."""
    world = Answers()
    full = compare(world, config.comparisons, seed=config.label_seed)
    thin = compare(world, config.thin_comparisons, seed=config.thin_label_seed)
    scores, losses = {"gold": world.golds}, {}
    for name, labels in (("full", full), ("thin", thin), ("flipped", full.flipped())):
        scores[name], losses[name] = fitted(world, labels, seed=config.reward_seed, settings=config.fit)
    ranks = {name: rank_correlation(each.flatten(), world.golds.flatten()) for name, each in scores.items()}
    steps = sorted({1, *range(100, config.fit.steps, 100), config.fit.steps})
    found = {
        "shown_7": shown(full)[7],
        "loss_first": losses["full"][0],
        "loss_last": losses["full"][-1],
        "rank_correlation": ranks["full"],
        "thin_shown_7": shown(thin)[7],
        "thin_rank_correlation": ranks["thin"],
        "thin_rank_short": rank_correlation(scores["thin"][:, :SHORT].flatten(), world.golds[:, :SHORT].flatten()),
        "full_rank_short": rank_correlation(scores["full"][:, :SHORT].flatten(), world.golds[:, :SHORT].flatten()),
        "flipped_rank_correlation": ranks["flipped"],
        "reference_gold": world.expected(world.reference, world.golds),
        "best_gold": world.best,
        "shown": {"full": shown(full), "thin": shown(thin)},
        "losses": [[step, losses["full"][step - 1]] for step in steps],
    }
    return {"scores": scores, "found": found}


def numpy_sampler(state: ReinforceState, seed: int, *, n: int) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Draw as the source does: numpy's choice, `n` answers a prompt, prompts in order.

    The stream is part of no saved state: its numbers are drawn here for all steps, and each step takes its own. A
    choice takes one uniform number per answer and counts the places of the distribution function that it has reached;
    done for all prompts at once, since four calls of `choice` took a third of a step.
    """
    config = state.config
    uniform = torch.from_numpy(np.random.default_rng(seed).random((config.iterations, config.batch, n)))

    def choose(log_probs: Tensor, _: torch.Generator) -> Tensor:
        rows = np.exp(log_probs.cpu().numpy()[::n], dtype=np.float64)
        reached = (rows / rows.sum(1, keepdims=True)).cumsum(1)
        reached /= reached[:, -1:]
        answers = torch.searchsorted(torch.from_numpy(reached), uniform[state.step], right=True)
        return answers.view(-1).to(log_probs.device)

    return choose
