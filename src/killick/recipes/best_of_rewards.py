"""A person's own reward: a function by its import path, asked once for each response, its answers checked."""

import difflib
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from killick.recipes.best_of_candidates import Pool
from killick.types import Refusal

Score: TypeAlias = Callable[[str, str], Any]
"""Prompt and response in, a number out."""


def load_reward(path: str, *, flag: str) -> Score:
    """The reward that `module:function` names, with the current folder importable; a folder goes to `load_folder`.

    The function takes a text, or a prompt and a response.

    Raises:
        Refusal: where there is no such module or function, or it takes something else.
    """
    if Path(path).is_dir():
        return load_folder(Path(path), flag=flag)
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise Refusal(f"{flag} {path} is neither a folder nor module:function, as in my_rubric:score.")
    found = imported(module, flag=flag)
    for part in name.split("."):
        if not hasattr(found, part):
            close = difflib.get_close_matches(part, dir(found), 1, 0.6)
            raise Refusal(f"{flag}: {module} has no {part}{f' (is it {close[0]}?)' if close else ''}.")
        found = getattr(found, part)
    return taking_both(found, path, flag=flag)


def load_folder(folder: Path, *, flag: str) -> Score:
    """The reward model in a folder: where a format of one becomes known, it is read here.

    Raises:
        Refusal: always, today; it says what is understood.
    """
    holds = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
    raise Refusal(
        f"{flag} {folder} is a folder (it holds {holds}), and no format of reward model is read from one yet; give "
        "module:function, a function of a text or of prompt and response that returns a number."
    )


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


def taking_both(found: Any, path: str, *, flag: str) -> Score:
    """Whatever the function takes, called with prompt and response."""
    if not callable(found):
        raise Refusal(f"{flag}: {path} is no function but {type(found).__name__}.")
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return lambda _, response: found(response)
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = sum(each.default is each.empty for each in places)
    others = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if others or needed > 2 or not (places or any(each.kind is each.VAR_POSITIONAL for each in parameters)):
        raise Refusal(f"{flag}: {path} must take a text, or a prompt and a response, not {inspect.signature(found)}.")
    if needed == 2 or not places:
        return lambda prompt, response: found(prompt, response)
    return lambda _, response: found(response)


def scored(pools: Sequence[Pool], reward: Score, *, name: str) -> list[Tensor]:
    """Each response's number, a row for each pool, float64.

    Raises:
        Refusal: at the first response for which the function fails, or gives no finite number, with its line.
    """
    return [
        torch.tensor(
            [
                number(
                    reward, pool.prompt, response=response, where=f"{name}, line {line}, its prompt's response {place}"
                )
                for place, (line, response) in enumerate(zip(pool.lines, pool.responses, strict=True), 1)
            ],
            dtype=torch.float64,
        )
        for pool in pools
    ]


def number(reward: Score, prompt: str, *, response: str, where: str) -> float:
    """One answer of the function, checked."""
    try:
        found = reward(prompt, response)
    except Exception as error:  # a person's function may do anything
        raise Refusal(f"{where}: the function failed with {one_line(error)}.") from error
    try:
        if isinstance(found, (str, bytes)):
            raise TypeError
        value = float(found)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        shown = repr(found)[:60].replace("\n", " ")
        raise Refusal(f"{where}: the function gave {shown}, which is no number.") from error
    if not math.isfinite(value):
        raise Refusal(f"{where}: the function gave {value}, which is no finite number.")
    return value


def one_line(error: BaseException) -> str:
    """What an error says, on one line."""
    said = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
