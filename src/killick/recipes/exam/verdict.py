"""From the numbers of an exam to its verdict: may one optimise against this reward model, how far, and why.

A stop says no, whatever speaks for the model; a limit says only a little; without either it is yes, up to where the
evidence ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from killick.recipes.exam.rules import RULES, Reason

Facts = Mapping[str, Any]

CAREFUL = 4
"""Best of so many at most, where something limits a model."""


def judged(facts: Facts) -> dict[str, Any]:
    """The verdict: level, how far, one sentence, the reasons, and what these data cannot tell."""
    reasons = [reason for rule in RULES for reason in rule(facts)]
    stops = [reason for reason in reasons if reason.weight == "stop"]
    limits = [reason for reason in reasons if reason.weight == "limit"]
    level = "no" if stops else "little" if limits else "yes"
    far = None if stops else how_far(facts, careful=bool(limits))
    order = ("stop", "limit", "good", "note")
    return {
        "level": level,
        "far": far,
        "headline": headline(level, far, because=stops or limits),
        "reasons": [vars(reason) for weight in order for reason in reasons if reason.weight == weight],
        "unknown": list(unknown(facts)),
    }


def headline(level: str, far: Facts | None, *, because: Sequence[Reason]) -> str:
    """The verdict in a sentence or two."""
    if level == "no":
        return f"Do not optimise against it. {because[0].text}"
    if level == "little":
        how = f"best of {far['n']} at most" if far else f"best of {CAREFUL} at most"
        return (
            f"Optimise against it only a little: {how}, or a policy on a short leash with gold in view. "
            f"{because[0].text}"
        )
    if far is None:
        return (
            "Nothing here speaks against optimising against it, but how far is not known: no policy's answers were "
            "scored (--policy)."
        )
    return (
        f"Safe to optimise against up to about best of {far['n']}, at most {far['kl']:.2f} nats from the policy: "
        f"{far['why']} Beyond that nothing here can tell."
    )


def how_far(facts: Facts, *, careful: bool) -> dict[str, Any] | None:
    """The largest n that the evidence carries, with the bound of its KL; None without answers of a policy."""
    slope = facts.get("slope")
    if not slope:
        return None
    points = slope["points"]
    if slope.get("top") is not None:
        best = slope["top"] if slope["turns"] else points[-1]["n"]
        why = "there gold is at its best, and falls beyond." if slope["turns"] else "as far as was looked, gold holds."
    elif slope["covered"] is not None:
        best = slope["covered"]["n"]
        why = "there the kept answers still score as answers do that people judged."
    else:
        return None
    best = min(best, CAREFUL) if careful else best
    point = [each for each in points if each["n"] <= best][-1]
    return {"n": point["n"], "kl": point["kl_bound"], "score": point["proxy"], "why": why}


def unknown(facts: Facts) -> Iterator[str]:
    """What these data cannot tell, a sentence each."""
    if facts["ceiling"]["ceiling"] is None:
        yield f"How right any model could be: {facts['ceiling']['reason']}."
    if facts["length"]["balanced"] is None:
        yield f"Whether it knows more than length: {facts['length']['balanced_reason']}."
    if not facts.get("members"):
        yield "Whether another fit to the same labels would say the same: it is one model, no ensemble."
    if not facts.get("slope"):
        yield "How its scores spread over answers of a policy, and how far choosing by it goes: name one with --policy."
    elif facts["slope"].get("gold_gain") is None:
        yield (
            "Whether people like what it likes most: nobody looked at the answers that it picks (--gold, or read the "
            "best ones below)."
        )
    for found in facts["probes"].values():
        if found["beats_chosen"] is None:
            yield f"What it gives to {found['what']}: {found['reason']}."
    if facts["held"].get("unsure"):
        yield facts["held"]["unsure"]
    yield (
        "What a policy finds that is trained against it: it goes where no answer here has been. Watch gold on the way, "
        "and mistrust a mean score above those of best-of-n."
    )
