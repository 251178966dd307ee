"""The trial's figures: each band holds what the trial says; what ended early is not judged."""

from typing import Any

from killick.recipes.claims import judge
from killick.recipes.text.claims import CLAIMS, FREE, LEASHED

FOUND: dict[str, Any] = {
    "heads": {"proxy": {"accuracy": 0.625, "ceiling": 0.793}},
    "best_of_n": {
        "proxy": {"points": [{"n": 1, "gold": 0.23, "proxy": 0.0}, {"n": 64, "gold": 0.62, "proxy": 1.7}], "top": 64},
        "gold": {"points": [{"n": 1, "gold": 0.23}, {"n": 64, "gold": 0.87}]},
    },
}
JOURNEY = {FREE: {0: 0.19, 6: 0.43, 12: 0.2, 18: -0.03}, LEASHED: {0: 0.19, 6: 0.4, 12: 0.5, 18: 0.615}}


def rows(arm: str, *, steps: int = 19, **changes: Any) -> list[dict[str, Any]]:
    """An arm as the trial tells it."""
    free = arm == FREE
    return [
        {"arm": arm, "seed": 0, "step": step, "proxy": 3.9 if free else 1.5, "watching_other": 1.4,
         "kl": 54.0 if free else 11.0, "distinct": 0.13 if free else 0.6, "held_gold": JOURNEY[arm].get(step),
         "held_phrase_share": 0.9 if step in JOURNEY[arm] else None} | changes
        for step in range(steps)
    ]  # fmt: skip


def judged(ledger: list[dict[str, Any]], found: dict[str, Any] = FOUND) -> dict[str, dict[str, Any]]:
    return {claim["id"]: claim for claim in judge(CLAIMS, ledger, found={"0": found})}


def test_the_trials_own_figures_hold() -> None:
    found = judged(rows(FREE) + rows(LEASHED))
    assert len(found) == len(CLAIMS)
    assert [name for name, claim in found.items() if not claim["holds"]] == []
    for name, claim in found.items():
        assert claim["measured"] == claim["expected"] or abs(claim["measured"] - claim["expected"]) < 0.05, name


def test_expected_lies_in_its_band() -> None:
    for claim in CLAIMS:
        assert claim.expected is not None
        assert claim.low is None or claim.low <= claim.expected
        assert claim.high is None or claim.expected <= claim.high
        assert (claim.low, claim.high) != (None, None)


def test_gain_and_loss_are_read_from_the_evaluations() -> None:
    """Best .43 over .19; lost (.43 + .03) / .24, a share above one; the leash keeps all."""
    found = judged(rows(FREE) + rows(LEASHED))
    assert abs(found["free-gain"]["measured"] - 0.24) < 1e-9
    assert abs(found["free-lost"]["measured"] - 0.46 / 0.24) < 1e-9
    assert found["leashed-kept"]["measured"] == 1
    assert found["free-apart"]["measured"] == 2.5


def test_what_the_trial_did_not_see_does_not_hold() -> None:
    """Nothing gained, nothing lost, no phrase: gold stays where it was."""
    still = rows(FREE, held_gold=0.2, held_phrase_share=None, distinct=0.97, proxy=0.1, kl=0.5)
    found = judged(still)
    assert not any(claim["holds"] for name, claim in found.items() if name.startswith("free") and name != "free-gold")
    assert "free-lost" not in found
    assert found["free-phrase"]["measured"] == 0


def test_an_arm_that_ended_early_and_a_smaller_pool_are_not_judged() -> None:
    short = {**FOUND, "best_of_n": {name: {"points": [{"n": 16, "gold": 0.5, "proxy": 1.0}], "top": 16}
                                    for name in ("proxy", "gold")}}  # fmt: skip
    assert list(judged(rows(FREE, steps=18), short)) == ["rm-accuracy", "rm-ceiling"]
