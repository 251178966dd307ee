"""The answers recipe: its source's figures, from the real run; two optimisers beside the closed form."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.algorithms.leash import Leash
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceConfig, ReinforceState
from killick.recipes import answers
from killick.recipes.answers import Config, compare, numpy_sampler, speakers
from killick.recipes.cells import Cell
from killick.recipes.ledger import Row
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from killick.worlds.answers import Answers
from straight import kept, tell

FULL = Config(device="cpu")
ONE = replace(FULL.ppo, iterations=1)
SHORT = replace(FULL, comparisons=50, fit=FitConfig(steps=5), reinforce=ReinforceConfig(iterations=3),
                ppo=replace(FULL.ppo, iterations=2))  # fmt: skip
COMMON = ["arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"]


def arm(config: Config, name: str) -> list[Row]:
    return kept(answers, config).arm(name)


# The source's figures, to 1e-2 (the number of threads moves the third decimal)


def test_reinforce_at_beta_one_half_ends_where_the_source_ends() -> None:
    """Proxy .894, gold 2.535, KL .709 at step 300."""
    last = arm(FULL, "beta=0.5+reinforce")[-1]
    assert last["step"] == 300
    assert [last[name] for name in ("proxy", "gold", "kl")] == pytest.approx([0.894, 2.535, 0.709], abs=1e-2)


def test_without_a_leash_gold_peaks_at_step_100_and_ends_lower() -> None:
    """Among every 25th step: 3.104 at step 100; 2.704 at step 300."""
    rows = arm(replace(FULL, betas=(0.0,), ppo=ONE), "beta=0+reinforce")[::25]
    best = max(rows, key=lambda row: row["gold"])
    assert best["step"] == 100
    assert best["gold"] == pytest.approx(3.104, abs=1e-2)
    assert rows[-1]["gold"] == pytest.approx(2.704, abs=1e-2)


def test_a_thin_reward_model_is_hacked() -> None:
    """150 comparisons of stream 3: gold peaks at 2.871 at step 75 and ends at 1.757, with proxy 1.942 and KL 3.731."""
    rows = arm(replace(FULL, betas=(0.0,), comparisons=150, label_seed=3, ppo=ONE), "beta=0+reinforce")[::25]
    best = max(rows, key=lambda row: row["gold"])
    assert best["step"] == 75
    assert best["gold"] == pytest.approx(2.871, abs=1e-2)
    assert [rows[-1][name] for name in ("proxy", "gold", "kl")] == pytest.approx([1.942, 1.757, 3.731], abs=1e-2)


def test_both_optimisers_come_within_a_hundredth_of_the_closed_form() -> None:
    """Total variation to ref exp(r / beta), averaged over prompts, at beta 0.5; and the KL to it is small too."""
    for name in ("beta=0.5+reinforce", "beta=0.5+ppo"):
        last = arm(FULL, name)[-1]
        assert last["tv_to_optimum"] < 0.01
        assert 0 <= last["kl_to_optimum"] < 1e-3


def test_the_notes_say_what_the_source_prints() -> None:
    """Answer 7 shown 23 times, loss .6805 to .459, rank correlation .877; reference 1.117, best 3.196."""
    notes = " ".join(kept(answers, FULL).notes)
    for words in ("2000 comparisons", "answer 7 shown 23 times", "0.6805 to 0.459", "correlation with gold 0.877"):
        assert words in notes
    assert "gold of the reference 1.117, best possible 3.196" in notes
    found = kept(answers, FULL).found["0"]
    figures = [found[name] for name in ("loss_first", "loss_last", "rank_correlation", "reference_gold", "best_gold")]
    assert figures == pytest.approx([0.6805, 0.459, 0.877, 1.117, 3.196], abs=1e-3)
    assert found["shown_7"] == 23


# Rows


def test_every_step_of_every_arm_has_a_row_and_common_columns_come_first() -> None:
    """As many as announced; within an arm the same columns, sorted by step from 0."""
    config = replace(SHORT, betas=(0.5, 0.0))
    rows = kept(answers, config).rows
    assert len(rows) == sum(cell.steps for cell in answers.cells(config)) == 10
    steps = [(row["arm"], row["step"]) for row in rows]
    assert steps == [
        (f"beta={b}+{name}", step)
        for b in ("0.5", "0")
        for name, n in (("reinforce", 3), ("ppo", 2))
        for step in range(n)
    ]
    for row in rows:
        assert list(row)[: len(COMMON)] == COMMON
        assert list(row) == list(next(other for other in rows if other["arm"] == row["arm"]))
        assert {"tv_to_optimum", "kl_to_optimum"} < set(row)
        assert row["finished"] is None
        assert row["length"] == 1


def test_every_arm_starts_at_the_reference_exactly() -> None:
    """KL 0, gold 1.117, proxy 0 (standardised): exact expectations, not sample means (float32: 1e-5)."""
    for row in kept(answers, replace(SHORT, betas=(0.5, 0.0))).rows:
        if row["step"] == 0:
            assert [row["kl"], row["proxy"]] == pytest.approx([0, 0], abs=1e-5)
            assert row["gold"] == pytest.approx(1.117, abs=5e-4)


def test_the_same_seed_gives_identical_rows_twice_and_another_seed_others() -> None:
    """Every number, bit for bit."""
    assert tell(answers, SHORT) == kept(answers, SHORT)
    other = kept(answers, replace(SHORT, seeds=(1,)))
    assert [row["gold"] for row in other.rows] != [row["gold"] for row in kept(answers, SHORT).rows]


def test_an_arm_is_the_same_whoever_ran_before_it() -> None:
    """Alone, or second in line, among other seeds: no stage draws from another's stream."""
    both = kept(answers, replace(SHORT, betas=(0.5, 0.0), seeds=(3, 0)))
    alone = kept(answers, replace(SHORT, betas=(0.0,)))
    assert [row for row in both.rows if row["beta"] == 0 and row["seed"] == 0] == alone.rows


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


