"""The text recipe on a very small language model: the whole path, a second time, going on, what it refuses."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.algorithms.ppo_config import PPOConfig
from killick.models.folders import open_causal
from killick.recipes.cells import Cell
from killick.recipes.text import recipe as text
from killick.recipes.text.prompts import LEARNT
from killick.recipes.text.watching import HELD
from killick.rewards.fit import FitConfig
from killick.types import Refusal
from straight import Told, ended, tell
from writers import counts_letters, folder, letters, tiny


@pytest.fixture(autouse=True)
def gold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters are counted."""
    counts_letters(monkeypatch)


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """One run, for all who only look."""
    with pytest.MonkeyPatch.context() as patch:
        counts_letters(patch)
        yield tell(text, tiny())


def test_every_rollout_has_a_row_and_evaluations_stand_where_they_were_set(told: Told) -> None:
    assert [(row["arm"], row["step"]) for row in told.rows] == [
        (arm, step) for arm in ("beta=0", "beta=0.5") for step in range(4)
    ]
    for row in told.rows:
        judged = row["step"] % 2 == 0
        assert all((row[name] is not None) == judged for name in HELD if "longest" not in name and "phrase" not in name)
        assert row["ratio_error"] in (None, 0)
        assert row["length"] <= 6
    assert [row["kl"] for row in told.rows if row["step"] == 0] == pytest.approx([0, 0], abs=1e-6)
    assert [row["held_kl"] for row in told.rows if row["step"] == 0] == [0, 0]
    assert all(row["held_kl"] > 1e-6 for row in told.rows if row["step"] == 2)


def test_gold_proxy_and_every_text_of_a_rollout_are_kept(told: Told) -> None:
    """Six training answers a rollout, eight held-out ones an evaluation, each with its own gold; the means agree."""
    for row in told.rows:
        mine = [one for one in told.samples if (one["arm"], one["step"]) == (row["arm"], row["step"])]
        learnt, held = ([one for one in mine if one["held_out"] == side] for side in (False, True))
        assert len(learnt) == 6
        assert len(held) == (0 if row["step"] % 2 else 8)
        assert sum(one["gold"] for one in learnt) / 6 == pytest.approx(row["gold"], abs=1e-3)
        assert sum(one["proxy"] for one in learnt) / 6 == pytest.approx(row["proxy"], abs=1e-3)
        worth = letters([one["prompt"] for one in mine], [one["response"] for one in mine]).tolist()
        assert [one["gold"] for one in mine] == pytest.approx(worth, abs=1e-3)
    nouns = {one["prompt"].split(" the ")[1].split()[0].strip(",:") for one in told.samples if one["held_out"]}
    assert nouns.isdisjoint(LEARNT)


def test_before_anything_has_moved_the_evaluation_is_the_references(told: Told) -> None:
    """Its mean is over the whole pool, so both arms begin from one number."""
    first = [row["held_gold"] for row in told.rows if row["step"] == 0]
    assert first == [told.found["3"]["reference"]["held_gold"]] * 2


def test_the_stages_are_found_and_told(told: Told) -> None:
    found = told.found["3"]
    assert list(found["heads"]) == ["proxy", "other", "few", "many"]
    assert [each["pairs"] for each in found["heads"].values()] == [20, 20, 4, 36]
    assert 0.5 < found["coverage"] <= 1
    assert all(0 <= each["accuracy"] <= each["interval"][1] <= 1 for each in found["heads"].values())
    assert [point["n"] for point in found["best_of_n"]["proxy"]["points"]] == [1, 2, 4]
    assert told.notes[-1].startswith("Seed 3: 20 labels of 24 answers; held-out accuracy")


def test_tables_come_from_the_rows_and_claims_only_where_they_are_about_this_run(told: Told) -> None:
    """Twenty labels are not the trial's thousand."""
    assert text.claims(told.rows, told.found) == []
    shown = text.tables(told.rows, told.found)
    assert [table.title for table in shown] == [
        "Reward models beside their ceiling", "Held-out prompts through training", "The hack in words",
        "Watching heads", "Best-of-n on held-out prompts",
    ]  # fmt: skip
    assert [row[:3] for row in shown[1].rows] == [[arm, 3, step] for arm in ("beta=0", "beta=0.5") for step in (0, 2)]


def test_the_same_seed_gives_identical_rows_from_an_empty_cache_and_for_an_arm_alone(
    told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "empty"))
    again = tell(text, tiny(betas=(0.5,)))
    assert again.rows == told.arm("beta=0.5")
    assert again.found == told.found


def test_an_arm_goes_on_from_its_middle_with_the_same_rows(told: Told) -> None:
    """Put down after three rollouts, taken up by a fresh state, an evaluation in between."""
    config, cell = tiny(), Cell("beta=0", 3, 4)
    _, (prepared, _) = ended(text.prepare(config, 3))
    state, seen = text.begin(config, cell, prepared=prepared)
    rows = [next(seen).row for _ in range(2)]
    saved = state.state_dict()
    other, rest = text.begin(config, cell, prepared=prepared)
    other.load_state_dict(saved)
    rows += [event.row for event in rest]
    assert rows == told.arm("beta=0")


