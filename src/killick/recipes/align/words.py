"""What an alignment run found, in plain words: did gold keep its gain, and how far from the start is safe?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from killick.recipes.align.config import Config
from killick.recipes.align.look import PREFIX
from killick.recipes.ledger import Row
from killick.recipes.tables import Table

NOISE = 2.0
"""Standard errors within which nothing has moved."""
COLUMNS = {
    "proxy": "proxy",
    "gold": "gold",
    "gold_error": "± gold",
    "win": "wins",
    "kl": "KL",
    "entropy": "entropy",
    "length": "tokens",
    "finished": "finished",
}
NOTE = (
    "Means over answers to prompts that nothing was learned from, ± one standard error over prompts. Wins: the share "
    "of answers that score higher than the reference's to the same prompt (by gold where there is one; ties count "
    "half). KL in nats an answer, entropy in nats a token. Step 0 is the model as it was."
)


@dataclass(frozen=True)
class Point:
    """One look at the held-out prompts."""

    step: int
    proxy: float
    gold: float | None
    kl: float
    proxy_error: float
    gain_error: float


def points(rows: Sequence[Row], arm: str) -> list[Point]:
    """The looks of an arm, by step."""
    names = ("proxy", "gold", "kl", "proxy_error", "gain_error")
    found = [(row["step"], *(row[PREFIX + name] for name in names)) for row in looks(rows, arm)]
    return [Point(step, proxy, gold, kl, error or 0.0, gain or 0.0) for step, proxy, gold, kl, error, gain in found]


def looks(rows: Sequence[Row], arm: str) -> list[Row]:
    """The rows of an arm with a look at the held-out prompts."""
    return [row for row in rows if row["arm"] == arm and row.get(f"{PREFIX}proxy") is not None]


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each arm: every look at the held-out prompts."""
    found = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        seen = looks(rows, arm)
        kept = [name for name in COLUMNS if any(row[PREFIX + name] is not None for row in seen)]
        cells: list[list[Any]] = [[row["step"], *(row[PREFIX + name] for name in kept)] for row in seen]
        names = ["step", *(COLUMNS[name] for name in kept)]
        found.append(Table.unless_empty(f"Held-out prompts, {arm}", NOTE, names, rows=cells))
    return [table for table in found if table is not None]


def verdict(config: Config, rows: Sequence[Row]) -> str:
    """A few sentences for each arm, and what was saved."""
    arms = [arm for arm in config.leashes() if any(row["arm"] == arm for row in rows)]
    told = []
    for arm in arms:
        seen = points(rows, arm)
        words = looked(seen, config) if seen else unlooked([row for row in rows if row["arm"] == arm])
        told.append(f"{arm}: {words}" if len(arms) > 1 else words[0].upper() + words[1:])
    ends = {arm: points(rows, arm)[-1:] for arm in arms}
    golds = {arm: seen[0].gold for arm, seen in ends.items() if seen and seen[0].gold is not None}
    if len(golds) > 1 and len({f"{gold:+.2f}" for gold in golds.values()}) == 1:
        told.append(f"All ended with the same held-out gold ({next(iter(golds.values())):+.2f}).")
    elif len(golds) > 1:
        best = max(golds, key=lambda arm: golds[arm] or 0.0)
        told.append(f"{best} ended with the highest held-out gold ({golds[best]:+.2f}).")
    return " ".join(told)


def looked(seen: Sequence[Point], config: Config) -> str:
    """What the looks say of one arm."""
    first, last = seen[0], seen[-1]
    rise = f"on held-out prompts the proxy went from {first.proxy:+.2f} to {last.proxy:+.2f} at {last.kl:.1f} nats"
    if last.proxy - first.proxy <= NOISE * last.proxy_error:
        more = "more --steps or a higher --learning-rate would move it"
        return f"{rise}, no further than its noise: {more}.{unmoved_gold(seen)} {saved(seen, config)}"
    if first.gold is None or last.gold is None:
        asked = "people are asked on the labelling page" if config.gold == "people" else "read the answers"
        told = f"no gold was measured, so whether that is a gain only eyes can tell: {asked}."
        return f"{rise}; {told} {saved(seen, config)}"
    return f"{rise}, and {kept_gain(seen)} {saved(seen, config)}"


