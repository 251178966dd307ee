"""The figure of a study that lives beside the ledger: reward-model accuracy against labels spent, by what was asked."""

import numpy as np
from matplotlib.figure import Figure

from killick.report.picture import Picture
from killick.report.reading import Shown
from killick.report.style import INK, marks

WORDS = {"random": "at random", "disagreement": "ensemble disagreement", "information": "Fisher information"}


def asking(shown: Shown) -> Picture | None:
    """One line a strategy, the mean over seeds with one standard error around it; none where no seed compared them."""
    studies = [stages["asking"] for stages in shown.stages.values() if isinstance(stages.get("asking"), dict)]
    if not studies:
        return None
    sizes, count = studies[0]["sizes"], len(studies)
    curves = {
        name: np.array([study["accuracy"][name] for study in studies], dtype=float) for name in studies[0]["accuracy"]
    }
    whole, top = (float(np.mean([study[name] for study in studies])) for name in ("whole", "ceiling"))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for index, (name, values) in enumerate(curves.items()):
            look, mean = marks(index), values.mean(0)
            axes.plot(sizes, mean, label=WORDS.get(name, name), **look)
            if count > 1:
                error = values.std(0, ddof=1) / np.sqrt(count)
                axes.fill_between(sizes, mean - error, mean + error, color=look["color"], alpha=0.18, linewidth=0)
        axes.axhline(top, color=INK, linewidth=0.7, linestyle=(0, (2, 2)), label="the most that the labels allow")
        axes.axhline(whole, color=INK, linewidth=0.7, label="the whole pool labelled")
        axes.set_xlabel("labels spent")
        axes.set_ylabel("accuracy, share of\nheld-out pairs")
        axes.margins(x=0.02)
        figure.legend(loc="outside lower center", ncols=2)

    band = f" Lines are means over {count} seeds, bands one standard error." if count > 1 else ""
    ends = "; ".join(f"{WORDS.get(name, name)} {values[:, -1].mean():.3f}" for name, values in curves.items())
    caption = f"How right the digit weights are by what was asked: {ends} after {sizes[-1]} labels.{band}"
    return Picture("asking", "What to ask next", caption, 2.6, paint)
