"""What the source of the answers recipe says, and the bands in which we take our figures to agree.

The source's random streams are repeated, so a band is 0.01 to either side: the number of threads moves the third
decimal, the last that the source gives. Counts and steps are exact. Ends are the last row of an arm; peaks are read at
every 25th step, as the source reads them. The shares are ours: what other draws of the labels give, with bands of two
standard errors of such a share among 20 draws.
"""

from collections.abc import Callable, Mapping, Sequence

from killick.recipes.claims import Claim, Found, column, stage
from killick.recipes.ledger import Row

FALL = 0.3
"""Gold units: a smaller fall from the peak is none."""
LAST = {"beta=0+thin+ascent": 3000}
"""The step at which the source ends an arm, where it is not 300."""
READ = 25
"""Steps between two of the source's readings."""


def finished(rows: Sequence[Row]) -> list[Row]:
    """The rows of those arms that ran to the source's last step, and no further."""
    there = {row["arm"] for row in rows if row["step"] == LAST.get(row["arm"], 300)}
    return [row for row in rows if row["arm"] in there and row["step"] <= LAST.get(row["arm"], 300)]


def peak(rows: Sequence[Row]) -> Row:
    """The row with the most gold among every 25th."""
    return max((row for row in rows if row["step"] % READ == 0), key=lambda row: row["gold"])


def peak_gold(rows: Sequence[Row], _: Found) -> float:
    """Gold there."""
    return float(peak(rows)["gold"])


def peak_step(rows: Sequence[Row], _: Found) -> float:
    """The step of it."""
    return float(peak(rows)["step"])


def fallen(found: Found) -> float:
    """Share of the draws in which gold ends more than 0.3 below its peak."""
    runs = found["draws"]
    return sum(run["peak_gold"] - run["gold"] > FALL for run in runs) / len(runs)


def helped(found: Found) -> float:
    """Share of the draws in which gold ends higher on the leash than without."""
    runs = found["draws"]
    return sum(run["held_gold"] > run["gold"] for run in runs) / len(runs)


def close(id_: str, arm: str | None, *, text: str, value: float, unit: str,
          measure: Callable[[Sequence[Row], Found], float], within: float = 0.01) -> Claim:  # fmt: skip
    """A figure of the source's own draws, to 0.01 either side unless told otherwise."""
    return Claim(id_, arm, text, f"{value:g}", value, value - within, value + within, unit, measure)


def ends(name: str, arm: str, *, proxy: float | None = None, gold: float, kl: float | None = None) -> list[Claim]:
    """Where an arm ends."""
    figures = (("proxy", "proxy", proxy, "deviations"), ("gold", "gold", gold, "gold"), ("kl", "KL", kl, "nats"))
    return [
        close(f"{name}-{figure}", arm, text=f"final {word}", value=value, unit=unit, measure=column(figure, 1))
        for figure, word, value, unit in figures if value is not None
    ]  # fmt: skip


def peaks(name: str, arm: str, *, gold: float, step: int) -> list[Claim]:
    """Where gold is at its best."""
    return [
        close(f"{name}-peak", arm, text="gold at its best", value=gold, unit="gold", measure=peak_gold),
        close(f"{name}-peak-step", arm, text="step of it", value=step, unit="step", measure=peak_step, within=0),
    ]


def share(id_: str, *, text: str, value: float, measure: Callable[[Found], float]) -> Claim:
    """A share among 20 draws of the labels: two standard errors to either side."""
    band = 2 * (value * (1 - value) / 20) ** 0.5
    return Claim(id_, None, text, f"about {value:g}", value, round(value - band, 3), round(value + band, 3), "share",
                 lambda _, found: measure(found), "ours")  # fmt: skip


CLAIMS = [
    close("reference-gold", None, text="gold of the reference", value=1.117, unit="gold",
          measure=stage("reference_gold")),
    close("best-gold", None, text="best possible gold", value=3.196, unit="gold", measure=stage("best_gold")),
    close("full-shown", None, text="answer 7 shown, 2,000 comparisons", value=23, unit="times",
          measure=stage("shown_7"), within=0),
    close("full-loss-first", None, text="loss at step 1", value=0.6805, unit="nats", measure=stage("loss_first")),
    close("full-loss-last", None, text="loss at step 400", value=0.459, unit="nats", measure=stage("loss_last")),
    close("full-rank", None, text="rank correlation with gold", value=0.877, unit="",
          measure=stage("rank_correlation")),
    *ends("held", "beta=0.5+reinforce", proxy=0.894, gold=2.535, kl=0.709),
    *peaks("free", "beta=0+reinforce", gold=3.104, step=100),
    *ends("free", "beta=0+reinforce", gold=2.704),
    close("thin-shown", None, text="answer 7 shown, 150 comparisons", value=2, unit="times",
          measure=stage("thin_shown_7"), within=0),
    close("thin-rank", None, text="rank correlation, 150 comparisons", value=0.580, unit="",
          measure=stage("thin_rank_correlation")),
    close("thin-rank-short", None, text="the same on answers 0 to 4", value=0.802, unit="",
          measure=stage("thin_rank_short")),
    *peaks("thin", "beta=0+thin", gold=2.871, step=75),
    *ends("thin", "beta=0+thin", proxy=1.942, gold=1.757, kl=3.731),
    *ends("thin-held", "beta=0.5+thin", proxy=1.240, gold=2.365, kl=1.145),
    *ends("thin-tight", "beta=2+thin", proxy=0.386, gold=1.606, kl=0.091),
    close("flipped-rank", None, text="rank correlation, labels flipped", value=-0.893, unit="",
          measure=stage("flipped_rank_correlation")),
    *ends("moving", "beta=0.5+thin+moving", gold=1.757, kl=3.731),
    *ends("ascent", "beta=0+thin+ascent", gold=3.194, kl=1.968),
    *ends("direct", "beta=0+direct", gold=3.187),
]  # fmt: skip

SHARES = [
    share("draws-fallen", text=f"draws in which gold falls by more than {FALL}", value=0.7, measure=fallen),
    share("draws-helped", text="draws in which a leash of 0.5 ends better", value=0.6, measure=helped),
]
"""Judged with 20 draws or more."""


def claimed(found: Mapping[str, Found]) -> list[Claim]:
    """What can be judged of a run: the shares need 20 draws that ran to the end."""
    drawn = [[run for run in stages.get("draws", []) if run["last_step"] == 300] for stages in found.values()]
    return CLAIMS + (SHARES if min(map(len, drawn), default=0) >= 20 else [])
