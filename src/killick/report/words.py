"""What the numbers of a run say, in sentences."""

from typing import Any

import numpy as np

from killick.report.reading import Arm, Row, Shown


def best(arm: Arm) -> tuple[int, float] | None:
    """Step and height of the largest gold, smoothed over five rows."""
    if not arm.has("gold"):
        return None
    smooth = arm.smooth("gold")
    place = int(np.nanargmax(smooth))
    return int(arm.steps[place]), float(smooth[place])


def parted(arm: Arm) -> bool:
    """Whether gold fell from its best by more than its noise while the proxy did not fall.

    Noise is the deviation of gold around its smoothed curve; four of it count as more.
    """
    top = best(arm)
    if top is None or not arm.has("proxy"):
        return False
    gold, proxy = arm.smooth("gold"), arm.smooth("proxy")
    gold, proxy, rest = gold[np.isfinite(gold)], proxy[np.isfinite(proxy)], arm.mean("gold") - arm.smooth("gold")
    noise = float(np.sqrt(np.nanmean(rest**2)))
    fall, range_ = top[1] - gold[-1], float(gold.max() - gold.min())
    then = arm.smooth("proxy")[int(np.searchsorted(arm.steps, top[0]))]
    return bool(fall > 4 * noise + 0.01 * range_ and proxy[-1] >= then)


def number(value: Any, digits: int = 2) -> str:
    """A number as a person reads it; a dash for none."""
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if value and abs(value) < 10.0**-digits:
        return f"{value:.1g}"
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def arm_words(arm: Arm, kl: str) -> str:
    """One arm in two sentences: where proxy, gold and KL ended, and whether they parted."""
    top = best(arm)
    ends = {column: number(arm.final(column)[0]) for column in ("proxy", "gold", kl)}
    if top is None:
        return f"Proxy ends at {ends['proxy']}, {ends[kl]} nats from the reference; no gold was measured."
    told = (
        f"Gold is at its best ({number(top[1])}) around iteration {top[0]} and ends at {ends['gold']}, "
        f"while the proxy ends at {ends['proxy']}, {ends[kl]} nats from the reference."
    )
    if parted(arm):
        return f"{told} Past that best the two part: what the reward model still likes more, people like less."
    return f"{told} The two do not part here by more than their noise."


def counted(claims: list[Row]) -> str:
    """How many claims hold, and which do not."""
    judged = [claim for claim in claims if claim.get("holds") is not None]
    if not judged:
        return "No claim was checked in this run"
    lost = [claim for claim in judged if not claim["holds"]]
    one = "claim holds" if len(judged) == 1 else "claims hold"
    if not lost:
        return f"All {len(judged)} {one}" if len(judged) > 1 else "The one claim holds"
    told = "; ".join(
        f"{claim.get('text') or claim.get('id')}"
        + (f" ({claim['arm']})" if claim.get("arm") else "")
        + f", measured {number(claim.get('measured'))}"
        for claim in lost
    )
    return f"{len(judged) - len(lost)} of {len(judged)} {one}; what does not: {told}"


def verdict(shown: Shown, kl: str) -> str:
    """Two sentences: the claims, and how far the policy went."""
    first = counted(shown.results.get("claims", [])) if shown.results else "This run is not finished"
    far = [(arm.final(kl)[0], arm) for arm in shown.arms if arm.has(kl)]
    if shown.results and not shown.arms:
        return f"{first}. No policy was optimised."
    if not far:
        return f"{first}. How far the policy went was not measured."
    (most, arm), (least, near) = max(far, key=lambda pair: pair[0]), min(far, key=lambda pair: pair[0])
    gold = f" with gold at {number(arm.final('gold')[0])}" if arm.has("gold") else ""
    second = f"The policy ended {number(most)} nats from its reference{gold} in arm {arm.name}"
    if near is not arm:
        gold = f" with gold at {number(near.final('gold')[0])}" if near.has("gold") else ""
        second += f", and {number(least)} nats{gold} in arm {near.name}"
    return f"{first}. {second}."
