"""From people's labels of a world to the world's own reward model: fit, judge, save, and read back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from killick.models.weights import REWARD_FILE, read, write
from killick.ops.stats import bootstrap_interval, pair_credit
from killick.preferences.noise import Noise, noise
from killick.recipes.labelling.labels import Labels
from killick.rewards.counts import Counts
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.head import Head
from killick.rewards.layers import mlp
from killick.rewards.pooled import Pooled
from killick.rundir.durable import write_json
from killick.rundir.seeds import stage_generator
from killick.types import Preference, Refusal
from killick.worlds.answers import Answers
from killick.worlds.arithmetic import SYMBOLS
from killick.worlds.emphasis import Emphasis

FITS = {
    "arithmetic": FitConfig(steps=60, learning_rate=0.01),
    "emphasis": FitConfig(steps=600, batch=128, learning_rate=1e-3),
    "answers": FitConfig(steps=400, learning_rate=0.02),
}
"""World -> how its reward model is fitted: as its recipe does it."""
WEIGHTS, RESULTS = REWARD_FILE, "results.json"
WorldReward: TypeAlias = Counts | Pooled | Head


@dataclass(frozen=True)
class Fitted:
    """A reward model of a world and what is known of it.

    Args:
        model: the reward.
        facts: plain numbers and texts, for results.json.
    """

    model: WorldReward
    facts: dict[str, Any]


def reward_model(world: str, generator: torch.Generator) -> WorldReward:
    """The world's own reward model before its fit."""
    if world == "arithmetic":
        return Counts(range(10), generator)
    if world == "emphasis":
        return Pooled(Emphasis.vocabulary.size, 64, generator)
    return Head(Answers().features, mlp(4, 16, generator=generator, activation="tanh"))


def fit_reward(labels: Labels, world: str, *, seed: int) -> Fitted:
    """Fit the world's reward model to the labels that are not held out, and judge it by the others."""
    generator = stage_generator(seed, "reward from labels")
    model = reward_model(world, generator)
    learned, held = labels.preference.pairs(~labels.held), labels.preference.pairs(labels.held)
    for _ in fit(FitState(model, FITS[world], generator), learned):
        pass
    model.requires_grad_(False)
    each, pooled = noise(labels.verdicts)
    facts = {
        "world": world,
        "seed": seed,
        "labels": labels.used,
        "left_out": dict(labels.left_out),
        "annotators": sorted(each),
        "pairs": len(learned),
        "ties": int((labels.preference.label != 1).sum()),
        "held_pairs": int((held.label == 1).sum()),
        "held_ties": int((held.label != 1).sum()),
        "split_by": labels.unit,
        "held_units": len(labels.units[labels.held].unique()),
        **judged_by(model, held, units=labels.units[labels.held], generator=generator),
        **ceiling_facts(pooled),
        "weights": weights_of(model),
    }
    return Fitted(model, facts)


@torch.no_grad()
def judged_by(
    model: WorldReward, held: Preference, *, units: Int[Tensor, " pair"], generator: torch.Generator
) -> dict[str, Any]:
    """Accuracy over held-out pairs with a winner, and its interval over what was split."""
    return accuracy_facts(model(held.rollout), held, units=units, generator=generator)


def accuracy_facts(
    scores: Float[Tensor, " row"], held: Preference, *, units: Int[Tensor, " pair"], generator: torch.Generator
) -> dict[str, Any]:
    """How often scores are right about pairs with a winner, 95 % with all pairs of a unit drawn together.

    With soft labels: how often a label that is drawn from them would agree.
    """
    won = held.label != 0.5
    right, label = pair_credit(scores[held.chosen[won]], scores[held.rejected[won]]), held.label[won]
    right = label * right + (1 - label) * (1 - right)
    _, number = units[won].unique(return_inverse=True)
    sums = torch.zeros(int(number.max()) + 1, dtype=torch.double).index_add(0, number, right)
    low, high = bootstrap_interval(sums, generator, counts=number.bincount().double())
    return {"accuracy": float(right.mean()), "accuracy_low": low, "accuracy_high": high}


def ceiling_facts(pooled: Noise | None) -> dict[str, Any]:
    """The ceiling that the annotators' noise sets, all taken as one; None where the labels do not tell it."""
    if pooled is None:
        return {"kappa": None, "ceiling": None, "ceiling_low": None, "ceiling_high": None}
    low, high = pooled.ceiling_interval
    return {"kappa": pooled.kappa, "ceiling": pooled.ceiling, "ceiling_low": low, "ceiling_high": high}


def soft_ceiling(held: Preference) -> dict[str, Any] | None:
    """The most that can be right about soft labels, which say so themselves: their mean; None where most are sure."""
    label = held.label[held.label != 0.5]
    if bool((label == 1).double().mean() > 0.5):
        return None
    mean = float(label.mean())
    return {"kappa": None, "ceiling": mean, "ceiling_low": mean, "ceiling_high": mean}


def weights_of(model: WorldReward) -> dict[str, float] | None:
    """One weight a symbol, where the reward model has such."""
    if not isinstance(model, Counts):
        return None
    return {SYMBOLS[token]: weight for token, weight in zip(model.tokens.tolist(), model.weights.tolist(), strict=True)}


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a reward model: nothing is overwritten.

    Raises:
        Refusal: naming what is there.
    """
    for name in (WEIGHTS, RESULTS):
        if (folder / name).exists():
            raise Refusal(f"{folder / name} is there already, and nothing is overwritten; name another --out.")


def save(fitted: Fitted, folder: Path) -> None:
    """Write the weights and what is known of them into a folder.

    Raises:
        Refusal: where the folder holds a reward model already.
    """
    check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write(fitted.model, folder / WEIGHTS, settings={"world": fitted.facts["world"]})
    write_json(folder / RESULTS, fitted.facts)


def load(folder: Path) -> WorldReward:
    """The reward model that `save` wrote.

    Raises:
        Refusal: where there is none, or a tensor is missing or of another shape (O-08).
    """
    settings, tensors = read(folder / WEIGHTS)
    world = settings.get("world")
    if world not in FITS:
        raise Refusal(f"{folder / WEIGHTS} holds no reward model of a world, but {settings}.")
    model = reward_model(world, torch.Generator())
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise Refusal(f"{folder / WEIGHTS} does not fit the world {world}: {' '.join(str(error).split())}.") from error
    return model.requires_grad_(False)
