"""The answers recipe: its source's figures, from the real run; every arm beside the closed form."""

from dataclasses import replace

import pytest
import torch

from answers_arms import EVERY_ARM, FULL, SHORT
from killick.recipes.answers import recipe as answers
from killick.recipes.answers.recipe import Config
from killick.recipes.cells import Cell
from killick.recipes.ledger import Row
from straight import kept, tell

COMMON = ["arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"]


def last(name: str) -> Row:
    """Where an arm of the whole run ended."""
    return kept(answers, FULL).arm(name)[-1]


# The source's figures, from one run of all arms


def test_every_figure_of_the_source_comes_out() -> None:
    """To 1e-2; counts and the steps of the peaks exactly."""
    told = kept(answers, FULL)
    judged = answers.claims(told.rows, told.found)
    assert len(judged) == 32
    assert {claim["id"]: claim["measured"] for claim in judged if not claim["holds"]} == {}


def test_both_optimisers_come_within_a_hundredth_of_the_closed_form() -> None:
    """Total variation to ref exp(r / beta), averaged over prompts, at beta 0.5; and the KL to it is small too."""
    for name in ("beta=0.5+reinforce", "beta=0.5+ppo", "beta=0.5+thin", "beta=2+thin"):
        assert last(name)["tv_to_optimum"] < 0.01
        assert 0 <= last(name)["kl_to_optimum"] < 3e-3
    for name in ("beta=0+reinforce", "beta=0+ppo", "beta=0+thin", "beta=0+direct"):
        assert last(name)["tv_to_optimum"] < 0.01
        assert last(name)["kl_to_optimum"] == float("inf")  # the optimum never gives a second answer


def test_a_leash_to_a_reference_that_moves_is_none() -> None:
    """Beta 0.5 against itself ends where beta 0 does, number for number; the KL that it reads stays 0."""
    moving, free = (kept(answers, FULL).arm(name) for name in ("beta=0.5+thin+moving", "beta=0+thin"))
    for name in ("proxy", "gold", "kl", "entropy"):
        assert [row[name] for row in moving] == [row[name] for row in free]
    assert {row["kl_k1"] for row in moving} == {0.0}
    assert {row["beta"] for row in moving} == {0.5}


def test_plain_ascent_never_finds_the_long_answer() -> None:
    """Adam's favourite at prompts 2 and 3 is answer 7, which people do not want; ascent's is the best answer."""
    adam, ascent = last("beta=0+thin"), last("beta=0+thin+ascent")
    assert [adam[f"pick_{prompt}"] for prompt in range(4)] == [3, 5, 7, 7]
    assert [ascent[f"pick_{prompt}"] for prompt in range(4)] == [3, 3, 3, 5]
    assert ascent["step"] == 3000


def test_gold_of_the_prompts_is_gold_of_the_whole() -> None:
    """Mean over the four, in every row."""
    for row in kept(answers, FULL).arm("beta=0+thin"):
        assert sum(row[f"gold_{prompt}"] for prompt in range(4)) / 4 == pytest.approx(row["gold"], abs=1e-6)


