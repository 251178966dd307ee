"""A person's own reward, a function by its import path or a head in a folder: asked once for each response."""

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

from killick.models.weights import REWARD_FILE, read
from killick.recipes.best_of_candidates import Pool
from killick.recipes.brand_served import NAME, opened
from killick.types import Refusal

Score: TypeAlias = Callable[[str, str], Any]
"""Prompt and response in, a number out."""


def load_reward(path: str, *, flag: str) -> Score:
    """The reward that `module:function` names, with the current folder importable; or the one in a folder.

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
    """The brand's reward head, as `killick models make brand-head` writes it: prompt and response in, a number out.

    Raises:
        Refusal: where the folder holds none, or the reward model of a world, which scores tokens.
    """
    file = folder / REWARD_FILE
    if not file.exists():
        holds = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
        raise Refusal(
            f"{flag} {folder} is a folder without {REWARD_FILE} (it holds {holds}); killick models make {NAME} --out "
            "DIR writes one, or give module:function."
        )
    world = read(file)[0].get("world")
    if world is not None:
        raise Refusal(
            f"{flag} {folder} holds a reward model of the world {world}, which scores the tokens of that world and no "
            f"text; give the brand's head (killick models make {NAME} --out DIR) or module:function."
        )
    judge = opened(file)
    return lambda prompt, response: judge([prompt], [response])[0]


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
    except Refusal as error:
        raise Refusal(f"{where}: {error}") from error
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
