"""The arithmetic recipe, shrunk to seconds: its rows, its start, its seed, and what it refuses."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig
from killick.models.transformer import TransformerConfig
from killick.recipes import arithmetic
from killick.recipes.arithmetic import Config
from killick.recipes.ledger import Note, Row
from killick.rewards.fit import FitConfig
from killick.types import Refusal

QUICK = Config(device="cpu").quick()
TINY = replace(
    QUICK,
    betas=(0.0, 0.3),
    rankings=20,
    sft=replace(QUICK.sft, steps=6, batch=32),
    ppo=replace(QUICK.ppo, iterations=3, batch=16),
    network=TransformerConfig(14, 14, context=10, hidden=16, layers=1, heads=2, feed_forward=16),
)
COLUMNS = [
    "arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished", "accuracy",
    "policy_loss", "value_loss", "ratio_max", "ratio_error", "step_kl", "clip_fraction", "bounded", "grad_norm",
    "steps_planned", "steps_done", "steps_skipped",
]  # fmt: skip


@cache
def told(config: Config) -> tuple[list[Row], list[str]]:
    """All rows and all notes of a run; each run once."""
    events = list(arithmetic.run(config))
    rows = [event for event in events if not isinstance(event, Note)]
    return rows, [event.text for event in events if isinstance(event, Note)]


def test_every_step_of_every_arm_has_a_row_with_the_same_columns() -> None:
    """As many as announced, arm by arm, steps from 0."""
    rows, _ = told(TINY)
    assert len(rows) == arithmetic.rows(TINY) == 6
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0", "beta=0.3") for step in range(3)
    ]
    assert all(list(row) == COLUMNS for row in rows)
    for row in rows:
        assert 1 <= row["length"] <= 4
        assert -1 <= row["gold"] <= 1
        assert all(0 <= row[share] <= 1 for share in ("finished", "accuracy", "clip_fraction"))
        assert (row["steps_planned"], row["steps_done"], row["steps_skipped"]) == (4, 4, 0)


def test_every_arm_starts_at_its_reference_and_leaves_it() -> None:
    """KL 0 at step 0 (float32 rounding over 4 tokens: 1e-6), the first ratio 1 to 1e-5; then the KL is above 0."""
    for row in told(TINY)[0]:
        if row["step"] == 0:
            assert [row["kl"], row["kl_k1"]] == pytest.approx([0, 0], abs=1e-6)
        else:
            assert row["kl"] > 1e-6
        assert row["ratio_error"] <= 1e-5


def test_the_same_seed_gives_identical_rows_twice_and_another_seed_others() -> None:
    """Every number, bit for bit, from the first SFT batch to the last update."""
    again = [event for event in arithmetic.run(TINY) if isinstance(event, dict)]
    assert again == told(TINY)[0]
    other = replace(TINY, seed=1, betas=(0.0,))
    assert [row["gold"] for row in told(other)[0]] != [row["gold"] for row in again[:3]]


def test_an_arm_is_the_same_whoever_ran_before_it() -> None:
    """Second in line, or alone: no arm draws from another's stream or trains another's weights."""
    alone = told(replace(TINY, betas=(0.3,)))[0]
    assert alone == told(TINY)[0][3:]


def test_the_notes_report_the_stages() -> None:
    """SFT with its sampled accuracy, then the reward model on 20 rankings of 6 pairs, beside its ceiling."""
    notes = told(TINY)[1]
    assert notes[0].startswith("SFT step 6: loss ")
    assert "Reward model on 120 pairs" in notes[-1]
    assert "at a ceiling of" in notes[-1]


def test_an_sft_that_falls_short_is_refused_with_what_it_reached() -> None:
    """Six steps do not teach addition."""
    with pytest.raises(Refusal, match=r"sampled accuracy of 0\.\d+ in 6 steps, short of 0\.5; raise --sft\.steps"):
        list(arithmetic.run(replace(TINY, sft_accuracy=0.5)))


def test_quick_is_the_same_path_and_smaller() -> None:
    """It validates, keeps arms, seed and network, and is announced as under a minute."""
    QUICK.validate()
    full = Config(device="cpu")
    assert (QUICK.betas, QUICK.seed, QUICK.network, QUICK.k) == (full.betas, full.seed, full.network, full.k)
    assert arithmetic.rows(QUICK) < arithmetic.rows(full) == 120
    assert arithmetic.seconds(QUICK) < min(60, arithmetic.seconds(full))


def test_the_defaults_are_the_sources() -> None:
    """600 rankings of 4 at kappa 2, half right, 64 prompts a batch, 4 epochs, 120 iterations."""
    c = Config()
    assert (c.rankings, c.k, c.kappa, c.sft_accuracy) == (600, 4, 2.0, 0.5)
    assert (c.ppo.batch, c.ppo.n, c.ppo.epochs, c.ppo.iterations, c.ppo.gamma) == (64, 1, 4, 120, 1.0)
    assert (c.network.hidden, c.network.layers, c.network.heads, c.network.feed_forward) == (64, 2, 4, 256)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": ()}, "No beta"),
        ({"betas": (float("nan"),)}, "not nan"),
        ({"seed": -3}, "A seed must be 0 or more, not -3"),
        ({"rankings": 0}, "--rankings of at least 1, not 0"),
        ({"k": 1}, "--k of at least 2 responses per prompt, not 1"),
        ({"kappa": 0.0}, "kappa must be a positive number"),
        ({"sft_accuracy": 1.0}, "--sft-accuracy"),
        ({"sft_accuracy": -0.1}, "--sft-accuracy"),
        ({"sft_accuracy": float("nan")}, "--sft-accuracy"),
        ({"device": "tpu"}, "--device"),
        ({"network": TransformerConfig(14, 14, context=8)}, "context of 8 is too short for 6 prompt and 4 response"),
        ({"network": TransformerConfig(13, 14, context=10)}, "reads 13 tokens"),
        ({"network": TransformerConfig(14, 10, context=10)}, "10 outputs"),
        ({"network": TransformerConfig(14, 14, context=10, layers=0)}, "layers"),
        ({"sft": SFTConfig(steps=0)}, "SFT needs steps"),
        ({"fit": FitConfig(learning_rate=-1.0)}, "learning_rate"),
        ({"ppo": PPOConfig(epochs=0)}, "epochs of at least 1, not 0"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    Config().validate()
    with pytest.raises(Refusal, match=word):
        replace(Config(), **change).validate()
