"""The source's figures: each band holds what the source says, and is judged on rows made by hand."""

from typing import Any

import pytest

from killick.recipes.claims import judge
from killick.recipes.emphasis.claims import CLAIMS
from killick.recipes.ledger import Row

SOURCE: dict[str, Any] = {
    "base_gold": 0.3865,
    "beyond": 0.001,
    "families": {"relu": {"accuracy": 0.86, "score_by_count": [-0.5 + 0.6 * c for c in range(13)]}},
    "accuracy_by_pairs": {"250": 0.823, "500": 0.831, "1000": 0.8475, "2000": 0.8545, "4000": 0.8545},
    "gold_by_count": [0.3, 0.6, 0.8, 1.085, 0.4, -0.2, -0.8, -1.4, -2.0, -2.6, -3.2, -3.8, -4.4565],
}
ENDS = {
    "beta=0": {"proxy": 7.545, "gold": -4.4565, "emphasis": 12.0, "kl": 38.7},
    "beta=0.5": {"proxy": 1.5, "gold": 0.84, "emphasis": 1.5, "kl": 1.7},
    "beta=2": {"proxy": 0.5, "gold": 0.525, "emphasis": 0.7, "kl": 0.1},
}


def told() -> list[Row]:
    """A ledger that ends as the source's; without a leash gold is best, 1.0335, at step 30."""
    rows = []
    for arm, end in ENDS.items():
        for step in range(60):
            gold = 1.0335 - abs(step - 30) / 20 if arm == "beta=0" and step < 50 else end["gold"]
            rows.append({"arm": arm, "seed": 42, "step": step, **end, "gold": gold})
    return rows


def measured(rows: list[Row], found: dict[str, Any]) -> dict[str, float]:
    """Claim -> what was measured."""
    return {claim["id"]: claim["measured"] for claim in judge(CLAIMS, rows, found={"42": found})}


def test_the_sources_own_figures_hold() -> None:
    judged = judge(CLAIMS, told(), found={"42": {"source": SOURCE}})
    assert len(judged) == len(CLAIMS) == len({claim["id"] for claim in judged})
    assert [claim["id"] for claim in judged if claim["holds"] is False] == []


def test_every_band_holds_its_expected_value_inside_and_no_claim_is_without_one() -> None:
    for claim in CLAIMS:
        assert claim.expected is not None
        assert (claim.low, claim.high) != (None, None), claim.id
        assert claim.low is None or claim.low <= claim.expected, claim.id
        assert claim.high is None or claim.expected <= claim.high, claim.id


def test_an_end_is_the_last_step_and_a_peak_the_largest_batch() -> None:
    """Nothing is averaged over steps: one batch of gold 2 at step 7 is the peak, one last proxy of 9 the end."""
    rows = told()
    rows[7]["gold"], rows[59]["proxy"] = 2.0, 9.0
    here = measured(rows, {"source": SOURCE})
    assert (here["free-peak"], here["free-peak-step"], here["free-proxy"]) == (2.0, 7.0, 9.0)


def test_accuracy_has_to_rise_and_then_to_stand_still() -> None:
    """.8475 - .823 and .8545 - .8545."""
    here = measured([], {"source": SOURCE})
    assert here["rm-rises"] == pytest.approx(0.0245)
    assert here["rm-flat"] == 0


def test_a_score_that_turns_is_not_said_to_keep_rising() -> None:
    """Ten counts from 3 to 12, the last two changed places: Spearman 1 - 6 * 2 / (10 * 99) = .988; on 0 to 3 a score
    that falls throughout has -1. Gold falls from 1.085 to -4.4565."""
    score = SOURCE["families"]["relu"]["score_by_count"]
    turned = [*score[:11], score[12], score[11]]
    families = {"relu": {"accuracy": 0.86, "score_by_count": turned}}
    judged = {
        claim["id"]: claim for claim in judge(CLAIMS, [], found={"42": {"source": SOURCE | {"families": families}}})
    }
    assert judged["rm-climbs"]["measured"] == pytest.approx(1 - 12 / 990)
    assert judged["rm-climbs"]["holds"] is False
    families = {"relu": {"accuracy": 0.86, "score_by_count": score[::-1]}}
    assert measured([], {"source": SOURCE | {"families": families}})["rm-agrees"] == pytest.approx(-1)
    assert measured([], {"source": SOURCE})["gold-collapses"] == pytest.approx(-5.5415)


def test_a_run_without_the_sources_shape_or_family_or_sizes_claims_nothing_of_them() -> None:
    assert measured([], {"llama": SOURCE}) == {}
    others = SOURCE | {"families": {"tanh": SOURCE["families"]["relu"]}, "accuracy_by_pairs": {"250": 0.823}}
    assert set(measured([], {"source": others})) == {"base-gold", "base-beyond", "gold-collapses", "rm-250"}
