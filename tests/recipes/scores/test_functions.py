"""A person's own function: found, called with what it takes, and its numbers checked."""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from killick.recipes.scores.functions import load_function, taking_all
from killick.recipes.scores.text_score import Prompt, Unscored
from killick.types import Refusal

PROMPTS: list[Prompt] = ["p", [("user", "p")], "q"]
ANSWERS = ["a", "bb", "ccc"]


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
        (lambda texts: [len(text) for text in texts], [1, 2, 3]),
        (lambda answers, scale=10: np.array([scale * len(text) for text in answers]), [10, 20, 30]),
        (lambda prompts, responses: torch.tensor([float(p == "p") for p in prompts]), [1, 1, 0]),
        (lambda prompts, responses: (len(responses) for _ in prompts), [3, 3, 3]),
    ],
)
def test_a_function_of_texts_one_by_one_or_together_gives_a_number_for_each(
    function: Callable[..., Any], expected: list[float]
) -> None:
    score = taking_all(function, "m:f", flag="--reward")
    found = score(PROMPTS, ANSWERS)
    assert (found.tolist(), found.dtype) == (expected, torch.float64)
    assert score([], []).tolist() == []


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
def test_what_is_no_number_is_told_with_its_row(answer: object, part: str) -> None:
    def each(text: str) -> object:
        return answer if text == "bb" else 1

    def every(texts: list[str]) -> list[object]:
        return [each(text) for text in texts]

    for function in (each, every):
        with pytest.raises(Unscored, match="--reward m:f, answer 2: the function gave") as error:
            taking_all(function, "m:f", flag="--reward")(PROMPTS, ANSWERS)
        assert part in str(error.value)
        assert error.value.row == 1
        assert len(str(error.value).splitlines()) == 1


def test_a_function_that_fails_is_told_with_its_row_and_its_words() -> None:
    def failing(text: str) -> float:
        raise KeyError(f"no such\n word: {text}")

    with pytest.raises(Unscored, match=r"answer 1: the function failed with KeyError: .*no such"):
        taking_all(failing, "m:f", flag="--reward")(PROMPTS, ANSWERS)


def test_a_function_of_all_texts_that_fails_or_miscounts_is_one_sentence() -> None:
    with pytest.raises(Refusal, match=r"m:f failed with ZeroDivisionError: .*zero"):
        taking_all(lambda texts: 1 / 0, "m:f", flag="--reward")(PROMPTS, ANSWERS)
    with pytest.raises(Refusal, match="m:f gave 2 numbers for 3 answers; it must give one for each"):
        taking_all(lambda texts: [1, 2], "m:f", flag="--reward")(PROMPTS, ANSWERS)


def test_a_module_of_the_current_folder_is_found(here: Path) -> None:
    (here / "rubric_here.py").write_text("class Judge:\n    score = len\n", encoding="utf-8")
    (here / "deep").mkdir()
    (here / "deep" / "rubric.py").write_text("def score(prompt, text): return len(prompt)", encoding="utf-8")
    assert load_function("rubric_here:Judge.score", flag="--reward")(["p"], ["abc"]).tolist() == [3]
    assert load_function("deep.rubric:score", flag="--reward")(["pp"], ["abc"]).tolist() == [2]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("rubric", ["neither a folder nor module:function", "vader, sincere"]),
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
    ],
)
def test_what_is_no_function_is_one_sentence(here: Path, path: str, parts: list[str]) -> None:
    files = {
        "rubric.py": "number = 5\ndef score(t): return 1\ndef three(a, b, c): ...\ndef nothing(): ...\n"
        "def named(text, *, model): ...\n",
        "broken.py": "def score(:",
        "failing.py": "raise RuntimeError('no key')",
        "needing.py": "import not_installed_at_all",
    }
    for name, text in files.items():
        (here / name).write_text(text, encoding="utf-8")
    with pytest.raises(Refusal) as error:
        load_function(path, flag="--reward")
    assert len(str(error.value).splitlines()) == 1
    for part in parts:
        assert part in str(error.value)
