"""The source's figures: each band holds what the source says, and is judged on rows made by hand."""

from statistics import fmean

from killick.recipes.arithmetic.claims import CLAIMS
from killick.recipes.claims import judge
from killick.recipes.ledger import Row

FOUND = {
    "0": {
        "sft_accuracy": 0.5, "reward_accuracy": 0.63, "reward_ceiling": 0.64,
        "weights": {str(digit): 0.4 if digit % 2 == 0 else -0.5 for digit in range(10)},
    }
}  # fmt: skip
ENDS = {
    "beta=0": {"proxy": 2.5, "gold": -1.0, "kl": 41.0, "accuracy": 0.0, "finished": 0.0},
    "beta=0.1": {"proxy": 1.0, "gold": 1.0, "kl": 2.6, "accuracy": 0.1, "finished": 1.0},
    "beta=1": {"proxy": 0.0, "gold": 0.7, "kl": 0.25, "accuracy": 0.44, "finished": 1.0},
    "beta=0.1+ptx": {"proxy": 0.0, "gold": 0.8, "kl": 0.5, "accuracy": 0.46, "finished": 1.0},
}


def told() -> list[Row]:
    """A ledger that ends as the source's; without a leash gold is at its best at step 30."""
    rows = []
    for arm, end in ENDS.items():
        for step in range(60):
            gold = 1 - abs(step - 30) / 20 if arm == "beta=0" and step < 50 else end["gold"]
            rows.append({"arm": arm, "seed": 0, "step": step, **end, "gold": gold})
    return rows


def test_the_sources_own_figures_hold() -> None:
    judged = judge(CLAIMS, told(), found=FOUND)
    assert len(judged) == len(CLAIMS)
    assert [claim["id"] for claim in judged if claim["holds"] is False] == []
    assert [claim["id"] for claim in judged if claim["holds"] is None] == ["sft-accuracy"]


def test_every_band_holds_its_expected_value_inside() -> None:
    for claim in CLAIMS:
        assert claim.expected is not None
        assert claim.low is None or claim.low <= claim.expected, claim.id
        assert claim.high is None or claim.expected <= max(claim.high, claim.expected), claim.id
        assert claim.kind == "setting" or (claim.low, claim.high) != (None, None), claim.id


def test_another_ending_is_said_not_to_hold() -> None:
    rows = [row | {"kl": 30.0, "gold": row["gold"] - 0.2} if row["arm"] == "beta=0" else row for row in told()]
    failed = {claim["id"]: claim["measured"] for claim in judge(CLAIMS, rows, found=FOUND) if claim["holds"] is False}
    assert set(failed) == {"free-kl", "free-gold"}
    assert failed["free-kl"] == 30.0


def test_the_weights_of_even_and_odd_digits_are_told_apart() -> None:
    measured = {claim["id"]: claim["measured"] for claim in judge(CLAIMS, [], found=FOUND)}
    assert measured["rm-even"] == fmean([0.4] * 5)
    assert measured["rm-odd"] == fmean([-0.5] * 5)
