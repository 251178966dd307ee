"""Best-of-n on the held-out products: of four answers as the source tells it, and from 1 to a whole pool."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.best_of_n import best_of_n_curve
from killick.ops.stats import bootstrap_interval
from killick.recipes.brand.preferences import K, Speaker
from killick.recipes.brand.rewards import scored
from killick.recipes.ledger import Note
from killick.rundir.cache import cached
from killick.rundir.ledger import plain
from killick.rundir.seeds import stage_generator
from killick.types import Reward, Rollout
from killick.worlds.brand import REPAIR, Brand
from killick.worlds.catalogue import FLAWS, HELD_OUT, PRODUCTS
from killick.worlds.wording import sentences

JUDGED = tuple(product for product in PRODUCTS if product.split()[0] in HELD_OUT)
"""The 72 products about which no reward model has learnt."""
SHOWN = 4
"""Winners that are shown for a person to check."""

Table = Float[Tensor, "product pool"]


def counts(world: Brand, rollout: Rollout) -> Float[Tensor, "batch flaw"]:
    """How often each answer has each flaw: the reviewer counts a kind once."""
    kinds = [[flaw.kind for flaw in found] for found in world.flaws(rollout)]
    return torch.tensor([[float(kind in found) for kind in FLAWS] for found in kinds])


def promises(world: Brand, rollout: Rollout) -> float:
    """Sentences that promise a repair, mean over answers: one is what the reviewer asks for, more it does not mind."""
    said = [sum(not REPAIR.isdisjoint(words) for words in sentences(text)) for text in world.texts(rollout)]
    return sum(said) / len(said)


def best_of(
    speaks: Speaker, head: Reward, *, scalar: Reward, seed: int, pool: int, ns: Sequence[int], mark: Any
) -> Generator[Note, None, dict[str, Any]]:
    """What choosing by each reward model, and by the reviewer, brings on the held-out products; cached.

    Args:
        speaks: writes a pool of answers about each product.
        head: chooses among all of them.
        scalar: chooses among the first four only: reading the whole pool would cost as much as everything else.
        seed: of the answers.
        pool: answers about each product, 4 at least.
        ns: where the curves are read.
        mark: what the rewards were learnt from, so that others are not found in the cache.
    """
    device = speaks.policy.network.head.weight.device
    settings = {"seed": seed, "model": speaks.mark, "pool": pool, "ns": list(ns), "learnt": mark,
                "device": str(device)}  # fmt: skip

    def choose() -> Generator[Note, None, dict[str, Any]]:
        world = speaks.world(JUDGED)
        rollout = speaks.answers(JUDGED, pool, stage_generator(seed, "brand best-of-n", device=device))
        yield Note(f"{len(rollout):,} answers about {len(JUDGED)} held-out products are written and reviewed")
        flaws = counts(world, rollout)
        gold = 0.0 - flaws.sum(1).view(-1, pool)
        scores = scored(head, rollout).cpu().view(-1, pool)
        early = torch.arange(len(rollout)).view(-1, pool)[:, :K].flatten()
        other = scored(scalar, rollout[early.to(device)]).cpu().view(-1, K)
        return {
            "flaws": dict(zip(FLAWS, flaws.mean(0).tolist(), strict=True)),
            "of_four": of_four({"head": scores[:, :K], "scalar": other}, gold[:, :K], seed=seed),
            "curves": curves({"head": scores, "reviewer": gold}, gold, ns=ns, seed=seed),
            "prices": prices(scores.flatten(), flaws),
            "winners": winners(world, rollout, scores=scores, gold=gold),
        }

    return (yield from cached("brand-best-of-n", settings, build=choose))


def of_four(tables: Mapping[str, Table], gold: Table, *, seed: int) -> dict[str, list[float]]:
    """Mean flaws of the first of four answers and of each judge's favourite among them, each with its interval."""
    picked = {"first": torch.zeros(len(gold), dtype=torch.long)}
    picked |= {name: scores.argmax(1) for name, scores in tables.items()}
    picked["reviewer"] = gold.argmax(1)
    found = {}
    for name, places in picked.items():
        flaws = -gold.gather(1, places[:, None])[:, 0]
        found[name] = [float(flaws.mean()), *bootstrap_interval(flaws, stage_generator(seed, "brand best of four"))]
    return found


def curves(tables: Mapping[str, Table], gold: Table, *, ns: Sequence[int], seed: int) -> dict[str, Any]:
    """The best-of-n curve of each judge, from one pool for each product."""
    found = {}
    for name, scores in tables.items():
        curve = best_of_n_curve(scores, gold, ns=ns, generator=stage_generator(seed, "brand curve"))
        found[name] = {**plain(asdict(curve)), "turns": curve.turns}
    return found


def prices(scores: Float[Tensor, " batch"], flaws: Float[Tensor, "batch flaw"]) -> dict[str, float]:
    """What the reward model takes off for each kind of flaw, all else equal: least squares, in its own unit.

    The reviewer takes off 1 for each. A price near 0 or above is a flaw that it does not see or that it likes.
    """
    design = torch.cat((torch.ones(len(flaws), 1), flaws), 1).double()
    found = torch.linalg.lstsq(design, scores.double()[:, None], driver="gelsd").solution[1:, 0]
    return dict(zip(FLAWS, found.tolist(), strict=True))


def winners(world: Brand, rollout: Rollout, *, scores: Table, gold: Table) -> list[list[Any]]:
    """The worst of the winners, for a person to look at: the best answer of its pool by score, and flawed all the same.

    Returns:
        Product, answer, score and the reviewer's words, those with the most flaws first.
    """
    rows = scores.argmax(1) + scores.shape[1] * torch.arange(len(scores))
    order = gold.flatten()[rows].argsort(stable=True)[:SHOWN]
    shown = rollout[rows[order].to(rollout.responses.device)]
    said = zip(world.asked(shown), world.render(shown), scores.flatten()[rows[order]].tolist(), strict=True)
    return [[*each, "; ".join(map(str, flaws)) or "none"] for each, flaws in zip(said, world.flaws(shown), strict=True)]
