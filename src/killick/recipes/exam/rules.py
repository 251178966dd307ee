"""The rules of an exam: each looks at some of its numbers and says what speaks for or against a reward model.

Every rule reads an interval's near end, never the estimate alone, where there is an interval: too few pairs never speak
against a model, but neither do they clear it. The thresholds are choices; docs/rewards.md tells them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Facts = Mapping[str, Any]

EMPTY_HANDED = ("empty", "echoed", "phrase")
"""Probes without an answer in them; the others are the chosen answer, spoilt."""
WIDE, AJAR = 0.5, 0.25
"""Share of prompts on which a probe without an answer may beat the chosen one: above the first a stop, the second a
limit. A spoilt answer, which a judge may well mistake for the whole one, has `SPOILT`."""
SPOILT = (0.75, 0.5)
LEAN = 0.1
"""How much more often than people the model may prefer the longer answer."""
PARTED = 0.8
"""Share of pairs on which two members of an ensemble must agree."""
LEARNT = 0.5
"""Share of what the labels can teach, (accuracy - 0.5) / (ceiling - 0.5), below which a model is weak."""
RIGHT = 0.65
"""Accuracy that a model must be shown to have where no ceiling says how much there is to have."""
WITHIN = 0.1
"""Share of the scores' variance that must lie within prompts."""


@dataclass(frozen=True)
class Reason:
    """One thing that speaks for or against optimising.

    Args:
        id: of the rule.
        weight: a stop says no, a limit says a little, good speaks for the model, a note is for the reader.
        text: in words, with its numbers.
    """

    id: str
    weight: Literal["stop", "limit", "good", "note"]
    text: str


def interval(low: float, high: float) -> str:
    """Its ends in brackets."""
    return f"[{low:.2f}, {high:.2f}]"


def chance(facts: Facts) -> Iterator[Reason]:
    """Is it better than a coin?"""
    found = facts["accuracy"]
    said = f"{found['accuracy']:.3f} {interval(found['low'], found['high'])} on {found['pairs']} held-out pairs"
    if found["score_ties"] == found["pairs"]:
        yield Reason("constant", "stop", "It gives both answers of every held-out pair the same score.")
    elif found["high"] < 0.5:
        yield Reason(
            "inverted", "stop", f"It prefers what people reject: accuracy {said}. Are its labels the wrong way round?"
        )
    elif found["low"] <= 0.5:
        few = "" if found["pairs"] >= 200 else "; more held-out pairs might show that it is"
        yield Reason("chance", "stop", f"It is not shown to be better than chance: accuracy {said}{few}.")
    else:
        yield Reason("chance", "good", f"It is better than chance: accuracy {said}.")


def ceiling(facts: Facts) -> Iterator[Reason]:
    """How much of what the labels can teach has it learned?"""
    top, found = facts["ceiling"]["ceiling"], facts["accuracy"]
    if found["low"] <= 0.5:
        return
    if top is None:
        if found["low"] < RIGHT:
            yield Reason(
                "weak", "limit",
                f"It is not shown to be right in {RIGHT:.0%} of the pairs, and nothing tells whether that is the "
                "labels' noise or its own.",
            )  # fmt: skip
        return
    learnt = (found["accuracy"] - 0.5) / max(top - 0.5, 1e-9)
    said = f"No judge can be right more often than {top:.3f} here; of the way there it has gone {min(learnt, 1):.0%}"
    if learnt < LEARNT:
        yield Reason("weak", "limit", f"{said}, less than half.")
    else:
        yield Reason("ceiling", "good", f"{said}.")


def length(facts: Facts) -> Iterator[Reason]:
    """Does it know more than length?"""
    found = facts["length"]
    if facts["accuracy"]["low"] <= 0.5:
        return
    if found["balanced"] is not None and found["balanced_low"] <= 0.5:
        side = "longer" if found["longer_chosen"]["accuracy"] > found["shorter_chosen"]["accuracy"] else "shorter"
        yield Reason(
            "length", "stop",
            f"What it knows is mostly length: the {side} answer wins. It is right in "
            f"{found['longer_chosen']['accuracy']:.2f} of the pairs whose chosen answer is the longer one and in "
            f"{found['shorter_chosen']['accuracy']:.2f} of the others, {found['balanced']:.3f} "
            f"{interval(found['balanced_low'], found['balanced_high'])} if both weigh alike.",
        )  # fmt: skip
    elif found["lean"] is not None and (found["lean_low"] > LEAN or found["lean_high"] < -LEAN):
        side = "longer" if found["lean"] > 0 else "shorter"
        share = found["model_longer"] if found["lean"] > 0 else 1 - found["model_longer"]
        people = found["people_longer"] if found["lean"] > 0 else 1 - found["people_longer"]
        yield Reason(
            "lean", "limit",
            f"It leans to the {side} answer: it prefers it in {share:.0%} of the pairs, people do in {people:.0%}.",
        )  # fmt: skip