def test_only_the_top_layers_move_and_the_trunk_stays(told: Told) -> None:
    config, cell = tiny(), Cell("beta=0", 3, 4)
    _, (prepared, _) = ended(text.prepare(config, 3))
    state, seen = text.begin(config, cell, prepared=prepared)
    list(seen)
    before = open_causal(folder(), dtype=torch.bfloat16)
    for name, weight in prepared.speaks.trunk.model.state_dict().items():
        assert torch.equal(weight, before.state_dict()[name])
    saved = state.state_dict()
    assert len(saved["policy"]) < len(before.state_dict())


def test_relabelling_goes_on_from_its_middle_with_the_same_rows(told: Told) -> None:
    """The arm is `beta=0` until its first refit, then another; what was labelled is part of the state."""
    config = tiny(betas=(0.0,), relabel=True)
    assert [cell.arm for cell in text.cells(config)] == ["beta=0", "beta=0+relabel"]
    cell = Cell("beta=0+relabel", 3, 4)
    _, (prepared, _) = ended(text.prepare(config, 3))
    state, seen = text.begin(config, cell, prepared=prepared)
    rows, saved = [], {}
    for event in seen:
        rows.append(event.row)
        saved[state.step] = state.state_dict()
    assert [len(saved[step]["chosen"]) for step in (1, 2, 3, 4)] == [0, 0, 5, 5]
    free = [row | {"arm": cell.arm} for row in told.arm("beta=0")]
    assert rows[:2] == free[:2]
    assert rows[2] != free[2]
    assert not torch.equal(saved[2]["weight"], saved[3]["weight"])
    for step in (2, 3):
        other, rest = text.begin(config, cell, prepared=prepared)
        other.load_state_dict(saved[step])
        assert [event.row for event in rest] == rows[step:]


def test_another_gold_asks_for_no_new_answers(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of the reference are the same; labels and what comes of them are not."""
    monkeypatch.setattr(text, "load_score", lambda spec, *, flag: lambda prompts, answers: -letters(prompts, answers))
    other = tell(text, tiny(betas=(0.0,), gold="vader"))
    assert other.notes[:-1] == ["4 reward models are fitted"]
    first, again = told.arm("beta=0")[0], other.rows[0]
    assert again["gold"] == -first["gold"]


def test_quick_is_the_same_path_and_is_announced_as_under_three_minutes() -> None:
    quick, full = text.Config().quick(), text.Config()
    assert (quick.betas, quick.fit, quick.time, quick.spoken) == (full.betas, full.fit, full.time, full.spoken)
    assert text.seconds(quick) < 180 < text.seconds(full)


def test_the_defaults_are_the_trials() -> None:
    """Arms named exactly so; 1,000 labels; 200 full-batch steps of Adam 5e-3 with .1 squared weights; six layers."""
    config = text.Config()
    assert [cell.arm for cell in text.cells(config)] == ["beta=0", "beta=0.1"]
    assert config.fit == FitConfig(steps=200, batch=None, learning_rate=5e-3, l2=0.1)
    assert (config.learnt, config.n, config.held_out, config.pool, config.samples) == (96, 16, 48, 64, 4)
    assert (config.temperature, config.spoken, config.time, config.kappa) == (0.8, 8192, 20, 4.0)
    assert (config.ppo.batch, config.ppo.epochs, config.ppo.minibatches) == (64, 2, 2)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": (-0.5,)}, "beta must be 0 or more and finite, not -0.5"),
        ({"betas": ()}, "No beta was given"),
        ({"seeds": ()}, "--seeds needs at least one seed"),
        ({"workers": -2}, "--workers must be at least 0, not -2"),
        ({"n": 1}, "--n must be at least 2, not 1"),
        ({"learnt": 193}, "--learnt must be at most 192, not 193"),
        ({"held_out": 113}, "--held-out must be at most 112, not 113"),
        ({"samples": 5}, "--samples must be at most the --pool of 4, not 5"),
        ({"pairs": 37}, "--pairs must be between 1 and 36, the pairs of 4 answers to 6 prompts, not 37"),
        ({"temperature": 0.0}, "--temperature and --kappa must be positive numbers, not 0 and 4"),
        ({"device": "tpu"}, "--device"),
        ({"fit": FitConfig(learning_rate=0.0)}, "learning_rate"),
        ({"ppo": PPOConfig(level="sequence")}, "leave --ppo.level"),
    ],
)
def test_what_cannot_run_is_refused_by_name(change: dict[str, Any], word: str) -> None:
    with pytest.raises(Refusal, match=word):
        replace(tiny(), **change).validate()


def test_a_model_that_is_not_there_is_refused_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="nowhere"):
        tiny(model=str(tmp_path / "nowhere")).validate()


def test_more_layers_than_the_model_has_are_refused() -> None:
    with pytest.raises(Refusal, match=r"--train-layers must lie in 1\.\.3, the layers of --model .*, not 9"):
        tiny(train_layers=9).validate()
