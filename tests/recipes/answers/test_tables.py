"""What comes beside the demonstrations: distances to the optimum, other draws, and the order of all tables."""

from dataclasses import replace

import pytest

from answers_arms import EVERY_ARM, FULL
from killick.recipes.answers import recipe as answers
from killick.recipes.answers.tables import RECAP, all_tables, blind_spots, distances, draws
from killick.recipes.tables import by_arm
from straight import kept


def test_the_tables_come_in_the_order_of_the_story() -> None:
    """Six demonstrations, the draws, and five lines at the end."""
    told = kept(answers, EVERY_ARM)
    tables = all_tables(told.rows, told.found)
    assert [table.title[0] for table in tables] == ["1", "1", "2", "2", "3", "3", "3", "3", "4", "4", "4", "5", "6",
                                                    "O", "O", "T"]  # fmt: skip
    assert [row[1] for row in tables[-1].rows] == RECAP
    assert len(RECAP) == 5
    assert all(table.note.count(". ") <= 2 for table in tables)
    assert all_tables([], {}) == []


def test_without_arms_and_draws_there_are_fewer_tables() -> None:
    told = kept(answers, replace(EVERY_ARM, thin_betas=(), breaks=(), draws=0))
    titles = " ".join(table.title for table in all_tables(told.rows, told.found))
    assert "4. Reward hacking: how good" in titles
    for word in ("no leash", "5.", "6.", "draws", "starts"):
        assert word not in titles


def test_distances_stand_beside_the_closed_form() -> None:
    """At beta .5: .896, 2.538, .713 in closed form; .894, 2.535, .709 by REINFORCE; total variation as in the ledger.
    A reference that moves, and labels that are flipped, have no optimum worth the name."""
    told = kept(answers, FULL)
    table = distances(by_arm(told.rows, 0), told.found["0"])
    assert table is not None
    found = {row[0]: row[1:] for row in table.rows}
    assert found["beta=0.5+reinforce"][:6] == pytest.approx([0.896, 2.538, 0.713, 0.894, 2.535, 0.709], abs=2e-3)
    assert found["beta=0+reinforce"][:3] == pytest.approx([1.285, 2.707, 2.492], abs=2e-3)
    assert found["beta=0.5+ppo"][6] == told.arm("beta=0.5+ppo")[-1]["tv_to_optimum"]
    assert not {"beta=0+flipped", "beta=0.5+thin+moving"} & set(found)


def run(gold: float, *, held: float, rank: float, picks: tuple[int, ...]) -> dict[str, object]:
    """One draw by hand: gold peaked at 3 in step 50."""
    return {"label_seed": 3, "reward_seed": 4, "last_step": 300, "rank_correlation": rank, "picks": list(picks),
            "worst_prompt": 1, "worst_score": 1.5, "worst_lost": 0.0 if picks[1] == 3 else 2.0, "peak_gold": 3.0,
            "peak_step": 50, "proxy": 2.0, "gold": gold, "kl": 1.0, "held_gold": held}  # fmt: skip


def test_draws_are_told_by_lowest_middle_and_highest() -> None:
    """Ends of 1, 2 and 3 after peaks at 3: two of three fall by more than .3; the leash is better in the first alone,
    33 %. Answer 7 is the worst of prompt 1 in two of three, none in the third."""
    runs = [
        run(1.0, held=2.0, rank=0.5, picks=(3, 7, 3, 5)),
        run(2.0, held=1.5, rank=0.7, picks=(3, 7, 3, 5)),
        run(3.0, held=2.5, rank=0.6, picks=(3, 3, 3, 5)),
    ]
    found = {"draws": runs, "inits": runs[:1]}
    table = draws({}, found)
    assert table is not None
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["final gold, no leash"] == [1.0, 1.0, 2.0, 3.0]
    assert rows["rank correlation"] == [0.5, 0.5, 0.6, 0.7]
    assert rows["at step"] == [50, 50, 50, 50]
    assert "in 67% of the draws" in table.note
    assert "better in 33%" in table.note
    spots = blind_spots({}, found)
    assert spots is not None
    assert spots.rows == [[4, "3 7 3 5", 1, 7, 1.5, 2.0, 1.0]]
    assert "in 2 of the 3 draws" in spots.note
    assert draws({}, {}) is blind_spots({}, {}) is None
