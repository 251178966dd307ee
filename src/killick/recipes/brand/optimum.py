"""The fitted head beside the optimum of its loss, which L-BFGS finds: is what the fit stopped at the same?

With more features than pairs some weights put every pair right; then the loss has no least value, and a fit ends where
its steps do. What can be compared honestly is the optimum under a small penalty on squared weights, which exists and is
the only one: Adam and L-BFGS have to agree there, and the unpenalised fit has to decide nearly as it does.
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.losses import bradley_terry
from killick.ops.stats import pair_accuracy
from killick.rewards.fit import FitConfig, FitState, fit
from killick.rewards.head import Head
from killick.rewards.layers import linear
from killick.rewards.optimum import optimum, separated
from killick.types import Preference

PENALTY = 0.01
"""Of the comparison, on squared weights."""
STEPS = 1000
"""Of Adam under the penalty, at the rate of the fit."""


def beside_the_optimum(model: Head, config: FitConfig, *, pairs: tuple[Preference, Preference]) -> dict[str, Any]:
    """Whether the learned pairs can be separated, and a row for each way of fitting them.

    Args:
        model: after its fit; it stays as it is.
        config: of the fit.
        pairs: learned, and held out.
    """
    features = [model.encode(part.rollout) for part in pairs]
    learned, held = (each[part.chosen] - each[part.rejected] for each, part in zip(features, pairs, strict=True))
    generator = torch.Generator(learned.device).manual_seed(0)
    other = Head(model.encode, linear(learned.shape[1], 1, generator=generator))
    longer = replace(config, steps=STEPS, l2=PENALTY, batch=None)
    for _ in fit(FitState(other, longer, generator), pairs[0]):
        pass
    free = optimum(learned, l2=0.0)
    ways = {
        f"Adam, {config.steps} steps": weights(model),
        "L-BFGS": free,
        f"Adam, l2 {PENALTY:g}, {STEPS:,} steps": weights(other),
        f"L-BFGS, l2 {PENALTY:g}": optimum(learned, l2=PENALTY),
    }
    rows = [{"way": way, **decided(each, learned, held=held, fitted=weights(model))} for way, each in ways.items()]
    return {"separable": separated(learned, free), "optimum": rows}


def weights(model: Head) -> Float[Tensor, " feature"]:
    """What a linear head pays for each feature."""
    return next(model.network.parameters()).detach()[0].double()


def decided(
    direction: Float[Tensor, " feature"], learned: Float[Tensor, "pair feature"], *,
    held: Float[Tensor, "other feature"], fitted: Float[Tensor, " feature"],
) -> dict[str, float]:  # fmt: skip
    """What weights make of both kinds of pairs, and how often they decide as the fitted ones do."""
    seen, asked = learned.double() @ direction, held.double() @ direction
    level = torch.zeros_like(seen)
    return {
        "loss": float(bradley_terry(seen, level).mean()),
        "squared": float(direction.square().sum()),
        "learned_accuracy": float(pair_accuracy(seen, level)),
        "accuracy": float(pair_accuracy(asked, torch.zeros_like(asked))),
        "agreement": float(((asked > 0) == (held.double() @ fitted > 0)).double().mean()),
    }
