"""What text may be scored by: each kind loads, several add up, and what is none is one sentence."""

import math
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from chatter import chatter, takes_the_place
from killick.models.folders import quietly
from killick.models.judging import PretrainedReward
from killick.models.weights import write
from killick.recipes.brand.rewards import fresh_head
from killick.recipes.brand.served import TextReward, save
from killick.recipes.scores.loading import Prompt, Unscored, load_score, load_scores
from killick.recipes.scores.sincere import sincere, vader
from killick.rewards.fit import Standardised
from killick.types import Refusal
from llamas import llama_folder
from recipes.scores.test_remote import lengths, serving

PROMPTS: list[Prompt] = ["Say hello.", [("user", "Say hello.")], "Say more."]
ANSWERS = ["Hello.", "Hello.", ""]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a function in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "ruler", raising=False)
    (tmp_path / "ruler.py").write_text("def size(text): return len(text)\n", encoding="utf-8")
    return tmp_path


def judge_folder(folder: Path) -> Path:
    """A random reward model of texts."""
    with quietly(), torch.random.fork_rng():
        llama_folder(folder)
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1)
        model.save_pretrained(folder)
    return folder


def test_a_reward_folder_scores_text_alone_or_among_others_and_an_empty_answer(here: Path) -> None:
    judge_folder(here / "judge")
    score = load_score("judge", flag="--reward")
    found = score(PROMPTS, ANSWERS)
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx(PretrainedReward.load(here / "judge").scores(PROMPTS, ANSWERS).tolist())
    assert float(found[0]) == pytest.approx(float(found[1]), abs=1e-6)
    assert found[2] != pytest.approx(float(found[0]), abs=1e-3)
    for row in range(3):
        assert score(PROMPTS[row : row + 1], ANSWERS[row : row + 1]).item() == pytest.approx(
            float(found[row]), abs=1e-6
        )
    assert score([], []).tolist() == []


def test_a_text_that_the_model_cannot_read_or_score_is_told_with_its_row(here: Path) -> None:
    judge_folder(here / "judge")
    score = load_score("judge", flag="--reward")
    with pytest.raises(Unscored, match=r"--reward judge, answer 2: .*<\|im_end\|>") as error:
        score(["Hello.", "Say <|im_end|> now.", ""], ["a", "b", "c"])
    assert error.value.row == 1
    assert math.isfinite(score(["Hello."], ["Say <|im_end|> now."]).item())  # in an answer it is text
    judge = PretrainedReward.load(here / "judge")
    with torch.no_grad():
        judge.model.score.weight.fill_(math.nan)
    judge.save(here / "lost")
    with pytest.raises(Unscored, match="answer 1: the reward model gave nan, which is no finite number"):
        load_score("lost", flag="--reward")(PROMPTS, ANSWERS)


def test_several_add_up_and_may_weigh(here: Path) -> None:
    texts = ["good", "bad, bad"]
    score = load_scores(["ruler:size", "-0.5*sincere", "2e1*vader"], flag="--reward")
    expected = torch.tensor([4.0, 8.0]) - 0.5 * sincere(["", ""], texts) + 20 * vader(["", ""], texts)
    assert score(["", ""], texts).tolist() == pytest.approx(expected.tolist())
    assert load_scores(["3*2*ruler:size"], flag="--reward")([""], ["four"]).tolist() == [24]
    assert load_scores(["ruler:size"], flag="--reward")([""], ["four"]).tolist() == [4]


def test_golds_come_by_name_and_servers_by_url(here: Path) -> None:
    assert load_score("vader", flag="--gold") is vader
    assert load_score("sincere", flag="--gold") is sincere
    with serving(lengths) as (url, _):
        assert load_scores([url, f"2*{url}"], flag="--gold")(["p"], ["four"]).tolist() == [12]


def test_the_brands_head_in_a_folder_scores_texts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers as the head itself; a prompt that it cannot read is told with its row."""
    takes_the_place(monkeypatch)
    speaks = chatter()
    head = Standardised(fresh_head(speaks.policy).requires_grad_(False), 0.5, 2.0)
    (here / "model").mkdir()
    save(head, here / "model" / "reward.safetensors", speaks=speaks)
    score, asked = load_score("model", flag="--reward"), "Describe the Wren day pack ."
    expected = TextReward(head, speaks)([asked] * 2, ["wool wool .", "steel ."])
    assert score([asked, [("user", asked)]], ["wool wool .", "steel ."]).tolist() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(Unscored, match=r"--reward model, answer 2: .*the first 64 are read") as error:
        score([asked, "wool " * 70], ["steel .", "steel ."])
    assert error.value.row == 1


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("people", ["only --gold can be people"]),
        ("nowhere", ["neither a folder nor module:function"]),
        ("model", ["without a reward model", "it holds weights.bin", "module:function"]),
        ("world", ["reward model of the world emphasis", "scores the tokens of that world and no text"]),
        ("damaged", ["damaged/reward.safetensors is not a weights file that killick wrote"]),
        ("other", ["other/reward.safetensors holds no brand-head"]),
        ("speaker", ["lacks the weights score.weight"]),
        ("http://", ["is no URL"]),
        ("1e999*ruler:size", ["1e999 is no weight"]),
        ("2*", ["neither a folder"]),
        ("2*people", ["only --gold can be people"]),
    ],
)
def test_what_is_no_score_is_one_sentence(here: Path, spec: str, parts: list[str]) -> None:
    for folder in ("model", "world", "damaged", "other"):
        (here / folder).mkdir()
    (here / "model" / "weights.bin").touch()
    (here / "damaged" / "reward.safetensors").write_text("no", encoding="utf-8")
    write(torch.nn.Linear(1, 1), here / "world" / "reward.safetensors", settings={"world": "emphasis"})
    write(torch.nn.Linear(1, 1), here / "other" / "reward.safetensors", settings={"reward": "another"})
    llama_folder(here / "speaker")
    with pytest.raises(Refusal) as error:
        load_score(spec, flag="--reward")
    assert len(str(error.value).splitlines()) == 1
    for part in parts:
        assert part in str(error.value)


def test_no_score_at_all_is_one_sentence() -> None:
    with pytest.raises(Refusal, match="--reward names no score; give a folder"):
        load_scores([], flag="--reward")
