"""The emphasis recipe, shrunk to seconds: its rows, its start, its seed, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig
from killick.models.transformer import Transformer, TransformerConfig
from killick.recipes.cells import Cell
from killick.recipes.emphasis import recipe as emphasis
from killick.recipes.emphasis.recipe import Config
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from straight import kept, tell

QUICK = Config(device="cpu").quick()
TINY = replace(
    QUICK,
    betas=(0.0, 0.5),
    seeds=(42,),
    pairs=60,
    validation=40,
    hidden=8,
    sft=replace(QUICK.sft, steps=4, batch=32),
    fit=FitConfig(steps=20, batch=16, learning_rate=1e-2),
    ppo=replace(QUICK.ppo, iterations=3, batch=16),
    network=TransformerConfig(25, 24, context=13, hidden=16, layers=1, heads=2, feed_forward=16, final_norm=False),
)
COLUMNS = [
    "arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished", "emphasis",
    "beyond",
    "policy_loss", "ratio_max", "ratio_error", "step_kl", "clip_fraction", "bounded", "grad_norm",
    "steps_planned", "steps_done", "steps_skipped",
]  # fmt: skip


def test_every_step_of_every_arm_has_a_row_with_the_same_columns() -> None:
    """As many as announced, arm by arm, steps from 0; every response is twelve tokens long and none finishes."""
    rows = kept(emphasis, TINY).rows
    assert len(rows) == sum(cell.steps for cell in emphasis.cells(TINY)) == 6
    assert [(row["arm"], row["step"]) for row in rows] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in range(3)
    ]
    assert all(list(row) == COLUMNS for row in rows)
    for row in rows:
        assert (row["length"], row["finished"]) == (12, None)
        assert 0 <= row["emphasis"] <= 12
        assert 0 <= row["beyond"] <= 1
        assert (row["steps_planned"], row["steps_done"], row["steps_skipped"]) == (16, 16, 0)


def test_every_arm_starts_at_its_reference_and_leaves_it() -> None:
    """KL 0 at step 0 (float32 rounding over 12 tokens: 1e-5); then above 0; the first ratio of a step is 1 (12 tokens
    in one sequence ratio: 5e-5)."""
    for row in kept(emphasis, TINY).rows:
        if row["step"] == 0:
            assert [row["kl"], row["kl_k1"]] == pytest.approx([0, 0], abs=1e-5)
        else:
            assert row["kl"] > 1e-6
        assert row["ratio_error"] <= 5e-5


def test_the_proxy_starts_on_the_scale_of_the_reference() -> None:
    """Mean 0 and deviation 1 on the reference's samples: the mean of 16 responses is within 4 / sqrt(16) = 1."""
    assert all(abs(row["proxy"]) < 1 for row in kept(emphasis, TINY).rows if row["step"] == 0)


def test_the_same_seed_gives_identical_rows_twice_and_another_seed_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every number, bit for bit, from the first SFT batch to the last update; from the cache as from an empty one."""
    first = kept(emphasis, TINY)
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "empty"))
    cold, warm = tell(emphasis, TINY), tell(emphasis, TINY)
    assert cold.rows == warm.rows == first.rows
    assert cold.found == warm.found == first.found
    other = kept(emphasis, replace(TINY, seeds=(1,), betas=(0.0,)))
    assert [row["gold"] for row in other.rows] != [row["gold"] for row in first.rows[:3]]


def test_an_arm_is_the_same_whoever_ran_before_it() -> None:
    """Second in line, or alone."""
    assert kept(emphasis, replace(TINY, betas=(0.5,))).rows == kept(emphasis, TINY).arm("beta=0.5")


def test_the_stages_are_found_by_shape_and_told() -> None:
    """Gold of the SFT policy, then the reward model's strict accuracy on other pairs beside its ceiling."""
    told = kept(emphasis, TINY)
    assert list(told.found["42"]) == ["source"]
    found = told.found["42"]["source"]
    assert list(found["families"]) == ["relu"]
    assert found["reward_pairs"] == 60
    assert f"Seed 42, source: base gold {found['base_gold']:.3f}" in told.notes[-1]
    assert "at a ceiling of" in told.notes[-1]


def test_every_beta_meets_every_family_and_shape_and_the_sources_own_stay_out_of_the_name() -> None:
    config = replace(TINY, betas=(0.0,), families=("relu", "tanh", "minimum"), shapes=("source", "llama"))
    assert [cell.arm for cell in emphasis.cells(config)] == [
        "beta=0", "beta=0+llama", "beta=0+tanh", "beta=0+tanh+llama", "beta=0+minimum", "beta=0+minimum+llama",
    ]  # fmt: skip


def test_families_and_shapes_optimise_what_they_name_and_leave_the_other_arms_alone() -> None:
    """The plain arm's rows are those of a run without the others; each other arm has a policy or a proxy of its own."""
    config = replace(TINY, betas=(0.0,), families=("relu", "counts", "mean"), shapes=("source", "llama"))
    told = kept(emphasis, config)
    assert told.arm("beta=0") == kept(emphasis, TINY).arm("beta=0")
    assert (
        told.found["42"]["source"]["families"]["relu"] == kept(emphasis, TINY).found["42"]["source"]["families"]["relu"]
    )
    first = [told.arm(cell.arm)[0] for cell in emphasis.cells(config)]
    assert len({row["proxy"] for row in first}) == 6
    prepared = emphasis.Prepared({}, {})
    for shape in config.shapes:
        list(emphasis.prepare_shape(config, 42, shape=shape, ready=prepared))
    llama = prepared.policies["llama"].network.config
    assert (llama.norm, llama.positions, llama.activation, llama.biases) == ("rms", "rotary", "swiglu", False)
    assert (llama.hidden, llama.layers, llama.heads, llama.feed_forward) == (16, 1, 2, 16)
    state, _ = emphasis.begin(config, Cell("beta=0+mean+llama", 42, 3), prepared=prepared)
    assert state.reference.network.config == llama  # type: ignore[attr-defined]


