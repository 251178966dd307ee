"""The source's figures: each band holds what the source says, and is judged on rows made by hand."""

import pytest

from killick.recipes.answers.claims import CLAIMS, SHARES, claimed, fallen, finished, helped
from killick.recipes.claims import judge
from killick.recipes.ledger import Row

FOUND = {
    "0": {
        "reference_gold": 1.117, "best_gold": 3.196, "shown_7": 23, "loss_first": 0.6805, "loss_last": 0.459,
        "rank_correlation": 0.877, "thin_shown_7": 2, "thin_rank_correlation": 0.580, "thin_rank_short": 0.802,
        "flipped_rank_correlation": -0.893,
    }
}  # fmt: skip
ENDS = {
    "beta=0.5+reinforce": (0.894, 2.535, 0.709), "beta=0+reinforce": (1.28, 2.704, 2.4),
    "beta=0+thin": (1.942, 1.757, 3.731), "beta=0.5+thin": (1.240, 2.365, 1.145), "beta=2+thin": (0.386, 1.606, 0.091),
    "beta=0.5+thin+moving": (1.94, 1.757, 3.731), "beta=0+thin+ascent": (1.2, 3.194, 1.968),
    "beta=0+direct": (3.1, 3.187, 1.9),
}  # fmt: skip
PEAKS = {"beta=0+reinforce": (100, 3.104), "beta=0+thin": (75, 2.871)}


def told() -> list[Row]:
    """A ledger that ends as the source's; a higher gold between two readings is not seen."""
    rows = []
    for arm, (proxy, gold, kl) in ENDS.items():
        for step in range(3001 if arm.endswith("ascent") else 301):
            row = {"arm": arm, "seed": 0, "step": step, "proxy": proxy, "gold": gold, "kl": kl}
            if arm in PEAKS:
                row["gold"] = {PEAKS[arm][0]: PEAKS[arm][1], 110: 9.0}.get(step, gold)
            rows.append(row)
    return rows


def runs(*pairs: tuple[float, float], last_step: int = 300) -> list[Row]:
    """Draws that peak at 3 and end at the first gold, on the leash at the second."""
    return [{"peak_gold": 3.0, "gold": gold, "held_gold": held, "last_step": last_step} for gold, held in pairs]


def test_the_sources_own_figures_hold() -> None:
    judged = judge(CLAIMS, finished(told()), found=FOUND)
    assert len(judged) == len(CLAIMS) == len({claim["id"] for claim in judged}) == 32
    assert [claim["id"] for claim in judged if not claim["holds"]] == []


def test_every_band_is_a_hundredth_to_either_side_or_exact() -> None:
    for claim in CLAIMS:
        assert claim.expected is not None
        assert claim.low is not None
        assert claim.high is not None
        width = 0 if claim.unit in ("times", "step") else 0.01
        assert (claim.expected - claim.low, claim.high - claim.expected) == pytest.approx((width, width), abs=1e-12)
        assert claim.source == f"{claim.expected:g}"


@pytest.mark.parametrize("shift", [0.011, -0.011])
def test_another_ending_is_said_not_to_hold(shift: float) -> None:
    rows = [row | {"gold": row["gold"] + shift} if row["arm"] == "beta=0+direct" else row for row in told()]
    judged = judge(CLAIMS, finished(rows), found=FOUND)
    assert [claim["id"] for claim in judged if not claim["holds"]] == ["direct-gold"]


def test_an_arm_that_stopped_early_is_not_judged_and_what_came_later_is_not_read() -> None:
    """Arms end at step 300, plain ascent at 3,000."""
    early = [row for row in told() if row["step"] < 300]
    assert finished(early) == []
    later = [*told(), {"arm": "beta=0+thin", "seed": 0, "step": 301, "proxy": 0.0, "gold": 0.0, "kl": 0.0}]
    assert finished(later) == told()


def test_shares_of_the_draws_by_hand() -> None:
    """Peaks at 3: ends of 2.6, 2.8, 1 are falls of .4, .2 and 2, of which two exceed .3; the leash ends higher in the
    last alone."""
    found = {"draws": runs((2.6, 2.5), (2.8, 2.8), (1.0, 2.0))}
    assert fallen(found) == pytest.approx(2 / 3)
    assert helped(found) == pytest.approx(1 / 3)


def test_shares_are_judged_as_ours_with_twenty_whole_draws_or_more() -> None:
    """14 of 20 fall, 12 of 20 are helped; the bands are two standard errors, 2 sqrt(.7 .3 / 20) = .205 and .219."""
    whole = [(2.0, 2.5)] * 12 + [(2.0, 1.5)] * 2 + [(2.9, 2.0)] * 6
    found = {"0": FOUND["0"] | {"draws": runs(*whole)}}
    shares = [claim for claim in judge(claimed(found), [], found=found) if claim["kind"] == "ours"]
    assert [claim["measured"] for claim in shares] == [0.7, 0.6]
    assert [(claim["low"], claim["high"]) for claim in shares] == [(0.495, 0.905), (0.381, 0.819)]
    assert all(claim["holds"] for claim in shares)
    for few in (runs(*whole[:19]), runs(*whole, last_step=50), []):
        assert claimed({"0": FOUND["0"] | {"draws": few}}) == CLAIMS
    assert claimed(FOUND) == claimed({}) == CLAIMS
    assert claimed(found) == CLAIMS + SHARES
