"""What the brand recipe prints, on findings and rows made by hand."""

from typing import Any

from killick.recipes.brand.tables import bargain, tables, turn
from killick.recipes.ledger import Row
from killick.worlds.catalogue import FLAWS

WAYS = [
    {"accuracy": 0.7, "agreement": 1.0, "learned_accuracy": 0.9, "loss": 0.1, "squared": 9.0, "way": "Adam"},
    {"accuracy": 0.6, "agreement": 0.8, "learned_accuracy": 1.0, "loss": 0.0, "squared": 900.0, "way": "L-BFGS"},
]
"""Their columns sorted by name, as a file gives them back."""


def finding(seed: int, separable: bool = True) -> dict[str, Any]:
    """What a seed found; numbers that move with the seed."""
    model = {"accuracy": 0.7, "interval": [0.6, 0.8], "ceiling": 1.0, "held_pairs": 50, "learned_accuracy": 0.9,
             "learned_pairs": 240}  # fmt: skip
    point = {"n": 1, "kl_bound": 0.0, "proxy": 0.1 * seed, "proxy_interval": [-0.1, 0.3], "gold": -1.8 - 0.1 * seed,
             "gold_interval": [-2.5, -1.5]}  # fmt: skip
    judge = {"points": [point, point | {"n": 2, "kl_bound": 0.193}], "prompts": 72, "top": 2 - seed,
             "top_interval": [1, 2], "turns": False}  # fmt: skip
    return {
        "pairs": 290,
        "head": model | {"separable": separable, "optimum": WAYS},
        "scalar": model | {"accuracy": 0.65},
        "of_four": {name: [1.0 + seed, 0.5, 1.5] for name in ("first", "head", "reviewer", "scalar")},
        "curves": {"head": judge, "reviewer": judge | {"top": 1}},
        "flaws": dict.fromkeys(FLAWS, 0.4 + 0.1 * seed),
        "prices": dict.fromkeys(FLAWS, -0.2 * seed),
        "winners": [["Kestrel rain jacket", "It is wool .", 1.5, "material: no"]],
    }


def rows(arm: str, seed: int, *, moved: dict[str, float]) -> list[Row]:
    """Thirteen steps: every flaw at .5 in the first three, then by so much away from it."""
    return [
        {"arm": arm, "seed": seed, "step": step, "proxy": float(step > 2), "gold": -2.0, "kl": 2.0 * (step > 2),
         "promises": 0.5 + 2.5 * (step > 2),
         **{f"flaw_{kind}": 0.5 + moved.get(kind, 0.0) * (step > 2) for kind in FLAWS}}
        for step in range(13)
    ]  # fmt: skip


FOUND = {"10": finding(1, separable=False), "9": finding(0)}
ROWS = rows("beta=0", 9, moved={"repair": -0.4, "material": 0.3}) + rows("beta=2", 9, moved={"repair": 0.01})


def titled(name: str) -> Any:
    return next(table for table in tables(ROWS, FOUND) if table.title.startswith(name))


def test_seeds_stand_in_order_and_choosers_from_none_to_the_reviewer() -> None:
    """9 before 10, whatever a file sorted."""
    table = titled("Best of 4")
    assert [row[:3] for row in table.rows] == [
        [9, "none: the first", 1], [9, "reward head", 1], [9, "fine-tune", 1], [9, "reviewer", 1],
        [10, "none: the first", 2], [10, "reward head", 2], [10, "fine-tune", 2], [10, "reviewer", 2],
    ]  # fmt: skip


def test_two_reward_models_stand_side_by_side() -> None:
    assert titled("Two reward models").rows[:2] == [
        [9, "head", 240, 0.9, 50, 0.7, 0.6, 0.8, 1.0], [9, "fine-tune", 240, 0.9, 50, 0.65, 0.6, 0.8, 1.0],
    ]  # fmt: skip


def test_the_optimum_is_told_by_seed_and_way_with_how_many_seeds_have_none() -> None:
    table = titled("The head beside")
    assert table.rows[0] == [9, "Adam", 0.1, 9.0, 0.9, 0.7, 1.0]
    assert table.note.startswith("At 1 of 2 seeds some weights put every learned pair right")


def test_curves_and_prices_are_means_over_seeds() -> None:
    """Proxy 0 and .1; gold -1.8 and -1.9; a share of .4 and .5, a price of 0 and -.2."""
    curve = titled("Best-of-n, the mean")
    assert [[round(value, 6) for value in row] for row in curve.rows] == [
        [1, 0, 0.05, -1.85, -1.85], [2, 0.193, 0.05, -1.85, -1.85],
    ]  # fmt: skip
    assert [[row[0], *(round(value, 6) for value in row[1:])] for row in titled("What a flaw costs").rows] == [
        [kind, 0.45, -0.1] for kind in FLAWS
    ]


def test_the_curve_of_each_seed_stands_with_its_intervals_and_where_gold_is_highest() -> None:
    """Seed 1 is highest at n = 1, but its interval reaches 2; seed 0 at the end, which is no turn."""
    table = titled("Best-of-n from one pool")
    assert len(table.columns) == 10
    assert table.rows[0] == [9, 1, 0.0, 0.0, -0.1, 0.3, -1.8, -2.5, -1.5, -1.8]
    assert [row[:3] for row in table.rows] == [[9, 1, 0.0], [9, 2, 0.193], [10, 1, 0.0], [10, 2, 0.193]]
    assert "over the 72 held-out products" in table.note
    assert "seed 9: highest at n = 2 (95 % between 1 and 2), the end of the curve;" in table.note
    assert "seed 10: highest at n = 1 (95 % between 1 and 2), not sure to fall beyond." in table.note
    sure = {"top": 1, "top_interval": [1, 1], "turns": True, "points": [{"n": 1}, {"n": 4}]}
    assert turn(sure) == "highest at n = 1 (95 % between 1 and 1), surely falls beyond"


def test_one_seed_has_no_table_of_means() -> None:
    assert len(tables(ROWS, {"9": finding(0)})) == len(tables(ROWS, FOUND)) - 1


def test_a_run_of_five_steps_is_told_by_its_first_and_its_last() -> None:
    """Wrong materials in a share of 0, .1, .2, .3, .4 of the answers; a tenth and a third of five are one step."""
    few = [
        row | {"step": step, "flaw_material": 0.1 * step} for step, row in enumerate(rows("beta=0", 9, moved={})[:5])
    ]
    trades = next(table for table in tables(few, FOUND) if table.title == "What PPO traded")
    assert trades.rows[0][6] == "0.00 to 0.40"


def test_an_arm_is_told_by_its_first_tenth_and_its_last_third() -> None:
    """At beta=0 answers without the promise went from .5 to .1, wrong materials to .8; at beta=2 nothing moved."""
    table = titled("What PPO traded")
    assert table.columns[4:] == [*FLAWS, "promises", "bargain"]
    free, held = table.rows
    assert free == ["beta=0", 1.0, -2.0, 2.0, "0.50 to 0.50", "0.50 to 0.50", "0.50 to 0.80", "0.50 to 0.10",
                    "0.50 to 3.00", "less repair, more material"]  # fmt: skip
    assert held[-1] == "less of nothing, more of nothing"


def test_a_run_without_arms_has_every_table_but_the_trades() -> None:
    assert len(tables([], FOUND)) == len(tables(ROWS, FOUND)) - 1


def test_a_bargain_names_every_kind_that_moved_by_more_than_a_tenth() -> None:
    assert bargain({"a": (0.5, 0.3), "b": (0.5, 0.39), "c": (0.1, 0.25), "d": (0.5, 0.59)}) == "less a and b, more c"
