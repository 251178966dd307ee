"""Settings of `killick best-of` that do not go together."""

from pathlib import Path

import pytest

from killick.cli.best_of_settings import BestOf
from killick.types import Refusal

FILE, MODEL = {"candidates": Path("a.csv")}, {"model": Path("m"), "prompts": Path("p.txt")}


@pytest.mark.parametrize("given", [FILE, MODEL, MODEL | {"n": 4, "gold": "people"}, FILE | {"gold": "vader"}])
def test_what_goes_together(given: dict[str, object]) -> None:
    BestOf(**given, reward=("vader",)).validate()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({}, "Name what to choose from"),
        (FILE | MODEL, "Name what to choose from"),
        ({"model": Path("m")}, "give both, or neither"),
        (FILE | {"prompts": Path("p.txt")}, "give both, or neither"),
        (FILE | {"n": 4}, "--n draws answers of a --model"),
        (FILE | {"gold": "people"}, "--gold people is for answers of a --model"),
        (MODEL | {"reward": ()}, "Name what chooses"),
        (MODEL | {"seed": -1}, "--seed must lie in"),
    ],
)
def test_what_does_not(given: dict[str, object], part: str) -> None:
    with pytest.raises(Refusal, match=part):
        BestOf(**{"reward": ("vader",)} | given).validate()  # type: ignore[arg-type]
