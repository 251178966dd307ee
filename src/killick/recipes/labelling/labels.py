"""People's labels of a world, from the rows of a store to pairs over one rollout, split by prompt.

A world with a handful of prompts is split by item instead: by its prompt and all its responses together. The newest
revision of each label counts. Skipped and flagged ones are left out and counted, a tie is a label of one half, a
ranking is all its pairs, in one group.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from killick.preferences.pairing import part
from killick.preferences.storing.records import Item, Label
from killick.preferences.verdicts import Verdict, place_of
from killick.recipes.labelling.items import judged, judged_rollout
from killick.types import Preference, Refusal, Rollout

HELD_OUT = 0.25
"""Expected share of prompts, or items, that the reward model is judged by."""
FEWEST = 10
"""Prompts, or items, with a preference on either side of the split, below which no accuracy means anything."""


@dataclass(frozen=True)
class Labels:
    """What a store says of one world.

    Args:
        preference: pairs with a winner, and ties; pairs of one label share a group.
        unit: what the split keeps on one side: "prompts", or "items" in a world that has fewer than 20 prompts.
        units: that of each pair, by number.
        held: which pairs are held out.
        verdicts: the same labels as a table, for the annotators' noise.
        used: labels that became pairs.
        left_out: reason -> labels.
    """

    preference: Preference
    unit: str
    units: Int[Tensor, " pair"]
    held: Bool[Tensor, " pair"]
    verdicts: list[Verdict]
    used: int
    left_out: Counter[str]


def read_labels(rows: Iterable[tuple[Item, Label]], world: str, *, seed: int) -> Labels:
    """Labels of a store as pairs over one rollout, split by prompt or by item.

    Args:
        rows: as `Store.export` gives them: the newest revision of each label.
        world: the world's name.
        seed: of the split.

    Raises:
        Refusal: where there is no label, none of this world, or too few on a side of the split.
    """
    items, kept, left_out = dict[int | None, Item](), list[tuple[Item, Label]](), Counter[str]()
    for item, label in rows:
        reason = unfit(item, label, world=world)
        left_out.update([reason] if reason else [])
        if not reason:
            items.setdefault(item.id, item)
            kept.append((item, label))
    if not kept:
        raise Refusal(nothing(left_out, world))
    rollout = judged_rollout([dict(item.metadata) for item in items.values()], judged(world).world().vocabulary)
    return gathered(kept, items, rollout=rollout, unit=unit_of(world), seed=seed, left_out=left_out)


def unit_of(world: str) -> str:
    """What to split a world by: prompts, or items where two sides could not have enough prompts each."""
    ids, _ = judged(world).world().prompts(100 * FEWEST, torch.Generator().manual_seed(0))
    return "prompts" if len(ids.unique(dim=0)) >= 2 * FEWEST else "items"


def content(item: Item, unit: str) -> str:
    """What a split goes by: the prompt's tokens, and for items those of all responses, in whichever order they came."""
    responses = sorted(item.metadata["responses"]) if unit == "items" else []
    return "; ".join(" ".join(map(str, ids)) for ids in (item.metadata["prompt"], *responses))


def unfit(item: Item, label: Label, *, world: str) -> str | None:
    """Why a label is left out; None where it is not."""
    if item.metadata.get("world") != world:
        return f"of {item.metadata.get('world') or 'no world'}"
    if label.judgement.skipped:
        return "skipped"
    return "flagged" if label.judgement.flags else None


def nothing(left_out: Counter[str], world: str) -> str:
    """What to say where no label is left."""
    if not left_out:
        return f"The store holds no label yet; label some with killick label --world {world}."
    found = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    return f"The store holds no label of the world {world} that can be learned from, only {found}."


def gathered(
    kept: list[tuple[Item, Label]], items: dict[int | None, Item], *, rollout: Rollout, unit: str, seed: int,
    left_out: Counter[str],
) -> Labels:  # fmt: skip
    """Every pair of every label, in the rows of the items' rollout."""
    start, row = dict[int | None, int](), 0
    for number, item in items.items():
        start[number], row = row, row + len(item.candidates)
    units, verdicts, pairs = dict[str, int](), list[Verdict](), list[tuple[float, ...]]()
    for group, (item, label) in enumerate(kept):
        place, first = place_of(label.judgement.ranking), start[item.id]
        verdicts.append(Verdict(label.annotator, str(item.id), place, label.order))
        own = units.setdefault(content(item, unit), len(units))
        for i, j in combinations(sorted(range(len(place)), key=place.__getitem__), 2):
            pairs.append((first + i, first + j, 0.5 if place[i] == place[j] else 1.0, group, own))
    columns = torch.tensor(pairs, dtype=torch.double)
    chosen, rejected, groups, number = columns[:, [0, 1, 3, 4]].long().T
    sides = torch.tensor([part(text, seed, shares=(1 - HELD_OUT, HELD_OUT)) == 1 for text in units])
    preference = Preference(rollout, chosen, rejected, columns[:, 2].float(), torch.zeros(len(pairs)), groups)
    labels = Labels(preference, unit, number, sides[number], verdicts, len(kept), left_out)
    check_enough(labels)
    return labels


def check_enough(labels: Labels) -> None:
    """Refuse what is too little to learn from and to be judged by.

    Raises:
        Refusal: at fewer than ten prompts, or items, with a preference on either side.
    """
    won = labels.preference.label == 1
    learned, held = (len(labels.units[won & side].unique()) for side in (~labels.held, labels.held))
    if min(learned, held) < FEWEST:
        raise Refusal(
            f"Too few labels: preferences on {learned} {labels.unit} to learn from and {held} to be judged by, and "
            f"each takes {FEWEST} or more; label about {4 * FEWEST + 20} {labels.unit}."
        )
