"""The arithmetic recipe, shrunk to seconds: its rows, its start, its seed, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.sft import SFTConfig
from killick.models.transformer import TransformerConfig
from killick.recipes.arithmetic import recipe as arithmetic
from killick.recipes.arithmetic.recipe import Config
from killick.recipes.cells import Cell
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from straight import kept, tell

QUICK = Config(device="cpu").quick()
TINY = replace(
    QUICK,
    betas=(0.0, 0.3),
    ptx_betas=(0.3,),
    target_kl=0.01,
    rankings=20,
    sft=replace(QUICK.sft, steps=6, batch=32),
    ppo=replace(QUICK.ppo, iterations=3, batch=16, warmup=0),
    network=TransformerConfig(14, 14, context=10, hidden=16, layers=1, heads=2, feed_forward=16),
)
ARMS = ["beta=0", "beta=0.3", "beta=0.3+ptx", "beta=0.1+target=0.01"]
COLUMNS = [
    "arm", "seed", "step", "proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished", "accuracy",
    "policy_loss", "value_loss", "ratio_max", "ratio_error", "step_kl", "clip_fraction", "bounded", "grad_norm",
    "steps_planned", "steps_done", "steps_skipped",
]  # fmt: skip


def test_every_step_of_every_arm_has_a_row_with_the_same_columns() -> None:
    """As many as announced, arm by arm, steps from 0."""
    rows = kept(arithmetic, TINY).rows
    assert len(rows) == sum(cell.steps for cell in arithmetic.cells(TINY)) == 12
    assert [(row["arm"], row["step"]) for row in rows] == [(arm, step) for arm in ARMS for step in range(3)]
    assert all(list(row) == COLUMNS for row in rows if "ptx" not in row["arm"])
    for row in rows:
        assert 1 <= row["length"] <= 4
        assert -1 <= row["gold"] <= 1
        assert all(0 <= row[share] <= 1 for share in ("finished", "accuracy", "clip_fraction"))
        assert (row["steps_planned"], row["steps_done"], row["steps_skipped"]) == (4, 4, 0)


def test_every_arm_starts_at_its_reference_and_leaves_it() -> None:
    """KL 0 at step 0 (float32 rounding over 4 tokens: 1e-6), the first ratio 1 to 1e-5; then the KL is above 0."""
    for row in kept(arithmetic, TINY).rows:
        if row["step"] == 0:
            assert [row["kl"], row["kl_k1"]] == pytest.approx([0, 0], abs=1e-6)
        else:
            assert row["kl"] > 1e-6
        assert row["ratio_error"] <= 1e-5


def test_the_same_seed_gives_identical_rows_twice_and_another_seed_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every number, bit for bit, from the first SFT batch to the last update; from the cache as from an empty one."""
    first = kept(arithmetic, TINY)
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "empty"))
    cold, warm = tell(arithmetic, TINY), tell(arithmetic, TINY)
    assert cold.rows == warm.rows == first.rows
    assert cold.found == warm.found == first.found
    assert any(note.startswith("SFT step 6: loss ") for note in cold.notes)
    assert not any(note.startswith("SFT step") for note in warm.notes)
    other = kept(arithmetic, replace(TINY, seeds=(1,), betas=(0.0,), ptx_betas=(), target_kl=None))
    assert [row["gold"] for row in other.rows] != [row["gold"] for row in first.rows[:3]]


def test_an_arm_is_the_same_whoever_ran_before_it() -> None:
    """Second in line, or alone, or among other seeds: no arm draws from another's stream or trains its weights."""
    alone = kept(arithmetic, replace(TINY, betas=(0.3,), ptx_betas=(), target_kl=None, seeds=(1, 0)))
    assert [row for row in alone.rows if row["seed"] == 0] == kept(arithmetic, TINY).arm("beta=0.3")


def test_the_four_arms_are_named_exactly() -> None:
    """By default, and all seeds of an arm before the next arm."""
    assert [cell.name for cell in arithmetic.cells(Config(seeds=(0, 1)))] == [
        f"{arm},seed={seed}" for arm in ("beta=0", "beta=0.1", "beta=1", "beta=0.1+ptx") for seed in (0, 1)
    ]
    assert arithmetic.cells(Config(ppo=PPOConfig(iterations=7)))[0] == Cell("beta=0", 0, 7)


def test_the_arm_with_a_target_moves_its_beta_and_the_others_keep_theirs() -> None:
    """From 0.1 on."""
    told = kept(arithmetic, TINY)
    assert [row["beta"] for row in told.arm("beta=0.3+ptx")] == [0.3] * 3
    moved = [row["beta"] for row in told.arm("beta=0.1+target=0.01")]
    assert moved[0] == 0.1
    assert len(set(moved)) == 3


def test_imitation_makes_another_arm_of_the_same_beta() -> None:
    """The first rollout comes from one policy but from streams of their own, so that rows differ at once."""
    told = kept(arithmetic, TINY)
    assert told.arm("beta=0.3")[1:] != [{**row, "arm": "beta=0.3"} for row in told.arm("beta=0.3+ptx")[1:]]


