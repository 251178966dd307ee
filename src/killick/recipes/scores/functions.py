"""A person's own function as a score, by its import path: found, asked, its numbers checked.

It takes a text, or a prompt and a text. Where the last of its parameters is called `texts`, `answers` or `responses`,
it takes all of them in one call and returns as many numbers.
"""

import difflib
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from killick.recipes.scores.text_score import Prompt, TextScore, Unscored, as_text, one_line
from killick.types import Refusal

MANY = ("texts", "answers", "responses")
"""Names of a parameter that takes all texts at once."""


def load_function(path: str, *, flag: str) -> TextScore:
    """The function that `module:function` names, with the current folder importable.

    Raises:
        Refusal: where there is no such module or function, or it takes something else.
    """
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise Refusal(
            f"{flag} {path} is neither a folder nor module:function, as in my_rubric:score, nor vader, sincere or "
            "http://..."
        )
    found = imported(module, flag=flag)
    for part in name.split("."):
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, dir(found), 1, 0.6)
            raise Refusal(f"{flag}: {module} has no {part}{f' (is it {close[0]}?)' if close else ''}.")
        found = getattr(found, part)
    return taking_all(found, path, flag=flag)


def imported(module: str, *, flag: str) -> Any:
    """A module, looked for in the current folder first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise Refusal(f"{flag}: there is no module {error.name} in {here} or among what is installed.") from error
        raise Refusal(f"{flag}: {module} cannot be imported: {one_line(error)}.") from error
    except Exception as error:  # a person's module may do anything
        raise Refusal(f"{flag}: {module} cannot be imported: {one_line(error)}.") from error


def taking_all(found: Any, path: str, *, flag: str) -> TextScore:
    """Whatever the function takes, called with all prompts and answers.

    Raises:
        Refusal: where it can be called with neither texts alone nor prompts and texts.
    """
    name = f"{flag} {path}"
    if not callable(found):
        raise Refusal(f"{flag}: {path} is no function but {type(found).__name__}.")
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return one_by_one(found, both=False, name=name)
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = sum(each.default is each.empty for each in places)
    others = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if others or needed > 2 or not (places or any(each.kind is each.VAR_POSITIONAL for each in parameters)):
        raise Refusal(f"{flag}: {path} must take a text, or a prompt and a response, not {inspect.signature(found)}.")
    both = needed == 2 or not places
    together = bool(places) and places[int(both)].name in MANY
    return (all_at_once if together else one_by_one)(found, both=both, name=name)


def one_by_one(function: Callable[..., Any], *, both: bool, name: str) -> TextScore:
    """A function of one text as a score of many."""

    def score(prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        asked = enumerate(zip(prompts, answers, strict=True))
        return torch.tensor([each(row, prompt, answer) for row, (prompt, answer) in asked], dtype=torch.float64)

    def each(row: int, prompt: Prompt, answer: str) -> float:
        try:
            found = function(as_text(prompt), answer) if both else function(answer)
        except Exception as error:  # a person's function may do anything
            raise Unscored(row, f"the function failed with {one_line(error)}", name=name) from error
        try:
            return number(found)
        except ValueError as error:
            raise Unscored(row, str(error), name=name) from error

    return score


def all_at_once(function: Callable[..., Any], *, both: bool, name: str) -> TextScore:
    """A function of all texts as a score."""

    def score(prompts: Sequence[Prompt], answers: Sequence[str]) -> Tensor:
        given = ([as_text(prompt) for prompt in prompts], list(answers))
        if not answers:
            return torch.zeros(0, dtype=torch.float64)
        try:
            found = list(function(*given) if both else function(given[1]))
        except Exception as error:  # a person's function may do anything
            raise Refusal(f"{name} failed with {one_line(error)}.") from error
        if len(found) != len(answers):
            raise Refusal(f"{name} gave {len(found)} numbers for {len(answers)} answers; it must give one for each.")
        return torch.tensor([checked(row, one) for row, one in enumerate(found)], dtype=torch.float64)

    def checked(row: int, found: Any) -> float:
        try:
            return number(found)
        except ValueError as error:
            raise Unscored(row, str(error), name=name) from error

    return score


def number(found: Any) -> float:
    """A finite number.

    Raises:
        ValueError: saying what was given instead.
    """
    try:
        if isinstance(found, (str, bytes)):
            raise TypeError
        value = float(found)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        shown = repr(found)[:60].replace("\n", " ")
        raise ValueError(f"the function gave {shown}, which is no number") from error
    if not math.isfinite(value):
        raise ValueError(f"the function gave {value}, which is no finite number")
    return value
