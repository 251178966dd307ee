"""A share with its interval and its test, in plain numbers: what counts rows need not load torch for it."""

import math
from statistics import NormalDist


def share_interval(hits: float, trials: int, *, level: float = 0.95) -> tuple[float, float]:
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


def fair_coin_p(hits: int, trials: int) -> float:
    """Probability that a fair coin strays at least as far from half heads as these trials did (exact, two-sided)."""
    tail = range(min(hits, trials - hits) + 1)
    logs = [math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1) for k in tail]
    return min(1.0, 2 * sum(math.exp(log - trials * math.log(2)) for log in logs))
