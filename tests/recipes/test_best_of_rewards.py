"""A person's reward function: found, called with what it takes, and its answers checked."""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from chatter import chatter, takes_the_place
from killick.models.weights import write
from killick.recipes.best_of_candidates import Pool
from killick.recipes.best_of_rewards import load_reward, scored, taking_both
from killick.recipes.brand_rewards import fresh_head
from killick.recipes.brand_served import TextReward, save
from killick.rewards.fit import Standardised
from killick.types import Refusal

POOLS = [Pool("p", ("a", "bb"), (2, 5)), Pool("q", ("ccc",), (3,))]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, whose modules nobody has imported yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("rubric", "broken", "failing", "needing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (len, [1, 2, 3]),
        (lambda text: len(text), [1, 2, 3]),
        (lambda text, scale=10: scale * len(text), [10, 20, 30]),
        (lambda prompt, text: f"{prompt}{text}".count("p"), [1, 1, 0]),
        (lambda *both: len(both), [2, 2, 2]),
        (lambda text: len(text) > 1, [0, 1, 1]),
        (lambda text: np.float32(len(text)), [1, 2, 3]),
        (lambda text: torch.tensor([float(len(text))]), [1, 2, 3]),
        (lambda text: Fraction(len(text), 2), [0.5, 1, 1.5]),
    ],
)
def test_a_function_of_a_text_or_of_both_gives_a_number_for_each(
    function: Callable[..., Any], expected: list[float]
) -> None:
    reward = taking_both(function, "m:f", flag="--reward")
    found = scored(POOLS, reward, name="--reward m:f")
    assert [value for row in found for value in row.tolist()] == expected
    assert [(row.dtype, len(row)) for row in found] == [(torch.float64, 2), (torch.float64, 1)]


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (math.nan, "gave nan, which is no finite number"),
        (-math.inf, "gave -inf"),
        ("5", "gave '5', which is no number"),
        (None, "gave None, which is no number"),
        ([1, 2], "no number"),
        (torch.ones(2), "no number"),
        (10**400, "no number"),
        (1j, "no number"),
    ],
)
def test_what_is_no_number_is_told_with_its_line(answer: object, part: str) -> None:
    with pytest.raises(Refusal, match="--reward m:f, line 5, its prompt's response 2") as error:
        scored(POOLS, lambda _, response: answer if response == "bb" else 1, name="--reward m:f")
    assert part in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_function_that_fails_is_told_with_its_line_and_its_words() -> None:
    def failing(_: str, response: str) -> float:
        raise KeyError(f"no such\n word: {response}")

    with pytest.raises(Refusal, match=r"line 2, its prompt's response 1: the function failed with KeyError: .*no such"):
        scored(POOLS, failing, name="--reward m:f")


def test_a_module_of_the_current_folder_is_found(here: Path) -> None:
    (here / "rubric_here.py").write_text("class Judge:\n    score = len\n", encoding="utf-8")
    (here / "deep").mkdir()
    (here / "deep" / "rubric.py").write_text("def score(prompt, text): return len(prompt)", encoding="utf-8")
    assert load_reward("rubric_here:Judge.score", flag="--reward")("p", "abc") == 3
    assert load_reward("deep.rubric:score", flag="--reward")("pp", "abc") == 2


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("rubric", ["neither a folder nor module:function"]),
        ("rubric:", ["neither a folder"]),
        (":score", ["neither a folder"]),
        ("nowhere_at_all:score", ["no module nowhere_at_all"]),
        ("rubric.deeper:score", ["no module rubric.deeper"]),
        ("rubric:scor", ["rubric has no scor", "is it score?"]),
        ("rubric:number", ["no function but int"]),
        ("rubric:three", ["must take a text, or a prompt and a response", "(a, b, c)"]),
        ("rubric:nothing", ["must take a text"]),
        ("rubric:named", ["must take a text", "(text, *, model)"]),
        ("broken:score", ["broken cannot be imported", "SyntaxError"]),
        ("failing:score", ["failing cannot be imported", "RuntimeError: no key"]),
        ("needing:score", ["needing cannot be imported", "not_installed_at_all"]),
        ("model", ["is a folder without reward.safetensors (it holds weights.bin)", "module:function"]),
        (
            "world",
            ["reward model of the world emphasis", "scores the tokens of that world and no text", "module:function"],
        ),
        ("damaged", ["damaged/reward.safetensors is not a weights file that killick wrote"]),
        ("other", ["other/reward.safetensors holds no brand-head"]),
    ],
)
def test_what_is_no_reward_is_one_sentence(here: Path, path: str, parts: list[str]) -> None:
    files = {
        "rubric.py": "number = 5\ndef score(t): return 1\ndef three(a, b, c): ...\ndef nothing(): ...\n"
        "def named(text, *, model): ...\n",
        "broken.py": "def score(:",
        "failing.py": "raise RuntimeError('no key')",
        "needing.py": "import not_installed_at_all",
        "model/weights.bin": "",
        "damaged/reward.safetensors": "no",
    }
    for folder in ("model", "world", "damaged", "other"):
        (here / folder).mkdir()
    write(torch.nn.Linear(1, 1), here / "world" / "reward.safetensors", settings={"world": "emphasis"})
    write(torch.nn.Linear(1, 1), here / "other" / "reward.safetensors", settings={"reward": "another"})
    for name, text in files.items():
        (here / name).write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as error:
        load_reward(path, flag="--reward")
    assert len(str(error.value).splitlines()) == 1
    for part in parts:
        assert part in str(error.value)


def test_the_brands_head_in_a_folder_scores_texts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers as the head itself; an answer of no token is told with its line."""
    takes_the_place(monkeypatch)
    speaks = chatter()
    head = Standardised(fresh_head(speaks.policy).requires_grad_(False), 0.5, 2.0)
    (here / "model").mkdir()
    save(head, here / "model" / "reward.safetensors", speaks=speaks)
    pools = [Pool("Describe the Wren day pack .", ("wool wool .", "steel ."), (2, 3))]
    reward = load_reward("model", flag="--reward")
    expected = TextReward(head, speaks)([pools[0].prompt] * 2, pools[0].responses)
    assert scored(pools, reward, name="--reward model")[0].tolist() == pytest.approx(expected, abs=1e-6)
    long = [Pool("wool " * 70, ("steel .",), (4,))]
    with pytest.raises(Refusal, match=r"--reward model, line 4, its prompt's response 1: .*the first 64 are read"):
        scored(long, reward, name="--reward model")
