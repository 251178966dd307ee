"""The reward models of the emphasis recipe, and what each says inside its data and beyond.

A family is what a reward model is made of. All families of a seed learn from the same pairs and are put on the same
scale, so that they differ in nothing but how they go on where the pairs end.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.preferences.labelers import BradleyTerry, ceiling
from killick.preferences.pairing import neighbours
from killick.recipes.ledger import Note
from killick.rewards.counts import Counts
from killick.rewards.ensemble import Ensemble
from killick.rewards.fit import FitConfig, FitState, Standardised, accuracy, fit, standardise
from killick.rewards.pooled import Pooled
from killick.rundir.seeds import stage_generator
from killick.types import Policy, Preference, Rollout
from killick.worlds.emphasis import TIME, Emphasis

Family = Literal["relu", "tanh", "counts", "minimum", "mean"]
FAMILIES: tuple[Family, ...] = get_args(Family)
MEMBERS = 5
"""Networks of an ensemble, apart only in their start and in the order of their minibatches."""
SIZES = (250, 500, 1000, 2000, 4000)
"""Numbers of pairs at which the source asks how often the reward model is right."""
EACH = 512
"""Sequences of each count over which a score is averaged."""
REFERENCE = 2000
"""Samples of the SFT policy that give a reward its scale."""


@dataclass(frozen=True)
class Lesson:
    """What decides the reward models of a seed, beside the policy whose samples are compared.

    Args:
        seed: of the run.
        device: where they are fitted.
        shape: of the policy; another one speaks differently, so it has pairs of its own.
        families: which are fitted.
        pairs: to learn from.
        validation: pairs to be judged by.
        noise: gold units by which the labeler errs.
        hidden: width of a network.
        fit: of every network.
    """

    seed: int
    device: str
    shape: str
    families: tuple[Family, ...]
    pairs: int
    validation: int
    noise: float
    hidden: int
    fit: FitConfig

    def draws(self, stage: str) -> torch.Generator:
        """A generator for one stage, so that no fit depends on which others were asked for."""
        return stage_generator(self.seed, f"{stage} {self.shape}", device=self.device)


@dataclass(frozen=True)
class Evidence:
    """What all reward models of a lesson learn from, and what they are asked about."""

    learned: Preference
    held: Preference
    reference: Rollout
    probes: Rollout


def gather(lesson: Lesson, policy: Policy) -> Evidence:
    """Sample the policy, let the labeler judge pairs, and set up sequences of every count."""
    world, draws, labeler = Emphasis(), lesson.draws("labels"), BradleyTerry(1 / lesson.noise)

    def judged(pairs: int) -> Preference:
        rollout = policy.sample(world.prompts(pairs, draws), 2, draws)
        return labeler.label(neighbours(rollout), world.gold(rollout), draws)

    learned, held = judged(lesson.pairs), judged(lesson.validation)
    reference = policy.sample(world.prompts(REFERENCE, draws), 1, draws)
    return Evidence(learned, held, reference, world.holding(range(TIME + 1), EACH, draws))


def learn(lesson: Lesson, policy: Policy) -> Generator[Note, None, dict[str, Any]]:
    """Fit every family and ask each about every count; the caller's cache keeps what is returned."""
    evidence = gather(lesson, policy)
    found, families, fitted = facts(lesson, evidence), dict[str, Any](), dict[tuple[str, int], Standardised]()
    for family in lesson.families:
        for kind, number in kinds(family):
            if (kind, number) not in fitted:
                model = taught(lesson, kind, number=number, pairs=evidence.learned)
                fitted[kind, number] = standardise(model, evidence.reference)
        reward = standardise(joined(family, [fitted[which] for which in kinds(family)]), evidence.reference)
        right = accuracy(reward, evidence.held, tie_credit=0.0)
        found["families"][family] = {"accuracy": right, "score_by_count": by_count(reward(evidence.probes))}
        families[family] = reward.state_dict()
        told = f"at 12 emphasis tokens it scores {found['families'][family]['score_by_count'][-1]:+.1f}"
        yield Note(f"Reward model {family}: accuracy {right:.3f}; {told}")
    if "relu" in lesson.families:
        whole = found["families"]["relu"]["accuracy"]
        found["accuracy_by_pairs"] = accuracy_by_pairs(lesson, evidence) | {str(lesson.pairs): whole}
    return {"families": families, "found": found}


