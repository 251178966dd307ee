"""Worlds as simulated annotators labelled them, for tests of what is learned from a store."""

import torch

from killick.preferences.labelers import PlackettLuce
from killick.preferences.storing.records import Item, Judgement, Label
from killick.recipes.labelling.items import item, judged, judged_rollout, world_items
from killick.types import Rollout
from killick.worlds.arithmetic import EOS, Arithmetic
from killick.worlds.emphasis import Emphasis
from straight import done


def arithmetic_items(count: int, *, k: int = 2, seed: int = 0) -> list[Item]:
    """Sums whose k answers share their first digit and differ in the last one, as those of an imperfect adder do."""
    world, draws = Arithmetic(), torch.Generator().manual_seed(seed)
    ids, mask = world.prompts(count, draws)
    last = torch.stack([torch.randperm(10, generator=draws)[:k] for _ in range(count)]).flatten()
    first = torch.randint(1, 10, (count,), generator=draws).repeat_interleave(k)
    responses = torch.stack((first, last, torch.full_like(last, EOS)), 1)
    seen = torch.ones_like(responses, dtype=torch.bool)
    rollout = Rollout(ids.repeat_interleave(k, 0), mask.repeat_interleave(k, 0), responses, seen,
                      torch.zeros(responses.shape), seen[:, 0])  # fmt: skip
    return items_of("arithmetic", world.questions(ids), texts=world.render(rollout), rollout=rollout)


def emphasis_items(count: int, *, seed: int = 0) -> list[Item]:
    """Pairs of twelve tokens at random, all under the world's one prompt."""
    world, draws = Emphasis(), torch.Generator().manual_seed(seed)
    rollout = world.rollout(torch.randint(24, (2 * count, 12), generator=draws))
    assert torch.equal(rollout.prompts, world.prompts(2 * count, draws)[0])
    return items_of("emphasis", ["Say something."] * count, texts=world.render(rollout), rollout=rollout)


def answers_items(count: int) -> list[Item]:
    """Pairs as `killick label --world answers` asks them, under the world's four prompts."""
    made = done(world_items("answers", count))
    return [
        Item(each["prompt"], tuple(each["responses"]), "pair", metadata=each["metadata"], id=number)
        for number, each in enumerate(made, 1)
    ]


def items_of(world: str, prompts: list[str], *, texts: list[str], rollout: Rollout) -> list[Item]:
    """Items as they stand in a store, numbered from 1."""
    k = len(texts) // len(prompts)
    made = []
    for number, prompt in enumerate(prompts):
        rows = torch.arange(k * number, k * number + k)
        plain = item(world, prompt, texts=[texts[row] for row in rows], rollout=rollout[rows])
        made.append(
            Item(prompt, tuple(plain["responses"]), "pair" if k == 2 else "ranking", metadata=plain["metadata"],
                 id=number + 1)
        )  # fmt: skip
    return made


def rankings(items: list[Item], *, kappa: float, seed: int) -> list[tuple[tuple[int, ...], ...]]:
    """What an annotator of known noise says of each item."""
    world = judged(str(items[0].metadata["world"])).world()
    rollout = judged_rollout([dict(each.metadata) for each in items], world.vocabulary)
    k = len(items[0].candidates)
    ranked = PlackettLuce(kappa).rank(rollout, world.gold(rollout), k, torch.Generator().manual_seed(seed))
    return [tuple((place % k,) for place in row) for row in ranked.rows.tolist()]


def labels(items: list[Item], *, annotators: int, kappa: float = 2.0) -> list[tuple[Item, Label]]:
    """Every annotator's label of every item, as a store exports them."""
    said = [rankings(items, kappa=kappa, seed=seed) for seed in range(annotators)]
    order = tuple(range(len(items[0].candidates)))
    return [
        (each, Label(int(each.id or 0), f"annotator {who}", 0, "label", Judgement(mine[place], 1.0), order, 0, 0.0))
        for place, each in enumerate(items) for who, mine in enumerate(said)
    ]  # fmt: skip