# Streams


def test_comparisons_are_two_different_answers_of_one_prompt() -> None:
    """Hard labels; more rows of the same stream begin with the same ones."""
    world = Answers()
    few, many = compare(world, 40, seed=2), compare(world, 80, seed=2)
    assert torch.equal(few.chosen // 8, few.rejected // 8)
    assert not bool((few.chosen == few.rejected).any())
    assert torch.equal(many.chosen[:40], few.chosen)
    assert not torch.equal(compare(world, 40, seed=3).chosen, few.chosen)


def standing(step: int) -> ReinforceState:
    """A state that stands at a step."""
    state = ReinforceState(*speakers(FULL, Answers()), FULL.reinforce, torch.Generator(), Leash(0.5))
    state.step = step
    return state


def test_the_samplers_shares_follow_the_table() -> None:
    """numpy's choice, 5,000 for each of two prompts whose rows stand together: within 4 standard errors."""
    table = torch.tensor([[0.5, 0.3, 0.1, 0.1, 0, 0, 0, 0], [0, 0, 0, 0, 0.25, 0.25, 0.25, 0.25]]).log()
    sampler = numpy_sampler(standing(0), 0, n=5000)
    drawn = sampler(table.repeat_interleave(5000, 0), torch.Generator()).view(2, 5000)
    for row, found in zip(table.exp().double(), drawn, strict=True):
        share = found.bincount(minlength=8).double() / 5000
        # 1e-6: numpy normalises float32 rows again.
        assert bool(((share - row).abs() <= 4 * (row * (1 - row) / 5000).sqrt() + 1e-6).all())


def test_the_samplers_stream_is_wound_forward_to_where_a_state_was_put_down() -> None:
    """One uniform number an answer: what a fresh sampler draws at step 3 is what the first one draws at its fourth
    turn, and going back draws what was drawn there before it went on."""
    table = torch.full((8, 8), 1 / 8).log()
    state = standing(0)
    sampler, turns = numpy_sampler(state, 5, n=2), []
    for state.step in range(5):
        turns.append(sampler(table, torch.Generator()))
    fresh = standing(3)
    later = numpy_sampler(fresh, 5, n=2)
    assert torch.equal(later(table, torch.Generator()), turns[3])
    fresh.step = 4
    assert torch.equal(later(table, torch.Generator()), turns[4])
    assert not torch.equal(turns[3], turns[4])


# Settings


def test_quick_is_the_same_path_and_shorter() -> None:
    """It validates, and only iterations shrink."""
    quick = Config().quick()
    quick.validate()
    assert [cell.steps for cell in answers.cells(quick)] == [51, 51]
    assert [cell.steps for cell in answers.cells(Config())] == [301, 301]
    assert replace(quick, reinforce=Config().reinforce, ppo=Config().ppo) == Config()
    assert answers.seconds(quick) < min(60, answers.seconds(Config()))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": ()}, "No beta"),
        ({"betas": (-1.0,)}, "beta must be 0 or more"),
        ({"betas": (0.5, 0.5)}, "twice"),
        ({"seeds": (-1,)}, "seed"),
        ({"seeds": ()}, "--seeds needs at least one seed"),
        ({"seeds": (2, 2)}, "none twice, not 2 2"),
        ({"label_seed": -1}, "seed"),
        ({"reward_seed": -1}, "seed"),
        ({"comparisons": 0}, "--comparisons must be at least 1, not 0"),
        ({"device": "tpu"}, "--device"),
        ({"fit": FitConfig(steps=0)}, "fit needs steps"),
        ({"reinforce": ReinforceConfig(batch=6)}, "4 prompts equally often"),
        ({"ppo": PPOConfig(batch=6, n=2)}, "4 prompts equally often"),
        ({"reinforce": ReinforceConfig(n=1)}, "n of at least 2"),
        ({"ppo": PPOConfig(batch=4, clip_range=0.0)}, "clip_range"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    Config().validate()
    with pytest.raises(Refusal, match=word):
        replace(Config(), **change).validate()


def test_a_seed_that_no_generator_takes_is_refused_by_name() -> None:
    """Torch holds the reward model's seed in 64 bits; the refusal must come before a run folder exists."""
    with pytest.raises(Refusal, match="seed"):
        replace(Config(), reward_seed=10**20).validate()