def facts(lesson: Lesson, evidence: Evidence) -> dict[str, Any]:
    """What is known before any fit: the ceiling, gold by count, and which counts the pairs hold."""
    world, labeler = Emphasis(), BradleyTerry(1 / lesson.noise)
    golds = world.gold(evidence.reference)
    return {
        "reward_pairs": len(evidence.learned),
        "reward_ceiling": ceiling(labeler, evidence.held, gold=world.gold(evidence.held.rollout)),
        "coverage": coverage(evidence.learned),
        "gold_by_count": by_count(world.gold(evidence.probes)),
        "gold_deviation": float(golds.std(correction=0)),
        "families": {},
    }


def kinds(family: Family) -> list[tuple[str, int]]:
    """The networks that a family is made of: the kind of each, and its number."""
    return [("relu", number) for number in range(MEMBERS)] if family in ("minimum", "mean") else [(family, 0)]


def network(kind: str, hidden: int, *, generator: torch.Generator) -> Counts | Pooled:
    """One network before its fit."""
    size = Emphasis.vocabulary.size
    if kind == "counts":
        return Counts(range(size), generator)
    return Pooled(size, hidden, generator, activation="tanh" if kind == "tanh" else "relu")


def taught(lesson: Lesson, kind: str, *, number: int, pairs: Preference) -> Counts | Pooled:
    """One network after its fit."""
    draws = lesson.draws(f"reward {kind} {number} on {len(pairs)}")
    model, settings = network(kind, lesson.hidden, generator=draws), lesson.fit
    if kind == "counts":
        # One weight moves at most a rate a step: at the networks' rate it would still be on its way.
        settings = replace(settings, learning_rate=10 * settings.learning_rate)
    for _ in fit(FitState(model, settings, draws), pairs):
        pass
    return model


def joined(family: Family, members: Sequence[Standardised]) -> nn.Module:
    """A family's networks as one reward, not yet on its scale."""
    return Ensemble(members, family) if family == "minimum" or family == "mean" else members[0].model


def restored(family: Family, hidden: int, *, state: dict[str, Any], device: str) -> Standardised:
    """The reward that `learn` put into the cache."""
    draws = torch.Generator(device)
    members = [Standardised(network(kind, hidden, generator=draws), 0.0, 1.0) for kind, _ in kinds(family)]
    reward = Standardised(joined(family, members), 0.0, 1.0).to(device)
    reward.load_state_dict(state)
    return reward.requires_grad_(False)


def accuracy_by_pairs(lesson: Lesson, evidence: Evidence) -> dict[str, float]:
    """How often a ReLU network is right after the first n of the same pairs, for each n below all of them."""
    return {
        str(n): accuracy(taught(lesson, "relu", number=0, pairs=evidence.learned.pairs(slice(n))), evidence.held,
                         tie_credit=0.0)
        for n in SIZES if n < lesson.pairs
    }  # fmt: skip


def coverage(preference: Preference) -> list[float]:
    """For each count 0 to 12, the share of pairs that hold it (a pair holds one count, or two)."""
    count = Emphasis().count(preference.rollout)
    held = count[torch.stack((preference.chosen, preference.rejected))]
    return [float((held == c).any(0).float().mean()) for c in range(TIME + 1)]


def by_count(values: Float[Tensor, " probe"]) -> list[float]:
    """Mean over the probes of each count."""
    means: list[float] = values.view(TIME + 1, EACH).mean(1).tolist()
    return means
