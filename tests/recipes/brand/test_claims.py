"""The source's figures: each band holds what the source says, and is read from the right place."""

from typing import Any

from killick.recipes.brand.claims import CLAIMS
from killick.recipes.claims import judge

SOURCE: dict[str, Any] = {
    "pairs": 293,
    "head": {"accuracy": 0.69},
    "of_four": {"first": [1.78, 1.6, 2.0], "head": [1.39, 1.2, 1.6], "scalar": [0, 0, 0], "reviewer": [0.99, 0.8, 1.2]},
}


def test_the_sources_own_figures_hold_and_the_first_answer_is_a_setting() -> None:
    judged = {claim["id"]: claim for claim in judge(CLAIMS, [], found={"0": SOURCE})}
    assert {name: claim["measured"] for name, claim in judged.items()} == {
        "pairs": 293, "rm-accuracy": 0.69, "first-flaws": 1.78, "head-flaws": 1.39, "reviewer-flaws": 0.99,
    }  # fmt: skip
    assert {name: claim["holds"] for name, claim in judged.items()} == {
        "pairs": True, "rm-accuracy": True, "first-flaws": None, "head-flaws": True, "reviewer-flaws": True,
    }  # fmt: skip


def test_expected_is_what_the_source_says_and_lies_in_the_middle_of_its_band() -> None:
    """293, 69 %, 1.78, 1.39, .99; two-sided, since the source tells no direction."""
    assert [claim.expected for claim in CLAIMS] == [293, 0.69, 1.78, 1.39, 0.99]
    for claim in CLAIMS:
        if claim.kind == "claim":
            assert claim.low is not None
            assert claim.high is not None
            assert claim.expected is not None
            assert abs(claim.low + claim.high - 2 * claim.expected) < 1e-9, claim.id


def test_what_is_far_from_the_source_does_not_hold() -> None:
    """Every answer perfect, and a reward model that guesses."""
    other = SOURCE | {"pairs": 0, "head": {"accuracy": 0.5}, "of_four": {}}
    other["of_four"] = {name: [0.0, 0, 0] for name in SOURCE["of_four"]}
    judged = {claim["id"]: claim["holds"] for claim in judge(CLAIMS, [], found={"0": other})}
    assert judged == {"pairs": False, "rm-accuracy": False, "first-flaws": None, "head-flaws": False,
                      "reviewer-flaws": False}  # fmt: skip
