"""Best-of-n on the held-out prompts: what choosing by the proxy gains, beside what choosing by gold would."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from killick.algorithms.best_of_n import best_of_n_curve
from killick.recipes.text.rewards import Heads
from killick.recipes.text.speaker import Answers
from killick.rundir.ledger import plain
from killick.rundir.seeds import stage_generator


def doublings(pool: int) -> list[int]:
    """1, 2, 4, ... as far as the pool goes."""
    return [2**power for power in range(pool.bit_length())]


def curves(held: Answers, heads: Heads, *, ns: Sequence[int], seed: int) -> dict[str, Any]:
    """Two curves from one pool an held-out prompt: chosen by the proxy, and by gold.

    Args:
        held: the pools.
        heads: the first chooses.
        ns: where they are read.
        seed: of the resamples.
    """
    gold = held.gold.view(-1, held.n)
    scores = heads.scores(held.features)[:, 0].view(-1, held.n)
    found = {}
    for name, table in (("proxy", scores), ("gold", gold)):
        curve = best_of_n_curve(table, gold, ns=ns, generator=stage_generator(seed, "text best-of-n"))
        found[name] = {**plain(asdict(curve)), "turns": curve.turns}
    return found
