"""What the emphasis recipe prints, on rows made by hand."""

from typing import Any

from killick.recipes.emphasis.tables import coverage, departures, ends, models, tables
from killick.recipes.ledger import Row

RELU = {"accuracy": 0.86, "score_by_count": [0.1 * c for c in range(13)]}
FACTS: dict[str, Any] = {
    "base_gold": 0.38, "beyond": 0.00125, "reward_ceiling": 0.87, "reward_pairs": 400, "families": {"relu": RELU},
    "coverage": [0.8, 0.5, 0.25, 0.0, 0.005, *[0.0] * 8],
}  # fmt: skip
TANH = FACTS | {"families": {"relu": RELU, "tanh": RELU | {"accuracy": 0.85}}}
FOUND = {"10": {"source": FACTS}, "9": {"source": TANH, "llama": FACTS}}


def cell(arm: str, golds: list[float], beyond: list[float]) -> list[Row]:
    """Rows whose KL is twice their step and whose proxy is their step."""
    return [
        {"arm": arm, "seed": 9, "step": step, "proxy": float(step), "gold": gold, "kl": 2.0 * step, "emphasis": 3.0,
         "beyond": share}
        for step, (gold, share) in enumerate(zip(golds, beyond, strict=True))
    ]  # fmt: skip


ROWS = [
    *cell("beta=0", [0.4, 0.9, 1.0, 0.3, -4.0], [0.0, 0.1, 0.4, 0.6, 1.0]),
    *cell("beta=2", [0.4, 0.3, 0.6, 0.5, 0.5], [0.0] * 5),
]


def test_models_are_told_for_each_seed_in_order_each_shape_and_each_family() -> None:
    """9 before 10; the score at 3 and at 12."""
    rows = models(FOUND).rows
    assert [row[:2] + row[4:6] for row in rows] == [
        [9, "source", "relu", 0.86], [9, "source", "tanh", 0.85],
        [9, "llama", "relu", 0.86], [10, "source", "relu", 0.86],
    ]  # fmt: skip
    assert rows[0][2:4] == [0.38, "0.12%"]
    assert rows[0][6:] == [0.87, 0.1 * 3, 0.1 * 12]


def test_an_arm_is_told_by_its_best_batch_and_its_last_step() -> None:
    assert ends(ROWS).rows == [
        ["beta=0", 9, 1.0, 2, 4.0, -4.0, 3.0, 8.0],
        ["beta=2", 9, 0.6, 2, 4.0, 0.5, 3.0, 8.0],
    ]


def test_coverage_is_a_mean_over_seeds_and_stops_at_the_last_count_that_any_pair_holds() -> None:
    """Count 4 stands in .5 % of 400 pairs: two of them."""
    rows = coverage(FOUND).rows
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4", "above 4"]
    assert rows[0][1:] == ["80.00%", 320]
    assert rows[4][1:] == ["0.50%", 2]


def test_an_arm_leaves_the_data_when_half_of_it_is_beyond_and_is_hacked_when_gold_falls_below_its_start() -> None:
    """beta=0: best at KL 4, beyond at step 3 (KL 6), below .4 at step 3. beta=2 dips below its start before its best,
    which is no hack, and never leaves."""
    assert departures(ROWS).rows == [["beta=0", 9, 4.0, 6.0, 6.0, "yes"], ["beta=2", 9, 4.0, None, None, "no"]]


def test_all_four_are_shown() -> None:
    assert [len(table.rows) for table in tables(ROWS, FOUND)] == [4, 2, 6, 2]