def test_the_note_says_what_the_source_prints(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Answer 7 shown 23 times, loss .6805 to .459, rank correlation .877; reference 1.117, best 3.196. It is said by
    whoever fits; who finds the stage in the cache says nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILLICK_CACHE", str(tmp_path_factory.mktemp("cache")))
        loop, notes = answers.prepare(FULL, 0), []
        notes = [note.text for note in loop]
        assert list(answers.prepare(FULL, 0)) == []
    (note,) = notes
    for words in ("2000 comparisons", "answer 7 shown 23 times", "0.6805 to 0.459", "correlation with gold 0.877"):
        assert words in note
    assert "on 150: 0.580; gold of the reference 1.117, best possible 3.196" in note


def test_claims_are_of_the_sources_seed_and_of_arms_that_ran_to_its_end() -> None:
    """A shorter run leaves only what was found before the arms; another seed leaves nothing."""
    told = kept(answers, SHORT)
    assert {claim["arm"] for claim in answers.claims(told.rows, told.found)} == {None}
    assert answers.claims(told.rows, {"1": told.found["0"]}) == []


# Rows


def test_every_step_of_every_arm_has_a_row_and_common_columns_come_first() -> None:
    """As many as announced; within an arm the same columns, sorted by step from 0; the longest arm starts first."""
    rows = kept(answers, EVERY_ARM).rows
    assert len(rows) == sum(cell.steps for cell in answers.cells(EVERY_ARM)) == 4 + 8 * 3 + 2 * 2
    assert rows[0]["arm"] == "beta=0+thin+ascent"
    for arm in {row["arm"] for row in rows}:
        mine = [row for row in rows if row["arm"] == arm]
        assert [row["step"] for row in mine] == list(range(len(mine)))
        assert len({tuple(row) for row in mine}) == 1
    for row in rows:
        assert list(row)[: len(COMMON)] == COMMON
        assert {"tv_to_optimum", "kl_to_optimum", "gold_0", "pick_3"} < set(row)
        assert row["finished"] is None
        assert row["length"] == 1


def test_rows_come_every_fifth_step_and_at_the_end_and_as_many_of_the_long_arm() -> None:
    """301 steps give 0, 5, ..., 300; 3,001 give 0, 50, ..., 3000: 61 rows each; 201 give 41."""
    told = kept(answers, FULL)
    assert [row["step"] for row in told.arm("beta=0+thin")] == list(range(0, 301, 5))
    assert [row["step"] for row in told.arm("beta=0+thin+ascent")] == list(range(0, 3001, 50))
    assert [row["step"] for row in told.arm("beta=0+ppo")] == list(range(0, 201, 5))


def test_the_last_step_has_a_row_wherever_it_falls() -> None:
    """3 REINFORCE steps at every second: 0 and 2; 4 of PPO: 0, 2 and the last, 3."""
    config = replace(EVERY_ARM, every=2, ppo=replace(EVERY_ARM.ppo, iterations=4), draws=0)
    told = kept(answers, config)
    assert [row["step"] for row in told.arm("beta=0+reinforce")] == [0, 2]
    assert [row["step"] for row in told.arm("beta=0+ppo")] == [0, 2, 3]


def test_every_arm_starts_at_the_reference_exactly() -> None:
    """KL 0, gold 1.117, proxy 0 (standardised): exact expectations, not sample means (float32: 1e-5)."""
    for row in kept(answers, EVERY_ARM).rows:
        if row["step"] == 0:
            expected = 1.117 if row["arm"] == "beta=0+direct" else 0
            assert row["proxy"] == pytest.approx(expected, abs=5e-4 if expected else 1e-5)
            assert row["kl"] == pytest.approx(0, abs=1e-5)
            assert row["gold"] == pytest.approx(1.117, abs=5e-4)


def test_the_stages_list_the_world_for_the_report() -> None:
    """Reference and gold, every table of scores, and which arm climbs which."""
    exact = kept(answers, EVERY_ARM).found["0"]["exact"]
    assert set(exact["scores"]) == {"full", "thin", "flipped", "gold"}
    assert exact["arms"]["beta=0.5+thin+moving"] == "thin"
    assert exact["arms"]["beta=0+direct"] == "gold"
    assert torch.as_tensor(exact["reference"]).exp().sum(1).tolist() == pytest.approx([1] * 4, abs=1e-6)


def test_the_same_seed_gives_identical_rows_twice_and_another_seed_others() -> None:
    """Every number, bit for bit."""
    assert tell(answers, SHORT).rows == kept(answers, SHORT).rows
    other = kept(answers, replace(SHORT, seeds=(1,)))
    assert [row["gold"] for row in other.rows] != [row["gold"] for row in kept(answers, SHORT).rows]


def test_an_arm_is_the_same_whoever_ran_before_it() -> None:
    """Alone, or second in line, among other seeds: no stage draws from another's stream."""
    both = kept(answers, replace(SHORT, betas=(0.5, 0.0), seeds=(3, 0)))
    alone = kept(answers, replace(SHORT, betas=(0.0,)))
    mine = [row for row in both.rows if row["beta"] == 0 and row["seed"] == 0]
    assert mine == alone.rows


def test_there_is_a_cell_for_every_arm_and_seed() -> None:
    """Named by beta and optimiser, each with its own number of steps."""
    assert answers.cells(replace(SHORT, seeds=(1, 2))) == [
        Cell(f"beta=0.5+{name}", seed, steps) for name, steps in (("reinforce", 3), ("ppo", 2)) for seed in (1, 2)
    ]


def test_the_global_streams_are_left_alone() -> None:
    """Neither torch's nor numpy's is read or set."""
    import numpy as np

    before, numpys = torch.random.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()
    tell(answers, SHORT)
    assert torch.equal(before, torch.random.get_rng_state())
    assert (numpys == np.random.get_state(legacy=False)["state"]["key"]).all()


# Settings


def test_quick_is_the_same_path_and_shorter() -> None:
    """It validates, every arm is there, and only iterations and draws shrink."""
    full, quick = Config(), Config().quick()
    quick.validate()
    assert {cell.arm for cell in answers.cells(quick)} == {cell.arm for cell in answers.cells(full)}
    assert sorted({cell.steps for cell in answers.cells(quick)}) == [51, 101]
    assert sorted({cell.steps for cell in answers.cells(full)}) == [201, 301, 3001]
    assert replace(quick, reinforce=full.reinforce, ppo=full.ppo, ascent=full.ascent, draws=full.draws) == full
    assert answers.seconds(quick) < min(60, answers.seconds(full))
    assert answers.seconds(full) > answers.seconds(replace(full, draws=0))
