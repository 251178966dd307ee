"""A picture of a preference file where people would rather look: does the longer response win, and by how much?"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from killick.report.picture import Picture
from killick.report.style import COLOURS, INK


def length_picture(bins: Sequence[Mapping[str, Any]]) -> Picture:
    """Share of pairs in which the longer response is preferred, by how much longer it is, with the pairs below.

    Args:
        bins: each with the ratio of lengths that it lies `above`, `share`, its interval `low` to `high`, and `pairs`.
    """
    edges = [each["above"] for each in bins]
    names = [f"to {high:g}" for high in edges[1:]] + [f"over {edges[-1]:g}"]
    held = [(place, each) for place, each in enumerate(bins) if each["pairs"]]

    def paint(figure: Figure) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
        above.axhline(0.5, color=INK, linewidth=0.6, linestyle=(0, (1.2, 1.2)))
        at, share = [place for place, _ in held], [each["share"] for _, each in held]
        reach = [[s - each["low"] for s, (_, each) in zip(share, held, strict=True)]]
        reach += [[each["high"] - s for s, (_, each) in zip(share, held, strict=True)]]
        above.errorbar(at, share, yerr=reach, fmt="o", color=COLOURS[1], elinewidth=1.0, capsize=2)
        above.set_ylim(-0.03, 1.03)
        above.set_ylabel("longer one preferred,\nshare of pairs")
        below.bar(range(len(bins)), [each["pairs"] for each in bins], width=0.7, color=COLOURS[5])
        below.set_ylabel("pairs")
        below.set_xticks(range(len(bins)), names)
        below.set_xlabel("characters of the longer response / of the shorter")
        below.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=3, min_n_ticks=1))
        below.grid(False, axis="x")

    caption = "Above the dotted line length is rewarded; bars are 95 % intervals. A reward model learns this too."
    return Picture("length", "Is the longer response preferred?", caption, 2.9, paint)
