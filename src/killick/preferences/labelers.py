"""Simulated judges with known noise, and the accuracy that no reward model can beat on their labels."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from killick.types import Comparison, Labeler, Preference, Ranking, Refusal, Rollout


def check_kappa(kappa: float) -> None:
    """Refuse a judge without an opinion.

    Raises:
        Refusal: unless kappa is positive and finite.
    """
    if not 0 < kappa < float("inf"):
        raise Refusal(f"A labeler's kappa must be a positive number, not {kappa:g}; the larger, the less noise.")


@dataclass(frozen=True)
class BradleyTerry:
    """Judges pairs: P(first above second) = sigma(kappa (gold of first - gold of second)).

    Args:
        kappa: 1 / noise, per gold unit.

    Source: Bradley and Terry 1952.
    """

    kappa: float = 1.0

    def __post_init__(self) -> None:
        check_kappa(self.kappa)

    def probability(self, first: Float[Tensor, " pair"], second: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
        """Exact probability that the first is put above the second."""
        return torch.sigmoid(self.kappa * (first - second))

    def label(self, comparison: Comparison, gold: Float[Tensor, " batch"], generator: torch.Generator) -> Preference:
        """Draw a winner for each pair; `gold` has one number for each row of the comparison's rollout."""
        first, second = comparison.first, comparison.second
        chance = self.probability(gold[first], gold[second])
        wins = torch.rand(chance.shape, generator=generator, device=chance.device) < chance
        return Preference.hard(comparison.rollout, first.where(wins, second), second.where(wins, first))


@dataclass(frozen=True)
class PlackettLuce:
    """Ranks k responses by kappa gold + Gumbel(0, 1) noise: within a ranking every pair is Bradley-Terry.

    Args:
        kappa: 1 / noise, per gold unit.

    Source: Plackett 1975; Luce 1959; the Gumbel form: Yellott 1977.
    """

    kappa: float = 2.0

    def __post_init__(self) -> None:
        check_kappa(self.kappa)

    def probability(self, first: Float[Tensor, " pair"], second: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
        """Exact probability that the first is put above the second, whoever else is ranked."""
        return torch.sigmoid(self.kappa * (first - second))

    def rank(self, rollout: Rollout, gold: Float[Tensor, " batch"], k: int, generator: torch.Generator) -> Ranking:
        """Rank every `k` rows that stand together (one prompt's responses), best first.

        Raises:
            Refusal: at k < 2, or where the rows do not fall into groups of k.
        """
        if k < 2:
            raise Refusal(f"A ranking needs k of at least 2 responses per prompt, not {k}: one response gives no pair.")
        if len(gold) % k:
            raise Refusal(f"{len(gold)} responses do not fall into rankings of {k}.")
        if not bool((rollout.prompts.view(len(gold) // k, k, -1) == rollout.prompts[::k, None]).all()):
            raise Refusal(f"Each {k} rows that stand together must answer one prompt; sample {k} responses to each.")
        uniform = torch.rand(gold.shape, generator=generator, device=gold.device).clamp(min=1e-30)
        noisy = self.kappa * gold - (-uniform.log()).log()
        order = noisy.view(-1, k).argsort(1, descending=True)
        rows = order + k * torch.arange(len(order), device=gold.device)[:, None]
        place = torch.arange(k, device=gold.device).expand_as(rows)
        return Ranking(rollout, rows, place)


def ceiling(labeler: Labeler, preference: Preference, *, gold: Float[Tensor, " batch"]) -> float:
    """Expected accuracy of the best possible judge of these pairs: mean of max(p, 1 - p); a coin flip counts half."""
    chance = labeler.probability(gold[preference.chosen], gold[preference.rejected])
    return float(torch.maximum(chance, 1 - chance).mean())
