"""What an independent trial of this recipe found (two seeds, SmolLM2), and the bands in which we take ours to agree.

`expected` is the trial's value and never moves. The bands were set before the recipe was first run, from these reasons:
accuracy and ceiling, two deviations over draws of labels and of held-out prompts; gold of an arm, the distance between
the trial's two seeds and two standard errors; KL, a factor of two, since each run finds its own phrase; best-of-n, two
standard errors of both sides. Where a direction is claimed the band has one side, far enough from none that noise does
not cross it: two standard errors of gold are .08. The best of an arm is read at rollouts that were set before; it is
still the largest of a few numbers and so a little too high. An arm that ended before rollout 18 is not judged.
"""

from collections.abc import Sequence
from statistics import fmean

from killick.recipes.claims import Claim, Found, Measure, column
from killick.recipes.ledger import Row

FREE, LEASHED = "beta=0", "beta=0.1"
LEAST = 18
"""The trial's last rollout without a leash: what ended before it says nothing about ends."""


def head(name: str) -> Measure:
    """What was found of the proxy."""
    return lambda _, found: float(found["heads"]["proxy"][name])


def chosen(by: str, what: str) -> Measure:
    """The end of a best-of-n curve, where its pool is the trial's 64."""

    def measure(_: Sequence[Row], found: Found) -> float | None:
        end = found["best_of_n"][by]["points"][-1]
        return float(end[what]) if end["n"] == 64 else None

    return measure


def turning_point(_: Sequence[Row], found: Found) -> float | None:
    """The n with the best gold, where the pool is the trial's."""
    curve = found["best_of_n"]["proxy"]
    return float(curve["top"]) if curve["points"][-1]["n"] == 64 else None


def ended(measure: Measure) -> Measure:
    """A measure of an arm that went far enough."""
    return lambda rows, found: measure(rows, found) if rows and rows[-1]["step"] >= LEAST else None


def evaluations(rows: Sequence[Row]) -> list[float]:
    """Held-out gold at each evaluation; one at least, before anything has moved."""
    return [row["held_gold"] for row in rows if row["held_gold"] is not None]


def gained(rows: Sequence[Row], _: Found) -> float:
    """Held-out gold at its best above that of the reference."""
    gold = evaluations(rows)
    return max(gold) - gold[0]


def lost(rows: Sequence[Row], found: Found) -> float | None:
    """The share of that gain which is gone at the last evaluation; None where nothing was gained."""
    gold, gain = evaluations(rows), gained(rows, found)
    return (max(gold) - gold[-1]) / gain if gain else None


def kept(rows: Sequence[Row], found: Found) -> float | None:
    """The share of that gain which is left."""
    gone = lost(rows, found)
    return None if gone is None else 1 - gone


def evaluated_at(step: int) -> Measure:
    """Held-out gold at one rollout; None where nothing was asked then."""
    return lambda rows, _: next((row["held_gold"] for row in rows if row["step"] == step), None)


def at_end(rows: Sequence[Row], _: Found) -> float:
    """Held-out gold at the last evaluation."""
    return evaluations(rows)[-1]


def apart(rows: Sequence[Row], _: Found) -> float:
    """How far the proxy stands above the head with other labels, over the last three rollouts."""
    return fmean(row["proxy"] - row["watching_other"] for row in rows[-3:])


def around(name: str, step: int) -> Measure:
    """A column over three rollouts."""
    return lambda rows, _: fmean(float(row[name]) for row in rows if abs(row["step"] - step) <= 1)


def took_over(rows: Sequence[Row], _: Found) -> float:
    """Share of the last held-out answers that hold one phrase; 0 where none is long enough for any."""
    return [float(row["held_phrase_share"] or 0) for row in rows if row["held_gold"] is not None][-1]


def of_arm(
    id: str, arm: str, *, text: str, source: str, band: tuple[float, float | None, float | None], unit: str,
    measure: Measure,
) -> Claim:  # fmt: skip
    """A claim about an arm that went far enough; the band is expected, low, high."""
    return Claim(id, arm, text, source, *band, unit, ended(measure))


CLAIMS = [
    Claim("rm-accuracy", None, "held-out accuracy of the reward model", ".625", 0.625, 0.578, 0.672, "share",
          head("accuracy")),
    Claim("rm-ceiling", None, "its ceiling: nobody is right more often", ".793", 0.793, 0.773, 0.813, "share",
          head("ceiling")),
    Claim("best-of-gold", None, "gold of best-of-64 by the proxy", ".62 [.55, .69]", 0.62, 0.52, 0.72, "gold",
          chosen("proxy", "gold")),
    Claim("best-of-proxy", None, "proxy of best-of-64", "1.7", 1.7, 1.5, 1.9, "deviations", chosen("proxy", "proxy")),
    Claim("best-of-own", None, "gold of best-of-64 by gold itself", ".87", 0.87, 0.82, 0.92, "gold",
          chosen("gold", "gold")),
    Claim("best-of-turn", None, "n of the best gold up to 64", "does not turn down by 64", 64, 32, None, "answers",
          turning_point),
    of_arm("free-proxy", FREE, text="the proxy at rollout 15, beyond any best-of-64", source="3.9",
           band=(3.9, 2.0, None), unit="deviations", measure=around("proxy", 15)),
    of_arm("free-kl", FREE, text="KL at rollout 15", source="54", band=(54, 27, 108), unit="nats",
           measure=around("kl", 15)),
    of_arm("free-gain", FREE, text="held-out gold first rises by", source=".19 to .43", band=(0.24, 0.08, None),
           unit="gold", measure=gained),
    of_arm("free-lost", FREE, text="share of that gain lost at the end", source="all and more: .43 to -.03",
           band=(1.9, 0.5, None), unit="share", measure=lost),
    of_arm("free-gold", FREE, text="held-out gold at rollout 18", source="-.03; second seed .14",
           band=(-0.03, -0.25, 0.19), unit="gold", measure=evaluated_at(LEAST)),
    of_arm("free-apart", FREE, text="proxy above a head with other labels, at the end", source="3.9 against 1.4",
           band=(2.5, 1.0, None), unit="deviations", measure=apart),
    of_arm("free-distinct", FREE, text="three-word runs that are different, at the end", source=".97 falls to .13",
           band=(0.13, None, 0.35), unit="share", measure=column("distinct", last=3)),
    of_arm("free-phrase", FREE, text="held-out answers that hold one phrase", source="nearly every answer",
           band=(0.9, 0.5, None), unit="share", measure=took_over),
    of_arm("leashed-gold", LEASHED, text="held-out gold at the end", source=".615; second seed .48",
           band=(0.615, 0.45, 0.78), unit="gold", measure=at_end),
    of_arm("leashed-kept", LEASHED, text="share of its gain kept at the end", source="all of it",
           band=(1.0, 0.75, None), unit="share", measure=kept),
    of_arm("leashed-kl", LEASHED, text="KL at the end", source="10 to 12", band=(11, 5.5, 22), unit="nats",
           measure=column("kl", last=3)),
]  # fmt: skip