def unmoved_gold(seen: Sequence[Point]) -> str:
    """What gold did where the proxy did not move; nothing where it was not measured."""
    first, last = seen[0], seen[-1]
    if first.gold is None or last.gold is None:
        return ""
    noise = NOISE * last.gain_error
    went = f" Gold went from {first.gold:+.2f} to {last.gold:+.2f}"
    if abs(last.gold - first.gold) <= noise:
        return f"{went}, no further than its noise ({noise:.2f})."
    return f"{went}, further than its noise ({noise:.2f}), so something moves that the proxy does not see."


def kept_gain(seen: Sequence[Point]) -> str:
    """Whether gold kept what it had gained, and how far is safe."""
    first, last = seen[0], seen[-1]
    top = max(seen, key=lambda point: point.gold or 0.0 if point.gold is not None else float("-inf"))
    start, peak, end = (point.gold or 0.0 for point in (first, top, last))
    apart = (top.gain_error**2 + last.gain_error**2) ** 0.5
    went = f"gold went from {start:+.2f} to {end:+.2f}"
    where = f"{top.kl:.1f} nats, step {top.step}"
    safe = f"safe was about {top.kl:.1f} nats (the best of several looks flatters a little)"
    if end - start < -NOISE * last.gain_error:
        return f"{went}: people would like the answers less than before. This is over-optimisation; shorten the leash."
    noise = NOISE * (last if top is first else top).gain_error  # the first is the reference itself, without any
    if peak - start <= noise:
        return f"{went}, no further than the noise of these held-out prompts ({noise:.2f})."
    if peak - end > NOISE * apart and peak - end >= (peak - start) / 2:
        return (
            f"{went}, after {peak:+.2f} at {where}: it lost at least half of its gain while the proxy climbed on. This "
            f"is over-optimisation; {safe}."
        )
    if peak - end > NOISE * apart:
        return f"{went}, after {peak:+.2f} at {where}: it lost some of its gain; {safe}."
    if top.step == last.step:
        return f"{went}, its best: the gain is kept, and up to {last.kl:.1f} nats was safe here; farther was not tried."
    kept = f"the gain is kept within its noise, so up to {last.kl:.1f} nats was safe here"
    return f"{went} (at its best {peak:+.2f}, {where}): {kept}."


def kept_step(seen: Sequence[Point], config: Config) -> int:
    """The step of the look whose policy is saved; the first of equals."""
    if config.choose == "last":
        return seen[-1].step
    score = [point.proxy if config.choose == "held-out-reward" else point.gold or 0.0 for point in seen]
    return seen[max(range(len(seen)), key=score.__getitem__)].step


def saved(seen: Sequence[Point], config: Config) -> str:
    """Which policy was saved."""
    if config.choose == "last":
        return "Saved is the last policy."
    by = config.choose.replace("held-out-", "held-out ")
    return f"Saved is the policy of step {kept_step(seen, config)}, the best by {by}."


def unlooked(rows: Sequence[Row]) -> str:
    """What training prompts say, where no prompt is held out."""
    first, last = rows[0], rows[-1]
    gold = "" if last["gold"] is None else f", gold from {first['gold']:+.2f} to {last['gold']:+.2f}"
    far = last["kl_k1"] if last["kl"] is None else last["kl"]
    return (
        f"the proxy went from {first['proxy']:+.2f} to {last['proxy']:+.2f}{gold}, at {far:.1f} nats, on the very "
        "prompts that were learned from: none was held out, so nothing is known of others. Saved is the last policy."
    )
