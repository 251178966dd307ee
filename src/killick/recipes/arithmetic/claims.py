"""What the source of the arithmetic recipe says, and the bands in which we take our figures to agree.

`expected` is the source's value and never moves. A band's half-width is the larger of the precision to which the source
gives its figure and two standard deviations over our seeds 0 to 9 (docs/recipes.md); on one side only where it says
above, below or past. Ends of arms are means of their last ten steps.
"""

from collections.abc import Callable, Sequence
from statistics import fmean

from killick.recipes.claims import Claim, Found, column, peak_step, stage
from killick.recipes.ledger import Row


def digits(*names: str) -> Callable[[Sequence[Row], Found], float]:
    """Mean learnt weight of some digits."""
    return lambda _, found: fmean(found["weights"][name] for name in names)


FREE, LOOSE, TIGHT, PTX = "beta=0", "beta=0.1", "beta=1", "beta=0.1+ptx"

CLAIMS = [
    Claim("sft-accuracy", None, "accuracy after SFT", "about 0.5", 0.5, None, None, "share", stage("sft_accuracy"),
          "setting"),
    Claim("rm-accuracy", None, "held-out pair accuracy", "about 0.63", 0.63, 0.605, 0.655, "share",
          stage("reward_accuracy")),
    Claim("rm-ceiling", None, "its ceiling, from the labeler's noise", "about 0.64", 0.64, 0.620, 0.660, "share",
          stage("reward_ceiling")),
    Claim("rm-even", None, "weight of even digits", "about +0.4", 0.4, 0.252, 0.548, "score", digits(*"02468")),
    Claim("rm-odd", None, "weight of odd digits", "about -0.5", -0.5, -0.713, -0.287, "score", digits(*"13579")),
    Claim("free-peak", FREE, "step at which gold is at its best", "about 30", 30, 16, 44, "step", peak_step),
    Claim("free-finished", FREE, "<eos> disappears: finished share", "disappears", 0, None, 0.05, "share",
          column("finished")),
    Claim("free-proxy", FREE, "final proxy", "about +2.5", 2.5, 1.75, 3.25, "score", column("proxy")),
    Claim("free-gold", FREE, "final gold", "-1", -1, -1, -0.95, "gold", column("gold")),
    Claim("free-kl", FREE, "final KL", "past 40", 40, 40, None, "nats", column("kl")),
    Claim("free-accuracy", FREE, "final accuracy", "0", 0, 0, 0.005, "share", column("accuracy")),
    Claim("loose-gold", LOOSE, "final gold", "about +1", 1, 0.95, 1.05, "gold", column("gold")),
    Claim("loose-kl", LOOSE, "final KL", "about 2.6", 2.6, 1.78, 3.42, "nats", column("kl")),
    Claim("loose-accuracy", LOOSE, "final accuracy", "below 0.2", 0.2, None, 0.258, "share", column("accuracy")),
    Claim("tight-kl", TIGHT, "final KL", "about 0.25", 0.25, 0.129, 0.371, "nats", column("kl")),
    Claim("tight-gold", TIGHT, "final gold", "about +0.7", 0.7, 0.605, 0.795, "gold", column("gold")),
    Claim("tight-accuracy", TIGHT, "final accuracy", "about 0.44", 0.44, 0.377, 0.503, "share", column("accuracy")),
    Claim("ptx-accuracy", PTX, "final accuracy", "about 0.46", 0.46, 0.412, 0.508, "share", column("accuracy")),
    Claim("ptx-gold", PTX, "final gold", "about +0.8", 0.8, 0.742, 0.858, "gold", column("gold")),
]  # fmt: skip
