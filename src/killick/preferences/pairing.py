"""Which responses are compared, which pairs a ranking holds, and which side of a split a prompt is on."""

import hashlib

import torch
from jaxtyping import Float
from torch import Tensor

from killick.types import Comparison, Preference, Ranking, Refusal, Rollout


def neighbours(rollout: Rollout) -> Comparison:
    """Rows 0 and 1, 2 and 3, ...: two responses to each prompt, sampled together.

    Raises:
        Refusal: where the rows are odd in number, or two neighbours answer different prompts.
    """
    if len(rollout) % 2:
        raise Refusal(f"{len(rollout)} responses do not fall into pairs.")
    if not bool((rollout.prompts[::2] == rollout.prompts[1::2]).all()):
        raise Refusal("Neighbouring rows answer different prompts; sample two responses to each prompt.")
    rows = torch.arange(len(rollout), device=rollout.responses.device).view(-1, 2)
    return Comparison(rollout, rows[:, 0], rows[:, 1])


def pairs(ranking: Ranking) -> Preference:
    """All strict pairs of each ranking, grouped by ranking: k responses without ties give k (k - 1) / 2.

    A ranking of one response gives none, and tied responses give none between them (O-06).
    """
    k = ranking.rows.shape[1]
    better, worse = torch.triu_indices(k, k, 1, device=ranking.rows.device)
    strict = ranking.place[:, better] != ranking.place[:, worse]
    up = ranking.place[:, better] < ranking.place[:, worse]
    chosen = torch.where(up, ranking.rows[:, better], ranking.rows[:, worse])[strict]
    rejected = torch.where(up, ranking.rows[:, worse], ranking.rows[:, better])[strict]
    group = torch.arange(len(ranking), device=chosen.device)[:, None].expand_as(strict)[strict]
    return Preference.hard(ranking.rollout, chosen, rejected, group)


def extremes(rollout: Rollout, gold: Float[Tensor, " batch"], *, k: int) -> Preference:
    """Of each prompt's k responses the best against the worst: one pair a prompt, none where all are equally good.

    Among equals the first counts, so the same rollout gives the same pairs.

    Args:
        rollout: the k responses to one prompt stand together.
        gold: one number for each response.
        k: responses per prompt.

    Raises:
        Refusal: where the rows do not fall into groups of k, or a group answers several prompts.
    """
    if k < 2 or len(rollout) % k:
        raise Refusal(f"{len(rollout)} responses do not fall into groups of {k}; a best and a worst need at least 2.")
    if not bool((rollout.prompts.view(-1, k, rollout.prompts.shape[1]) == rollout.prompts[::k, None]).all()):
        raise Refusal(f"Each {k} rows that stand together must answer one prompt; sample {k} responses to each.")
    grouped = gold.view(-1, k)
    top, low = grouped.amax(1, keepdim=True), grouped.amin(1, keepdim=True)
    start = k * torch.arange(len(grouped), device=gold.device)
    # The first True of a row: argmax of a mask is free to return any of several.
    place = torch.arange(k, device=gold.device)
    best, worst = (torch.where(grouped == end, place, k).amin(1) + start for end in (top, low))
    differ = (top > low)[:, 0]
    return Preference.hard(rollout, best[differ], worst[differ], start[differ] // k)


def part(text: str, seed: int, *, shares: tuple[float, ...]) -> int:
    """Which part of a split a prompt belongs to: by its text and a seed, never by its row.

    Adding rows never moves a prompt across; texts that differ only in case or outer spaces fall together (O-12).

    Args:
        text: the prompt.
        seed: of the split.
        shares: expected share of each part, summing to 1.
    """
    if any(share < 0 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise Refusal(f"The shares of a split must be 0 or more and sum to 1, not {shares}.")
    word = hashlib.sha256(f"{seed}:{text.strip().casefold()}".encode()).digest()
    point, edge = int.from_bytes(word[:8], "big") / 2**64, 0.0
    for index, share in enumerate(shares):
        edge += share
        if point < edge:
            return index
    return len(shares) - 1
