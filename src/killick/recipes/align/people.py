"""Gold from people for an alignment run: the saved policy's held-out answers beside the reference's, to be judged."""

from collections.abc import Sequence

from killick.recipes.align.config import Config
from killick.recipes.align.words import kept_step, points
from killick.recipes.ledger import Row
from killick.recipes.scores.people import Asked


def questions(config: Config, rows: Sequence[Row], *, samples: Sequence[Row]) -> list[Asked]:
    """One pair for each held-out prompt and arm: the first answer of the policy that is saved, and the reference's.

    Args:
        config: the run's.
        rows: its ledger.
        samples: its answers; those to one look stand in order, the first of each prompt before the second.
    """
    found = []
    for arm in config.leashes():
        step = kept_step(points(rows, arm), config)
        first: dict[str, Row] = {}
        for row in samples:
            if row["arm"] == arm and row["step"] == step:
                first.setdefault(row["prompt"], row)
        group = f"{arm}, step {step}"
        found += [Asked(row["prompt"], row["response"], row["reference"], group) for row in first.values()]
    return found
