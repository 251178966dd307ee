"""The brand recipe with a very small speaker in the chat model's place: rows, cells without PPO, what it refuses."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chatter import takes_the_place
from killick.algorithms.ppo_config import PPOConfig
from killick.recipes.brand import recipe as brand
from killick.recipes.brand.recipe import Config
from killick.recipes.cells import Cell
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from straight import Told, tell

TINY = Config(
    betas=(0.0, 0.5), seeds=(3,), pool=4, ns=(1, 4), device="cpu", fit=FitConfig(steps=20),
    scalar_fit=FitConfig(steps=2, batch=4),
    ppo=PPOConfig(iterations=3, batch=16, epochs=2, minibatches=2, learning_rate=1e-3),
)  # fmt: skip
KINDS = ["flaw_product", "flaw_repetition", "flaw_material", "flaw_repair"]


@pytest.fixture(autouse=True)
def small_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chat model's place is taken everywhere in the recipe."""
    takes_the_place(monkeypatch)


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """One run, for all who only look."""
    with pytest.MonkeyPatch.context() as patch:
        takes_the_place(patch)
        yield tell(brand, TINY)


def test_every_step_of_every_arm_has_a_row_with_its_flaws_by_kind(told: Told) -> None:
    """Gold is minus their sum, on the rollout of that step."""
    assert [(row["arm"], row["step"]) for row in told.rows] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in range(3)
    ]
    for row in told.rows:
        assert row["gold"] == pytest.approx(-sum(row[kind] for kind in KINDS), abs=1e-6)
        assert all(0 <= row[kind] <= 1 for kind in KINDS)
        assert (row["steps_planned"], row["steps_done"]) == (4, 4)
        assert row["ratio_error"] < 1e-4
        assert 0 <= row["promises"] <= 20
    assert [row["kl"] for row in told.rows if row["step"] == 0] == pytest.approx([0, 0], abs=1e-5)
    assert all(row["kl"] > 1e-6 for row in told.rows if row["step"])


def test_the_policy_is_asked_about_products_that_are_not_held_out_and_its_answers_are_shown(told: Told) -> None:
    """Six at the first and the last step of each arm, after the question as a person would put it."""
    assert [(row["arm"], row["step"]) for row in told.samples[::6]] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in (0, 2)
    ]
    names = {row["prompt"].removeprefix("Describe the ").split()[0] for row in told.samples}
    assert not names & {"Kestrel", "Lark", "River", "Sierra", "Summit", "Willow"}


def test_the_stages_are_found_and_told(told: Told) -> None:
    found = told.found["3"]
    assert found["prompts"] == 360
    assert found["pairs"] == found["head"]["learned_pairs"] + found["head"]["held_pairs"]
    assert told.notes[-1].startswith(f"Seed 3: {found['pairs']} pairs of 360 prompts; held-out accuracy")


def test_claims_and_tables_come_from_the_rows(told: Told) -> None:
    claims = {claim["id"]: claim for claim in brand.claims(told.rows, told.found)}
    assert claims["pairs"]["measured"] == told.found["3"]["pairs"]
    assert claims["first-flaws"]["holds"] is None
    shown = brand.tables(told.rows, told.found)
    assert [row[0] for row in shown[-1].rows] == ["beta=0", "beta=0.5"]


def test_the_same_seed_gives_identical_rows_twice(told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From an empty cache as from a full one, and an arm alone as second in line."""
    assert tell(brand, replace(TINY, betas=(0.5,))).rows == told.arm("beta=0.5")
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "empty"))
    cold = tell(brand, TINY)
    assert cold.rows == told.rows
    assert cold.found == told.found


def test_without_a_beta_a_cell_only_prepares(told: Told) -> None:
    """One a seed, of no step; what is found is the same."""
    config = replace(TINY, betas=(), seeds=(3,))
    config.validate()
    assert brand.cells(config) == [Cell("before", 3, 0)]
    alone = tell(brand, config)
    assert alone.rows == []
    assert alone.found == told.found
    assert brand.seconds(config) < brand.seconds(TINY)


def test_a_step_without_anything_to_change_can_be_put_down_and_taken_up() -> None:
    state = brand.Still()
    state.load_state_dict(state.state_dict())
    assert (state.step, state.state_dict()) == (0, {})


def test_quick_is_the_same_path_and_is_announced_as_under_a_minute() -> None:
    """The same arms, pairs and head; a smaller pool, fewer steps."""
    quick, full = Config().quick(), Config()
    quick.validate()
    assert (quick.betas, quick.fit) == (full.betas, full.fit)
    assert brand.seconds(quick) < 60 < brand.seconds(full)


def test_the_defaults_are_the_sources() -> None:
    """Arms named exactly so; 201 full-batch steps of Adam 1e-2; best-of-n from 1 to 64 of one pool of 64."""
    config = Config()
    config.validate()
    assert [cell.arm for cell in brand.cells(config)] == ["beta=0", "beta=0.1", "beta=0.5", "beta=2"]
    assert config.fit == FitConfig(steps=201, batch=None, learning_rate=1e-2, l2=0)
    assert config.pool == 64
    assert config.reach() == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def test_the_curves_go_as_far_as_the_pool_where_no_n_is_given() -> None:
    """`--pool 10` alone is no mistake; what is given stays as it is."""
    small = replace(Config(), pool=10)
    small.validate()
    assert small.reach() == (1, 2, 3, 4, 6, 8)
    assert replace(small, ns=(1, 10)).reach() == (1, 10)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": (-0.5,)}, "beta must be 0 or more and finite, not -0.5"),
        ({"betas": (0.1, 0.1)}, "names one twice"),
        ({"seeds": ()}, "--seeds needs at least one seed"),
        ({"seeds": (-1,)}, "A seed must be 0 or more, not -1"),
        ({"pool": 3}, "--pool must be at least 4, not 3"),
        ({"ns": (1, 65)}, "--ns takes numbers from 1 to the --pool of 64, not 1 65"),
        ({"ns": (0, 1)}, "--ns takes numbers from 1"),
        ({"device": "tpu"}, "--device"),
        ({"workers": -2}, "--workers must be at least 0, not -2"),
        ({"fit": FitConfig(learning_rate=0.0)}, "learning_rate"),
        ({"scalar_fit": FitConfig(steps=0)}, "steps"),
        ({"ppo": PPOConfig(batch=2, minibatches=4)}, "minibatches"),
        ({"ppo": PPOConfig(level="sequence")}, "critic reads every token"),
        ({"ppo": PPOConfig(ptx_coefficient=1.0)}, "ptx"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    with pytest.raises(Refusal, match=word):
        replace(Config(), **change).validate()
