"""From judged texts to a folder: what is learned, its scale, its members, and a file that is whole or absent."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from killick.models.judging import PretrainedReward
from killick.models.texts import Texts
from killick.preferences.rows import PreferenceRow
from killick.recipes.ledger import Note
from killick.recipes.reward.data import Judged, Placed, Reading, judge_rows
from killick.recipes.reward.files import HeadConfig, chosen_words, fit_head, put, save
from killick.recipes.reward.states import Progress
from killick.types import Refusal
from llamas import llama_folder
from preferring import pairs


@pytest.fixture(name="folder", scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def caching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))


def judged(folder: Path, rows: list[PreferenceRow]) -> Judged:
    placed = [Placed(f"line {number}", row) for number, row in enumerate(rows, 1)]
    return judge_rows(placed, Texts.load(folder), reading=Reading(limit=128, time=64))


def fitted(folder: Path, rows: list[PreferenceRow], **settings: Any) -> tuple[PretrainedReward, dict[str, Any], Judged]:
    judge, data = PretrainedReward.begin(folder), judged(folder, rows)
    work = fit_head(judge, data, config=HeadConfig(**settings))
    while True:
        try:
            assert isinstance(next(work), Note | Progress)
        except StopIteration as end:
            return judge, end.value, data


def test_it_learns_which_words_please_and_its_scores_have_mean_0_and_deviation_1(folder: Path) -> None:
    judge, facts, data = fitted(folder, pairs(60))
    assert facts["accuracy"] > 0.85
    assert facts["accuracy_low"] <= facts["accuracy"] <= facts["accuracy_high"]
    learned, _ = data.of(0)
    used = torch.cat((learned.chosen, learned.rejected)).unique()
    prompts, answers = zip(*data.texts, strict=True)
    scores = judge.scores(prompts, answers)
    assert_close(scores[used].mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    assert_close(scores[used].std(correction=0), torch.tensor(1.0), atol=1e-5, rtol=0)
    held, _ = data.of(2)
    assert facts["accuracy"] == float((scores[held.chosen] > scores[held.rejected]).double().mean())
    assert facts["held_pairs"] == len(held)


def test_swapped_columns_give_the_complement(folder: Path) -> None:
    """O-03: the model stays, the pairs are turned: accuracy 1 - a exactly, and another loss."""
    rows = pairs(60, noise=0.2)
    swapped = [replace(row, place=row.place[::-1]) for row in rows]
    _, one, data = fitted(folder, rows, l2=0.1, centre=0.0)
    judge, other, _ = fitted(folder, swapped, l2=0.1, centre=0.0)
    assert one["accuracy"] == other["accuracy"]  # it learned the opposite
    prompts, answers = zip(*data.texts, strict=True)
    scores = judge.scores(prompts, answers)
    held, _ = data.of(2)
    right = (scores[held.chosen] > scores[held.rejected]).double().mean()
    assert float(right) == pytest.approx(1 - other["accuracy"], abs=1e-12)


def test_a_unit_of_score_is_told_in_nats(folder: Path) -> None:
    """Three of four labels follow the rule: no loss can be far below their entropy, .5623, and .6931 is a coin's."""
    _, facts, _ = fitted(folder, pairs(80, noise=0.25))
    assert 0.45 < facts["held_loss"] < 0.6931
    assert facts["nats_per_unit"] > 0.3


def test_the_own_head_of_an_ensemble_is_the_mean_of_its_members(folder: Path, tmp_path: Path) -> None:
    judge, facts, data = fitted(folder, pairs(60, noise=0.2), members=4)
    assert judge.members is not None
    assert (facts["members"], judge.members.shape) == (4, (4, 32))
    prompts, answers = zip(*data.texts[:20], strict=True)
    each = judge.each(prompts, answers)
    assert_close(each.mean(0), judge.scores(prompts, answers), atol=1e-5, rtol=0)
    assert float(each.std(0).mean()) > 0.01
    save(judge, tmp_path / "rm", facts=facts, learned=data.learned)
    assert torch.equal(PretrainedReward.load(tmp_path / "rm").each(prompts, answers), each)


def test_the_saved_folder_gives_the_same_bits_in_a_new_process(folder: Path, tmp_path: Path) -> None:
    """O-08, and plain transformers agrees to 1e-5."""
    judge, facts, data = fitted(folder, pairs(30))
    save(judge, tmp_path / "rm", facts=facts, learned=data.learned)
    prompts, answers = (["My honest review of lamp 3: I thought"] * 2, ["good happy", "of that"])
    code = (
        "import sys, json, pathlib; from killick.models.judging import PretrainedReward;"
        f"print(json.dumps(PretrainedReward.load(pathlib.Path(sys.argv[1])).scores({prompts!r}, {answers!r}).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rm")], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == judge.scores(prompts, answers).tolist()
    assert json.loads((tmp_path / "rm" / "results.json").read_text()) == facts
    assert json.loads((tmp_path / "rm" / "learned_prompts.json").read_text()) == data.learned
    with pytest.raises(Refusal, match="is there already, and nothing is overwritten"):
        save(judge, tmp_path / "rm", facts=facts, learned=data.learned)


def test_a_save_that_breaks_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, facts, _ = fitted(folder, pairs(30))

    def stop(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judge.texts, "save", lambda folder, **_: stop(folder))
    with pytest.raises(KeyboardInterrupt):
        save(judge, tmp_path / "out" / "rm", facts=facts, learned=[])
    assert list((tmp_path / "out").iterdir()) == []


def test_the_same_seed_gives_the_same_bits(folder: Path) -> None:
    one, two = (fitted(folder, pairs(30, noise=0.2), members=3)[0] for _ in range(2))
    assert one.members is not None
    assert two.members is not None
    assert torch.equal(one.members, two.members)
    assert torch.equal(one.model.score.weight, two.model.score.weight)


def test_heads_that_score_all_alike_are_refused(folder: Path) -> None:
    judge = PretrainedReward.begin(folder)
    with pytest.raises(Refusal, match="every response the same score"):
        put(judge, torch.zeros(1, 32), states=torch.randn(5, 32))


def test_settings_that_cannot_be_are_refused() -> None:
    for settings, words in (({"l2": 0.0}, "--l2"), ({"centre": -1.0}, "--centre"), ({"members": 0}, "--members")):
        with pytest.raises(Refusal, match=words):
            HeadConfig(**settings).validate()


def test_who_chose_the_decay_is_told() -> None:
    assert "too few to choose a decay by: --l2 0.1" in chosen_words(0.1, {}, pairs=4)
    assert "the strongest that was tried" in chosen_words(3.0, {3.0: 0.6}, pairs=40)
