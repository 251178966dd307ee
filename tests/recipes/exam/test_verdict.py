"""From reasons to a verdict: the worst decides, and how far is where the evidence ends."""

from typing import Any

import pytest

from killick.recipes.exam.rules import Reason
from killick.recipes.exam.verdict import CAREFUL, headline, how_far

POINTS = [{"n": n, "kl_bound": kl, "proxy": float(n)} for n, kl in [(1, 0.0), (2, 0.19), (4, 0.64), (8, 1.2)]]
STOP = Reason("chance", "stop", "It is a coin.")


def slope(**more: Any) -> dict[str, Any]:
    return {"slope": {"points": POINTS, "top": None, "turns": False, "covered": None} | more}


def test_without_answers_of_a_policy_nobody_knows_how_far() -> None:
    assert how_far({"slope": None}, careful=False) is None
    assert how_far(slope(), careful=False) is None


@pytest.mark.parametrize(
    ("given", "careful", "n"),
    [
        (slope(covered={"n": 8}), False, 8),
        (slope(covered={"n": 8}), True, CAREFUL),
        (slope(covered={"n": 2}), True, 2),
        (slope(covered={"n": 2}, top=8), False, 8),  # gold, where it is known, outweighs the reach of labels
        (slope(covered={"n": 8}, top=4, turns=True), False, 4),
        (slope(covered={"n": 8}, top=4, turns=False), False, 8),  # level, but not shown to fall
    ],
)
def test_gold_or_else_the_reach_of_labels_says_how_far(given: dict[str, Any], careful: bool, n: int) -> None:
    found = how_far(given, careful=careful)
    assert found is not None
    assert found["n"] == n
    assert found["kl"] == next(point["kl_bound"] for point in POINTS if point["n"] == n)


def test_the_first_sentence_says_it() -> None:
    far = {"n": 8, "kl": 1.2, "why": "gold holds."}
    assert headline("no", None, because=[STOP]) == "Do not optimise against it. It is a coin."
    assert headline("little", far, because=[STOP]).startswith("Optimise against it only a little: best of 8 at most")
    assert f"best of {CAREFUL} at most" in headline("little", None, because=[STOP])
    assert "best of 8, at most 1.20 nats from the policy: gold holds." in headline("yes", far, because=[])
    assert "how far is not known" in headline("yes", None, because=[])