def test_claims_and_tables_come_from_the_rows() -> None:
    """The claims of the arms that ran, and what the source prints: seed 42 in a row of its own."""
    told = kept(emphasis, TINY)
    judged = {claim["id"]: claim for claim in emphasis.claims(told.rows, told.found)}
    assert judged["free-proxy"]["measured"] == told.arm("beta=0")[-1]["proxy"]
    assert not any(claim["arm"] == "beta=2" for claim in judged.values())
    first, second, *_ = emphasis.tables(told.rows, told.found)
    assert first.rows[0][:3] == [42, "source", told.found["42"]["source"]["base_gold"]]
    assert [row[0] for row in second.rows] == ["beta=0", "beta=0.5"]


def test_answers_are_shown_at_the_first_and_the_last_step() -> None:
    """Six each, after the one prompt that there is."""
    told = kept(emphasis, TINY)
    assert [(row["arm"], row["step"]) for row in told.samples[::6]] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in (0, 2)
    ]
    assert {row["prompt"] for row in told.samples} == {"<bos>"}


def test_quick_is_the_same_path_at_one_seed_and_is_announced_as_under_a_minute() -> None:
    """It validates, keeps arms, pairs, network and reward model."""
    QUICK.validate()
    full = Config(device="cpu")
    same = ("betas", "families", "shapes", "network", "pairs", "hidden", "noise", "fit")
    assert all(getattr(QUICK, name) == getattr(full, name) for name in same)
    assert [(cell.arm, cell.seed, cell.steps) for cell in emphasis.cells(QUICK)] == [
        ("beta=0", 42, 40), ("beta=0.5", 42, 40), ("beta=2", 42, 40),
    ]  # fmt: skip
    assert emphasis.seconds(QUICK) < 60 < emphasis.seconds(full) < 400


def test_the_defaults_are_the_sources() -> None:
    """Nine runs; 4,000 and 2,000 pairs at noise 0.1; 800 SFT steps; 600 steps of 128; 150 iterations of 256 in 4 x 64,
    clip .2; a network of 70,936 numbers."""
    c = Config()
    assert [(cell.arm, cell.seed) for cell in emphasis.cells(c)] == [
        (arm, seed) for arm in ("beta=0", "beta=0.5", "beta=2") for seed in (42, 43, 44)
    ]
    assert (c.pairs, c.validation, c.noise, c.hidden) == (4000, 2000, 0.1, 64)
    assert (c.sft.steps, c.sft.batch, c.sft.learning_rate) == (800, 256, 3e-3)
    assert (c.fit.steps, c.fit.batch, c.fit.learning_rate) == (600, 128, 1e-3)
    assert (c.ppo.iterations, c.ppo.batch, c.ppo.epochs, c.ppo.minibatches) == (150, 256, 4, 4)
    assert (c.ppo.clip_range, c.ppo.learning_rate, c.ppo.level, c.ppo.max_grad_norm) == (0.2, 3e-5, "sequence", 1.0)
    sizes = [parameter.numel() for parameter in Transformer(c.network, torch.Generator()).parameters()]
    assert sum(sizes) == 70_936


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": ()}, "No beta"),
        ({"betas": (-0.5,)}, "not -0.5"),
        ({"seeds": (-1,)}, "A seed must be 0 or more, not -1"),
        ({"pairs": 0}, "--pairs, --validation and --hidden must be at least 1, not 0, 2000 and 64"),
        ({"validation": -1}, "not 4000, -1 and 64"),
        ({"hidden": 0}, "not 4000, 2000 and 0"),
        ({"noise": 0.0}, "--noise must be a positive number, not 0"),
        ({"noise": float("nan")}, "--noise"),
        ({"device": "tpu"}, "--device"),
        ({"network": TransformerConfig(24, 24, context=13)}, "reads 24 tokens, but the vocabulary needs 25"),
        ({"network": TransformerConfig(25, 25, context=13)}, "25 outputs, the vocabulary 24"),
        ({"network": TransformerConfig(25, 12, context=13)}, "12 outputs, the vocabulary 24"),
        (
            {"families": ()},
            "--families takes one or more of relu, tanh, counts, minimum, mean, none twice, not nothing",
        ),
        ({"families": ("relu", "relu")}, "not relu relu"),
        ({"shapes": ()}, "--shapes takes one or more of source, llama"),
        ({"workers": -2}, "--workers must be at least 0, not -2"),
        ({"network": TransformerConfig(25, 24, context=11)}, "context of 11 is too short"),
        ({"sft": SFTConfig(learning_rate=0.0)}, "learning_rate"),
        ({"fit": FitConfig(batch=0)}, "batch"),
        ({"ppo": PPOConfig(batch=2, minibatches=4)}, "minibatches"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    Config().validate()
    with pytest.raises(Refusal, match=word):
        replace(Config(), **change).validate()
