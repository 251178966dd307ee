"""What is examined, opened: a folder with all its members and what it says of itself, or a function."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.models.judging import PretrainedReward
from killick.preferences.rows import Turn
from killick.recipes.exam.judges import LEARNED, RESULTS, open_examinee, open_speak
from killick.recipes.scores.text_score import Unscored
from killick.types import Refusal
from llamas import llama_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reward model with two heads."""
    made = tmp_path_factory.mktemp("judge")
    judge = PretrainedReward.begin(llama_folder(made / "base"))
    judge.members = torch.stack((torch.ones(32), torch.arange(32.0))) / 10
    judge.model.score.weight.data = judge.members.mean(0, keepdim=True)
    judge.save(made / "rm")
    return made / "rm"


def test_every_member_is_asked_and_their_mean_is_the_score(folder: Path) -> None:
    found = open_examinee(str(folder))
    scores = found.judge(["Say it.", "Say it."], ["It is said.", ""])
    assert scores.shape == (2, 2)
    assert scores.dtype == torch.double
    plain = PretrainedReward.load(folder).scores(["Say it.", "Say it."], ["It is said.", ""]).double()
    assert torch.allclose(scores.mean(0), plain, atol=1e-5)
    assert (found.learned, found.nats) == (None, 1.0)
    half = open_examinee(str(folder), dtype=torch.bfloat16).judge(["Say it.", "Say it."], ["It is said.", ""])
    assert 0 < float((half - scores).abs().max()) < 0.1 * float(scores.abs().max())


def test_what_the_fit_left_beside_it_is_read(folder: Path) -> None:
    (folder / LEARNED).write_text(json.dumps(["00ff"]), encoding="utf-8")
    (folder / RESULTS).write_text(json.dumps({"nats_per_unit": 0.5}), encoding="utf-8")
    found = open_examinee(str(folder))
    assert (found.learned, found.nats) == (frozenset({"00ff"}), 0.5)
    (folder / LEARNED).write_text("[", encoding="utf-8")
    with pytest.raises(Refusal, match=r"learned_prompts\.json is damaged"):
        open_examinee(str(folder))
    (folder / LEARNED).write_text("{}", encoding="utf-8")
    with pytest.raises(Refusal, match="holds no list"):
        open_examinee(str(folder))
    (folder / LEARNED).unlink()
    (folder / RESULTS).unlink()


def test_a_score_that_is_no_number_is_told_with_its_answer(folder: Path) -> None:
    """O-52."""
    judge = PretrainedReward.load(folder)
    assert judge.members is not None
    judge.members[1] = torch.nan
    broken = folder.parent / "broken"
    judge.save(broken)
    with pytest.raises(Unscored, match=r"answer 1: the reward model gave .*nan.*, which is not finite"):
        open_examinee(str(broken)).judge(["p"], ["a"])


def test_a_function_is_a_judge_of_one_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge_of_length.py").write_text("def score(text): return len(text)", encoding="utf-8")
    assert open_examinee("judge_of_length:score").judge(["p"], ["four"]).tolist() == [[4.0]]
    with pytest.raises(Refusal, match="REWARD"):
        open_examinee("nothing_here")


def test_a_policy_answers_each_prompt_as_often_as_asked_and_alike_at_a_seed(tmp_path: Path) -> None:
    speak = open_speak(llama_folder(tmp_path / "m", context=48), n=3, tokens=6, temperature=1.0)
    prompts: list[Any] = [
        "Say it.",
        (Turn("user", "a"), Turn("assistant", "b"), Turn("user", "c")),
        "a long prompt " * 20,
    ]
    first, again = (speak(prompts, torch.Generator().manual_seed(0)) for _ in range(2))
    assert [len(row) for row in first] == [3, 3, 3]
    assert first == again
    assert len({text for row in first for text in row}) > 3


def test_a_policy_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="nowhere"):
        open_speak(tmp_path / "nowhere", n=2, tokens=4, temperature=1.0)
    with pytest.raises(Refusal, match="--tokens 64 leaves no room for a prompt"):
        open_speak(llama_folder(tmp_path / "m", context=64), n=2, tokens=64, temperature=1.0)