@pytest.mark.parametrize(
    ("change", "moves"),
    [
        ({"see_eos": True}, True),
        ({"overtrained": True}, True),
        ({"temperature": 1.5}, True),
        ({"k": 2}, True),
        ({"rankings": 30}, True),
        ({"kappa": 0.5}, True),
        ({"critic": False}, True),
        ({"critic_from": "reward", "scalar_fit": FitConfig(steps=2, batch=8, learning_rate=1e-3)}, True),
        ({"workers": 2}, False),
    ],
)
def test_every_extension_changes_the_run_and_what_is_no_setting_of_it_does_not(
    change: dict[str, Any], moves: bool
) -> None:
    one = replace(TINY, betas=(0.3,), ptx_betas=(), target_kl=None)
    before, after = (
        [(row["proxy"], row.get("kl")) for row in kept(arithmetic, config).rows]
        for config in (one, replace(one, **change))
    )
    assert (before != after) is moves
    if change == {"see_eos": True}:
        assert list(kept(arithmetic, replace(one, **change)).found["0"]["weights"])[-1] == "<eos>"


def test_a_critic_from_a_reward_model_leaves_the_proxy_and_the_first_rollout_alone() -> None:
    """The digit weights and what they score at step 0 are the same; its accuracy on held-out pairs is found; the value
    loss is another from the start, and the stage comes from the cache the second time."""
    one = replace(TINY, betas=(0.3,), ptx_betas=(), target_kl=None)
    other = replace(one, critic_from="reward", scalar_fit=FitConfig(steps=80, batch=8, learning_rate=3e-3))
    plain, judged = kept(arithmetic, one), kept(arithmetic, other)
    assert judged.rows[0]["proxy"] == plain.rows[0]["proxy"]
    assert judged.rows[0]["value_loss"] != plain.rows[0]["value_loss"]
    found = judged.found["0"]
    assert 0.5 < found["scalar_accuracy"] <= 1
    assert {name: value for name, value in found.items() if name != "scalar_accuracy"} == plain.found["0"]
    assert tell(arithmetic, other).rows == judged.rows


def test_answers_are_shown_at_the_first_and_the_last_step() -> None:
    """Six each."""
    told = kept(arithmetic, TINY)
    assert [(row["arm"], row["step"]) for row in told.samples[::6]] == [(arm, step) for arm in ARMS for step in (0, 2)]
    assert all(row["prompt"].endswith("=") for row in told.samples)


def test_the_stages_are_found_and_told() -> None:
    """SFT with its sampled accuracy, then the reward model on 20 rankings of 6 pairs, beside its ceiling."""
    told = kept(arithmetic, TINY)
    found = told.found["0"]
    assert (found["reward_pairs"], found["sft_steps"]) == (120, 6)
    assert 0.4 < found["reward_accuracy"] <= 1
    assert 0.5 < found["reward_ceiling"] <= 1
    assert list(found["weights"]) == [str(digit) for digit in range(10)]
    assert "at a ceiling of" in told.notes[-1]


def test_claims_are_measured_on_the_ledger() -> None:
    """Each with a source and a kind; those of arms that did not run are left out."""
    told = kept(arithmetic, TINY)
    claims = arithmetic.claims(told.rows, told.found)
    assert {"sft-accuracy", "rm-accuracy"} <= {claim["id"] for claim in claims}
    assert {claim["arm"] for claim in claims} <= {None, *ARMS}
    for claim in claims:
        assert claim["kind"] in ("claim", "setting", "ours")
        assert (claim["holds"] is None) == (claim["kind"] == "setting")
    by = {claim["id"]: claim for claim in claims}
    assert by["sft-accuracy"]["measured"] == told.found["0"]["sft_accuracy"]


def test_an_sft_that_falls_short_is_refused_with_what_it_reached() -> None:
    """Six steps do not teach addition."""
    with pytest.raises(Refusal, match=r"sampled accuracy of 0\.\d+ in 6 steps, short of 0\.5; raise --sft\.steps"):
        tell(arithmetic, replace(TINY, sft_accuracy=0.5))


def test_quick_is_the_same_path_and_smaller() -> None:
    """It validates, keeps arms, seed and network, and is announced as under a minute."""
    QUICK.validate()
    full = Config(device="cpu")
    assert (QUICK.betas, QUICK.seeds, QUICK.network, QUICK.k) == (full.betas, full.seeds, full.network, full.k)
    assert [cell.arm for cell in arithmetic.cells(QUICK)] == [cell.arm for cell in arithmetic.cells(full)]
    assert {cell.steps for cell in arithmetic.cells(full)} == {120}
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
        ({"betas": (), "ptx_betas": ()}, "No beta"),
        ({"ptx_betas": (0.1, 0.1)}, "twice"),
        ({"target_kl": -1.0}, "target"),
        ({"workers": -1}, "--workers must be at least 0, not -1"),
        ({"temperature": 0.0}, "--temperature must be a positive number, not 0"),
        ({"betas": (float("nan"),)}, "not nan"),
        ({"seeds": (-3,)}, "A seed must be 0 or more, not -3"),
        ({"rankings": 0}, "--rankings must be at least 1, not 0"),
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
        ({"critic_from": "reward", "critic": False}, "--critic-from reward needs a critic"),
        ({"critic_from": "reward", "network": TransformerConfig(14, 14, context=9)}, "a context of 10, not 9"),
        ({"scalar_fit": FitConfig(steps=0)}, "steps and batch of at least 1"),
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
