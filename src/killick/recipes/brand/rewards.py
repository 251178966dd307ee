"""The brand recipe's reward models: a linear head on frozen states, and a whole language model with one output.

The head is what a learner fits; a full fine-tune of a copy with a scalar head is what production does. Both see the
same pairs.
"""

from collections.abc import Generator
from dataclasses import asdict
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.models.policy import TransformerPolicy
from killick.models.reader import Reader, summary
from killick.ops.stats import bootstrap_interval, pair_credit
from killick.recipes.brand.optimum import beside_the_optimum
from killick.recipes.brand.preferences import Speaker
from killick.recipes.ledger import Note
from killick.rewards.fit import FitConfig, FitState, Standardised, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import linear
from killick.rewards.scalar import Scalar
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Preference, Reward, Rollout

LIMIT = 64
"""Tokens of prompt and answer that the head reads."""
FIT = FitConfig(steps=201, learning_rate=1e-2)
"""The head's, as the source has it: full batches, Adam."""
CEILING = 1.0
"""The most that a reward model can be right on these pairs: the reviewer counts, so labels have no noise, and answers
that tie make no pair."""
Pairs = tuple[Preference, Preference]
"""To learn from, to be judged by: two parts of one rollout."""


def fresh_head(policy: TransformerPolicy) -> Head:
    """The linear head before its fit: started under torch seed 0, as the source does, whatever the run's seed."""
    generator = torch.Generator(policy.network.head.weight.device).manual_seed(0)
    features = partial(summary, Reader(policy.network), limit=LIMIT)
    return Head(features, linear(2 * policy.network.config.hidden, 1, generator=generator))


def fresh_scalar(policy: TransformerPolicy, *, seed: int) -> Scalar:
    """A copy of the chat model with one output, before its fit."""
    generator = stage_generator(seed, "brand scalar head", device=policy.network.head.weight.device)
    return Scalar(Reader(policy.network), policy.network.config.hidden, generator)


def fitted_head(
    speaks: Speaker, config: FitConfig, *, pairs: Pairs, seed: int
) -> Generator[Note, None, tuple[Standardised, dict[str, Any]]]:
    """The head after its fit, on the scale of the answers that were reviewed, and what was found; cached."""
    model = fresh_head(speaks.policy)

    def learn() -> Generator[Note, None, dict[str, Any]]:
        rollout = pairs[0].rollout
        states = model.encode(rollout)  # read once: all that follows is about these answers
        known = Head(lambda _: states, model.network)
        loss = yield from descend(known, config, pairs=pairs, name="Reward head", seed=seed)
        found = judged(known(rollout).detach(), pairs, seed=seed) | {"loss": loss}
        found |= beside_the_optimum(known, config, pairs=pairs)
        return {"model": standardise(known, rollout).state_dict(), "found": found}

    settings = marks(speaks, config, pairs=pairs, seed=seed)
    saved = yield from cached("brand-head", settings, build=learn)
    scaled = Standardised(model.requires_grad_(False), 0.0, 1.0).to(speaks.policy.network.head.weight.device)
    scaled.load_state_dict(saved["model"])
    return scaled, saved["found"]


def fitted_scalar(
    speaks: Speaker, config: FitConfig, *, pairs: Pairs, seed: int
) -> Generator[Note, None, tuple[Scalar, dict[str, Any]]]:
    """The fine-tuned copy after its fit on the same pairs, and what was found; cached."""
    model = fresh_scalar(speaks.policy, seed=seed)

    def learn() -> Generator[Note, None, dict[str, Any]]:
        loss = yield from descend(model, config, pairs=pairs, name="Scalar fine-tune", seed=seed)
        rows = torch.cat([numbers for part in pairs for numbers in (part.chosen, part.rejected)]).unique()
        scores = torch.zeros(len(pairs[0].rollout), device=rows.device)
        scores[rows] = scored(model, pairs[0].rollout[rows])
        return {"model": model.state_dict(), "found": judged(scores, pairs, seed=seed) | {"loss": loss}}

    saved = yield from cached("brand-scalar", marks(speaks, config, pairs=pairs, seed=seed), build=learn)
    model.load_state_dict(saved["model"])
    return model.requires_grad_(False), saved["found"]


def marks(speaks: Speaker, config: FitConfig, *, pairs: Pairs, seed: int) -> dict[str, Any]:
    """All that decides a fit."""
    numbers = [part.rollout.responses[torch.cat((part.chosen, part.rejected))].tolist() for part in pairs]
    return {"seed": seed, "model": speaks.mark, "fit": asdict(config), "pairs": numbers,
            "device": str(pairs[0].chosen.device)}  # fmt: skip


def descend(
    model: Head | Scalar, config: FitConfig, *, pairs: Pairs, name: str, seed: int
) -> Generator[Note, None, float]:
    """Fit on the first pairs, telling how it goes; returns the last loss."""
    generator = stage_generator(seed, f"brand {name}", device=pairs[0].chosen.device)
    for step in fit(FitState(model, config, generator), pairs[0]):
        if step.step % 50 == 0 or step.step == config.steps - 1:
            yield Note(f"{name} step {step.step}: loss {step.loss:.4f} nats per pair")
    return step.loss


@torch.no_grad()
def scored(reward: Reward, rollout: Rollout, *, rows: int = 256) -> Float[Tensor, " batch"]:
    """Scores of more responses than memory would hold at once, those of like length together."""
    order = rollout.lengths.argsort()
    return torch.cat([reward(rollout[part]) for part in order.split(rows)])[order.argsort()]


def judged(scores: Float[Tensor, " batch"], pairs: Pairs, *, seed: int) -> dict[str, Any]:
    """How often scores are right, and the interval over the held-out pairs, each of which is about another product."""
    seen, held = (pair_credit(scores[part.chosen], scores[part.rejected]).cpu() for part in pairs)
    interval = bootstrap_interval(held, stage_generator(seed, "brand accuracy"))
    return {
        "accuracy": float(held.mean()), "interval": list(interval), "ceiling": CEILING, "held_pairs": len(held),
        "learned_accuracy": float(seen.mean()), "learned_pairs": len(seen),
    }  # fmt: skip
