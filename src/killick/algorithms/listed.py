"""Policies over listed answers, measured exactly: what each gives, and the beta that gives the most gold."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.best_of_n import exact_law, win_rate
from killick.algorithms.tilt import tilt
from killick.ops.kl import exact_kl
from killick.types import Listed, Refusal


@dataclass(frozen=True)
class Measured:
    """What one policy over listed answers gives.

    Attributes:
        proxy: expected reward.
        kl: nats, KL(policy || reference).
        win_rate: chance that its answer's reward is above that of a reference answer, a tie counting half.
        gold: expected gold; None where nobody knows it.
        gaming: share of its answers that game the reward; None where nobody knows which do.
    """

    proxy: float
    kl: float
    win_rate: float
    gold: float | None = None
    gaming: float | None = None


def measure(policy: Float[Tensor, " answer"], table: Listed) -> Measured:
    """A policy's proxy, KL, win rate, gold and gaming share, each a sum over the answers.

    Args:
        policy: log-probs.
        table: the answers.
    """
    p = policy.exp()
    return Measured(
        float(p @ table.reward),
        float(exact_kl(policy, table.reference.log())),
        win_rate(p, table.reference, scores=table.reward),
        None if table.gold is None else float(p @ table.gold),
        None if table.gaming is None else float(p[table.gaming].sum()),
    )


def measure_tilted(table: Listed, *, beta: float) -> Measured:
    """What the optimum of E[reward] - beta KL gives (`algorithms/tilt.py`)."""
    return measure(tilt(table.reference.log(), table.reward, beta=beta), table)


def measure_best_of(table: Listed, *, n: int) -> Measured:
    """What best-of-n gives, by its exact law (`algorithms/best_of_n.py`)."""
    return measure(exact_law(table.reference, table.reward, n=n).log(), table)


def every_beta(table: Listed, count: int = 200) -> list[float]:
    """From a leash that holds everything to none, evenly on a log scale of the rewards' spread; the last is 0."""
    possible = table.reward[table.reference > 0]
    spread = float(possible.max() - possible.min()) or 1.0
    return [*(spread * torch.logspace(2, -3, count - 1, dtype=torch.float64)).tolist(), 0.0]


def best_beta(table: Listed) -> float:
    """The beta whose tilted policy has the most gold, to four digits: looked for ever closer where it is highest.

    0 means the best-scored answer alone; the first of `every_beta`, that no leash does better than the reference.

    Raises:
        Refusal: where nobody knows gold.
    """
    if table.gold is None:
        raise Refusal("The best beta needs gold, and this table has none.")
    found, gold = every_beta(table, 100), table.gold - table.gold.min()  # so that equal golds are zeros to the last bit
    for _ in range(4):
        golds = [float(tilt(table.reference.log(), table.reward, beta=beta).exp() @ gold) for beta in found]
        # Of equals the loosest leash: where the best answer alone is best, the last nats change no digit of gold.
        top = 0 if golds[0] == max(golds) else max(range(len(golds)), key=lambda place: (golds[place], place))
        below = found[min(top + 1, len(found) - 1)]
        if top == 0 or below == 0:
            return found[top]
        found = torch.linspace(found[top - 1], below, 41, dtype=torch.float64).tolist()
    return found[20]