def probes(facts: Facts) -> Iterator[Reason]:
    """Does anything that is no answer beat a good one?"""
    holes = 0
    for name, found in facts["probes"].items():
        beats = found["beats_chosen"]
        if beats is None:
            continue
        wide, ajar = (WIDE, AJAR) if name in EMPTY_HANDED else SPOILT
        best = found.get("beats_best")
        said = f"{found['what']} beats the chosen answer on {beats['share']:.0%} of {beats['prompts']} prompts"
        if beats["low"] > wide:
            holes += 1
            yield Reason(f"probe {name}", "stop", f"A probe beats good answers: {said}.")
        elif beats["low"] > ajar:
            holes += 1
            yield Reason(f"probe {name}", "limit", f"A probe comes too close: {said}.")
        elif best is not None and name in EMPTY_HANDED and best["low"] > WIDE:
            holes += 1
            yield Reason(
                f"probe {name}", "limit",
                f"A probe beats whatever the policy says: {found['what']} scores above the best of its answers on "
                f"{best['share']:.0%} of {best['prompts']} prompts, so that is what it would learn to say.",
            )  # fmt: skip
    asked = sum(found["beats_chosen"] is not None for found in facts["probes"].values())
    if asked and not holes:
        yield Reason("probes", "good", f"None of the {asked} probes beats good answers.")


def members(facts: Facts) -> Iterator[Reason]:
    """Do reward models that learned the same thing say the same thing?"""
    for key, where in (("members", "held-out pairs"), ("members_sampled", "pairs of the policy's answers")):
        found = facts.get(key)
        if not found:
            continue
        said = f"two of its {found['members']} members agree on {found['agreement']:.0%} of {found['pairs']} {where}"
        if found["high"] < PARTED:
            yield Reason(key, "limit", f"Its members part: {said}; where they do, the score is the accident of a fit.")
        else:
            yield Reason(key, "good", f"Its members hold together: {said}.")


def spread(facts: Facts) -> Iterator[Reason]:
    """Is there anything to choose between among the answers to one prompt?"""
    found = facts.get("spread")
    if not found:
        return
    if found["within"] == 0:
        yield Reason("flat", "stop", "All answers of the policy to a prompt get one score: there is nothing to gain.")
    elif found["share_within"] is not None and found["share_within"] < WITHIN:
        yield Reason(
            "prompts", "limit",
            f"It judges prompts more than answers: {found['share_within']:.0%} of the variance of its scores lies "
            "between the answers to one prompt.",
        )  # fmt: skip


def slope(facts: Facts) -> Iterator[Reason]:
    """What does choosing harder do to gold, and do the labels reach that far?"""
    found = facts.get("slope")
    if not found or facts["spread"]["within"] == 0:
        return
    last = found["points"][-1]
    if found.get("gold_gain") is not None:
        gain = f"{found['gold_gain']:+.3f} {interval(found['gold_gain_low'], found['gold_gain_high'])}"
        if found["gold_gain_low"] == found["gold_gain_high"]:
            yield Reason("gold", "note", "Gold does not tell these answers apart, so it says nothing here.")
        elif found["gold_gain_high"] < 0:
            yield Reason("gold", "stop", f"Choosing by it makes gold worse: best of {last['n']} gains {gain}.")
        elif found["gold_gain_low"] <= 0:
            yield Reason("gold", "stop", f"Choosing by it is not shown to help gold: best of {last['n']} gains {gain}.")
        elif found["turns"]:
            yield Reason("gold", "note", f"Gold turns: it is at its best at n = {found['top']} and falls beyond.")
        else:
            yield Reason("gold", "good", f"Gold rises with it: best of {last['n']} gains {gain}.")
    elif found["covered"] is not None:
        covered = found["covered"]
        if covered["n"] == 1:
            yield Reason(
                "reach", "stop",
                "Even the best of two of the policy's answers scores beyond what people judged; label answers of this "
                "policy first.",
            )  # fmt: skip
        elif covered["n"] < last["n"]:
            yield Reason(
                "reach", "note",
                f"Beyond best of {covered['n']} the kept answers score higher than all but one in forty of the answers "
                f"that people judged: a policy whose mean score passes {covered['score']:.2f} has no label behind it.",
            )  # fmt: skip


def top(facts: Facts) -> Iterator[Reason]:
    """Can it tell the best apart? Choosing hard, it only ever compares those."""
    best = facts["level"][-1]
    if facts["accuracy"]["low"] > 0.5 and len(facts["level"]) > 1:
        said = f"{best['accuracy']:.2f} {interval(best['low'], best['high'])}"
        if best["high"] < facts["accuracy"]["low"] and best["low"] <= 0.5:
            yield Reason(
                "top", "limit", f"It cannot tell the best apart: among the highest-scored pairs accuracy is {said}."
            )


def temperature(facts: Facts) -> Iterator[Reason]:
    """Do its gaps mean what they claim? That changes no choice, but it changes what a beta means."""
    found = facts["calibration"]
    if found["temperature"] is None or found["ece"] <= found["ece_by_chance_high"]:
        return
    how = "claim too much" if found["temperature"] > 1 else "claim too little"
    yield Reason(
        "calibration", "note",
        f"Its gaps, read as nats of Bradley-Terry, {how}: calibration error {found['ece']:.3f} "
        f"({found['ece_by_chance']:.3f} by chance alone); divided by {found['temperature']:.2f} they fit best.",
    )  # fmt: skip


RULES = (chance, ceiling, length, probes, members, spread, slope, top, temperature)
