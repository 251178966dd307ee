"""The reward models of the text recipe: noisy labels, and linear heads on the mean state of an answer.

One head is the proxy. The others only watch: they learn from other labels or from another number of them, and where
they part from the proxy the policy has found something that the proxy alone likes.
"""

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from killick.ops.stats import bootstrap_interval, pair_credit
from killick.preferences.labelers import BradleyTerry, ceiling
from killick.recipes.ledger import Note
from killick.recipes.text.speaker import Answers, Speaker
from killick.rewards.fit import FitConfig, FitState, fit, standardise
from killick.rewards.head import Head
from killick.rewards.layers import linear
from killick.rundir.cache import cached
from killick.rundir.seeds import stage_generator
from killick.types import Comparison, Preference, Rollout

JUDGED = 4000
"""Held-out pairs that accuracy is read from, at most."""
PROXY = "proxy"


@dataclass(frozen=True)
class Lesson:
    """What one head learns from.

    Args:
        name: a word of its own.
        pairs: labelled pairs, each drawn once; at most as many as there are.
        labels: which draw of pairs and labels.
    """

    name: str
    pairs: int
    labels: str = "labels"


def lessons(pairs: int, *, most: int) -> list[Lesson]:
    """The proxy's, and those of three heads that watch: other labels, a fifth of them, twice as many.

    Args:
        pairs: the proxy's.
        most: pairs that there are.
    """
    few, many = max(1, pairs // 5), min(2 * pairs, most)
    return [
        Lesson(PROXY, pairs),
        Lesson("other", pairs, "other labels"),
        Lesson("few", few, "few labels"),
        Lesson("many", many, "many labels"),
    ]


@dataclass(frozen=True)
class Heads:
    """Linear heads on the features of an answer, each with mean 0 and deviation 1 on what the reference said.

    Args:
        names: the proxy's first.
        weight: of each feature.
        bias: of each head.
    """

    names: list[str]
    weight: Float[Tensor, "head hidden"]
    bias: Float[Tensor, " head"]

    def scores(self, features: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch head"]:
        """What each head says of each answer."""
        return features @ self.weight.T + self.bias

    def replaced(self, weight: Float[Tensor, " hidden"], bias: Float[Tensor, ""]) -> "Heads":
        """The same with another proxy."""
        return Heads(self.names, torch.cat((weight[None], self.weight[1:])), torch.cat((bias[None], self.bias[1:])))


class Proxy:
    """A `Reward`: what the first of some heads says. The heads may be exchanged while it is in use.

    Args:
        speaks: whose trunk reads the answers.
        heads: the first scores.
    """

    def __init__(self, speaks: Speaker, heads: Heads):
        self.speaks, self.heads = speaks, heads

    def every(self, rollout: Rollout) -> Float[Tensor, "batch head"]:
        """What each head says."""
        return self.heads.scores(self.speaks.features(rollout))

    def __call__(self, rollout: Rollout) -> Float[Tensor, " batch"]:
        """What the proxy says."""
        return self.every(rollout)[:, 0]


def every_pair(said: Answers) -> int:
    """How many pairs of answers to one prompt there are."""
    return len(said.prompts) * said.n * (said.n - 1) // 2


def drawn_pairs(said: Answers, count: int, *, generator: torch.Generator) -> Comparison:
    """Pairs of answers to one prompt, each once at most; fewer where there are not so many."""
    first, second = torch.triu_indices(said.n, said.n, 1)
    start = said.n * torch.arange(len(said.prompts))[:, None]
    chosen = torch.randperm(every_pair(said), generator=generator)[:count]
    rows = [(start + side).flatten()[chosen].to(said.gold.device) for side in (first, second)]
    return Comparison(said.rollout, *rows)


def labelled(said: Answers, lesson: Lesson, *, kappa: float, seed: int) -> Preference:
    """Pairs with the labels of a judge who sees gold and errs: P(a) = sigma(kappa (gold a - gold b))."""
    generator = stage_generator(seed, f"text {lesson.labels}")
    drawn = drawn_pairs(said, lesson.pairs, generator=generator)
    return BradleyTerry(kappa).label(drawn, said.gold, generator)


class Scaled(nn.Module):
    """Features with mean 0 and deviation 1, each by itself, on what the reference said; one that never moves is 0."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, features: Float[Tensor, "batch hidden"]):
        super().__init__()
        self.register_buffer("mean", features.mean(0))
        self.register_buffer("deviation", features.std(0).clamp(min=1e-6))

    def forward(self, features: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch hidden"]:
        """In deviations."""
        return (features - self.mean) / self.deviation


def learnt(
    features: Float[Tensor, "batch hidden"], preference: Preference, *, config: FitConfig, reference: int
) -> tuple[Float[Tensor, " hidden"], Float[Tensor, ""], float]:
    """One head fitted from zeros, as weight and bias on the raw features, and its last loss.

    Args:
        features: of every answer that a pair may name.
        preference: row numbers into them.
        config: of the fit.
        reference: the first so many rows are the reference's own; they set every scale.
    """
    generator = torch.Generator(features.device)
    scale, layer = Scaled(features[:reference]), linear(features.shape[1], 1, generator=generator)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    head = Head(lambda _: features, nn.Sequential(scale, layer))
    steps = list(fit(FitState(head, config, generator), preference))
    ours = Head(lambda _: features[:reference], head.network)
    found = standardise(ours, preference.rollout)
    weight = layer.weight[0].detach() / scale.deviation / found.deviation
    bias = (layer.bias[0].detach() - found.mean) / found.deviation - weight @ scale.mean
    return weight, bias, steps[-1].loss


def fitted_heads(
    said: Answers, held: Answers, *, config: FitConfig, taught: Sequence[Lesson], kappa: float, seed: int, mark: Any
) -> Generator[Note, None, tuple[Heads, dict[str, Any]]]:
    """The proxy and the heads that watch, and how often each is right on held-out prompts; cached.

    Args:
        said: answers that are labelled.
        held: answers that each head is judged by, with labels of their own.
        config: of each fit.
        taught: what each learns from, the proxy's first.
        kappa: 1 / noise of the labels, per unit of gold.
        seed: of the labels.
        mark: what decides the answers and their gold.
    """
    settings = {"seed": seed, "fit": asdict(config), "taught": [asdict(each) for each in taught], "kappa": kappa,
                "mark": mark}  # fmt: skip

    def learn() -> Generator[Note, None, dict[str, Any]]:
        judging = labelled(held, Lesson("held out", JUDGED, "held-out labels"), kappa=kappa, seed=seed)
        rows, found = [], {}
        for lesson in taught:
            pairs = labelled(said, lesson, kappa=kappa, seed=seed)
            weight, bias, loss = learnt(said.features, pairs, config=config, reference=len(said.features))
            rows.append((weight, bias))
            found[lesson.name] = judged(
                said.features @ weight + bias, held.features @ weight + bias, pairs=pairs, judging=judging,
                held=held, seed=seed,
            ) | {"loss": loss, "ceiling": ceiling(BradleyTerry(kappa), judging, gold=held.gold)}  # fmt: skip
        yield Note(f"{len(taught)} reward models are fitted")
        weights, biases = (torch.stack(each) for each in zip(*rows, strict=True))
        return {"weight": weights, "bias": biases, "found": found}

    saved = yield from cached("text-heads", settings, build=learn)
    device = said.features.device
    heads = Heads([each.name for each in taught], saved["weight"].to(device), saved["bias"].to(device))
    return heads, saved["found"]


def judged(
    seen: Float[Tensor, " batch"], scores: Float[Tensor, " held"], *, pairs: Preference, judging: Preference,
    held: Answers, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """How often one head is right on the pairs that it learnt and on held-out ones, with an interval over prompts."""
    right = pair_credit(scores[judging.chosen], scores[judging.rejected]).cpu()
    prompt = (judging.chosen // held.n).cpu()
    sums = torch.zeros(len(held.prompts), dtype=torch.float64).index_add_(0, prompt, right)
    counts = prompt.bincount(minlength=len(held.prompts)).double()
    interval = bootstrap_interval(sums, stage_generator(seed, "text accuracy"), counts=counts)
    learned = pair_credit(seen[pairs.chosen], seen[pairs.rejected])
    together = torch.corrcoef(torch.stack((scores, held.gold)))[0, 1]
    return {
        "pairs": len(pairs), "learned_accuracy": float(learned.mean()), "held_pairs": len(judging),
        "accuracy": float(right.mean()), "interval": list(interval), "correlation": float(together),
    }  # fmt: skip
