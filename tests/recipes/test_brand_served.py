"""The reward head as a file and as a judge of text: the same numbers as on rollouts, and what it refuses."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from chatter import chatter, takes_the_place
from killick.models.weights import write
from killick.recipes.brand_preferences import preferences, split
from killick.recipes.brand_rewards import FIT, fitted_head, scored
from killick.recipes.brand_served import TextReward, load, opened, save, text_reward
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
    with pytest.raises(Refusal, match="no token lies within 64 tokens"):
        judge(["wool " * 70], ["an answer"])


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
