"""A share with its interval and its test, in plain numbers: what counts rows need not load torch for it."""

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist


def share_interval(hits: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of a probability from independent trials; (0, 1) where there are none. A tie may be half a hit.

    Source: Wilson 1927.
    """
    if not trials:
        return 0.0, 1.0
    z, share = NormalDist().inv_cdf((1 + level) / 2), hits / trials
    middle = share + z * z / (2 * trials)
    reach = z * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z * z / trials
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def grouped_interval(
    credits: Sequence[float], groups: Sequence[Hashable], *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of a mean credit, 0 to 1 each, over things that come in groups: the pairs of one prompt.

    It is Wilson's with as many trials as independent things would tell as much. How many, the spread of the groups'
    sums says: no more than there are things, no fewer than if each group spoke with one voice, N^2 / sum n_g^2.

    Args:
        credits: one for each thing.
        groups: which group each thing is of.
        level: of the interval.

    Source: Korn and Graubard 1998 (effective sample size), with Wilson's interval; Kish 1965 for the lower bound.
    """
    if not credits:
        return 0.0, 1.0
    sums, sizes = dict[Hashable, float](), dict[Hashable, int]()
    for credit, group in zip(credits, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + credit
        sizes[group] = sizes.get(group, 0) + 1
    count, share = len(credits), sum(credits) / len(credits)
    fewest = count**2 / sum(size**2 for size in sizes.values())
    spread = sum((sums[group] - share * size) ** 2 for group, size in sizes.items()) / count**2
    # Where all agree there is no spread to go by, so each group counts as one voice.
    trials = share * (1 - share) / spread if spread > 0 else count if 0 < share < 1 else fewest
    trials = min(float(count), max(fewest, trials))
    return share_interval(share * trials, trials, level=level)


def fair_coin_p(hits: int, trials: int) -> float:
    """Probability that a fair coin strays at least as far from half heads as these trials did (exact, two-sided)."""
    tail = range(min(hits, trials - hits) + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in tail]
    return min(1.0, 2 * sum(math.exp(log - trials * math.log(2)) for log in logs))
