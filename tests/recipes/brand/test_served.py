"""The reward head as a file and as a judge of text: the same numbers as on rollouts, and what it refuses."""

import math
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from chatter import chatter, takes_the_place
from killick.models.asking import Unread
from killick.models.weights import write
from killick.models.words import SPECIAL
from killick.recipes.brand.preferences import preferences, split
from killick.recipes.brand.rewards import FIT, fitted_head, scored
from killick.recipes.brand.served import TextReward, load, opened, save, text_reward
from killick.rewards.fit import FitConfig, Standardised
from killick.types import Refusal
from killick.worlds.brand import question
from killick.worlds.catalogue import PRODUCTS
from straight import done

SPEAKS = chatter()
PAIRS = done(preferences(SPEAKS, seed=0, products=PRODUCTS[::3]))


@pytest.fixture(autouse=True)
def small_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    takes_the_place(monkeypatch)


def head() -> Standardised:
    pairs = split(PAIRS, PRODUCTS[::3])
    return done(fitted_head(SPEAKS, FitConfig(steps=20), pairs=pairs, seed=0))[0]


def test_text_scores_as_its_rollout_does() -> None:
    """Answers that ended, as text: the same tokens, so the same score."""
    ended = PAIRS.rollout[PAIRS.rollout.finished.nonzero()[:5, 0]]
    world = SPEAKS.world(PRODUCTS[::3])
    prompts, texts = [question(product) for product in world.asked(ended)], world.texts(ended)
    reward = head()
    assert_close(TextReward(reward, SPEAKS)(prompts, texts), scored(reward, ended).tolist(), atol=1e-5, rtol=0)


def test_a_saved_head_comes_back_whole(tmp_path: Path) -> None:
    reward, path = head(), tmp_path / "head.safetensors"
    save(reward, path, speaks=SPEAKS)
    again = load(path, SPEAKS)
    assert torch.equal(scored(again, PAIRS.rollout), scored(reward, PAIRS.rollout))


def test_a_served_head_comes_from_a_file_or_is_fitted(tmp_path: Path) -> None:
    """Both judge any text; the fitted one as the recipe's at that seed."""
    save(head(), tmp_path / "head.safetensors", speaks=SPEAKS)
    asked = ["Describe the Wren day pack .", "Why ?"], ["wool wool", ""]
    kept = opened(tmp_path / "head.safetensors")(*asked)
    assert kept == TextReward(head(), SPEAKS)(*asked)
    whole = split(done(preferences(SPEAKS, seed=3)), PRODUCTS)
    recipes, _ = done(fitted_head(SPEAKS, FIT, pairs=whole, seed=3))
    assert done(text_reward(seed=3))(*asked) == TextReward(recipes, SPEAKS)(*asked)


def test_what_cannot_be_judged_is_refused() -> None:
    judge = TextReward(head(), SPEAKS)
    with pytest.raises(Refusal, match="2 prompts and 1 answers"):
        judge(["one", "two"], ["an answer"])
    with pytest.raises(Refusal, match="Row 1, prompt: The prompt has 72 tokens with its marks"):
        judge(["wool", "wool " * 70], ["an answer", "another"])


@pytest.mark.parametrize("mark", SPECIAL)
def test_a_mark_of_the_chat_is_refused_where_it_stands_and_keeps_no_other_back(mark: str) -> None:
    """As tokens they would end a text, or change who speaks."""
    judge, prompt = TextReward(head(), SPEAKS), "Describe the Wren day pack ."
    found = judge.each([prompt, prompt, prompt + mark, "?" + mark], ["wool", f"wool {mark} steel", "wool", ""])
    assert found[0] == judge([prompt], ["wool"])[0]
    assert [one.field for one in found[1:] if isinstance(one, Unread)] == ["answer", "prompt", "prompt"]
    assert all(mark in one.reason for one in found[1:] if isinstance(one, Unread))
    with pytest.raises(Refusal, match="Row 0, answer: The answer is plain text"):
        judge([prompt], [mark])


def test_an_empty_answer_has_a_score_and_a_prompt_without_a_word_has_none() -> None:
    """The empty answer is the end token alone, which the head reads like any other."""
    judge = TextReward(head(), SPEAKS)
    (empty,), (blank,) = judge(["Why ?"], [""]), judge(["Why ?"], [" \n"])
    assert math.isfinite(empty)
    assert empty == blank
    (unread,) = judge.each([" "], ["wool"])
    assert unread == Unread("prompt", "The prompt holds no word.")
    assert judge.each([], []) == []


def test_an_answer_scores_among_others_as_it_does_alone() -> None:
    """Beside shorter and longer prompts and answers, to 1e-6."""
    judge = TextReward(head(), SPEAKS)
    prompts = [f"Describe the {product} ." for product in PRODUCTS[:40]]
    prompts[3], prompts[7] = "Why ?", "wool " * 18
    answers = [" ".join(["wool", "steel", "."] * (row % 7)) for row in range(40)]
    alone = [judge([prompt], [answer])[0] for prompt, answer in zip(prompts, answers, strict=True)]
    assert_close(judge(prompts, answers), alone, atol=1e-6, rtol=0)
    assert_close(judge(prompts[::-1], answers[::-1]), alone[::-1], atol=1e-6, rtol=0)


def test_a_file_that_is_no_head_of_this_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "head.safetensors"
    with pytest.raises(Refusal, match="no such file"):
        load(path, SPEAKS)
    write(torch.nn.Linear(2, 1), path, settings={"reward": "another"})
    with pytest.raises(Refusal, match="holds no brand-head that reads 64 tokens"):
        load(path, SPEAKS)
    write(torch.nn.Linear(2, 1), path, settings={"reward": "brand-head", "limit": 64, "model": SPEAKS.mark})
    with pytest.raises(Refusal, match="does not hold a whole brand-head"):
        load(path, SPEAKS)
    write(torch.nn.Linear(2, 1), path, settings={"reward": "brand-head", "limit": 64, "model": "another"})
    with pytest.raises(Refusal, match="another chat model"):
        load(path, SPEAKS)
