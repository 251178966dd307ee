"""A recipe that walks at random, at no cost: for tests of what runs cells, keeps their states and stops them."""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from killick.recipes.cells import Begun, Cell, Seen
from killick.recipes.ledger import Note
from killick.rundir.seeds import stage_generator
from killick.state import restore, snapshot
from killick.types import NonFinite, Refusal


@dataclass(frozen=True)
class Config:
    """How a walk goes.

    Args:
        arms: their names.
        seeds: of each.
        steps: of each walk.
        pause: seconds a step.
        refuse: the arm that is refused at its step 3.
        breaks: the arm whose numbers break at its step 3.
        stuck: seconds that step 2 takes.
    """

    arms: tuple[str, ...] = ("beta=0", "beta=1")
    seeds: tuple[int, ...] = (0,)
    steps: int = 13
    pause: float = 0.0
    refuse: str = ""
    breaks: str = ""
    stuck: float = 0.0


class Walk:
    """A walk: where it stands, and its generator."""

    def __init__(self, generator: torch.Generator):
        self.place, self.drift, self.generator, self.step = torch.zeros(3), 1.0, generator, 0

    def state_dict(self) -> dict[str, Any]:
        """All that changes."""
        return snapshot(self, ("place", "drift", "generator", "step"))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        restore(self, ("place", "drift", "generator", "step"), saved=state)


def cells(config: Config) -> list[Cell]:
    """Every arm at every seed."""
    return [Cell(arm, seed, config.steps) for arm in config.arms for seed in config.seeds]


def seconds(config: Config) -> float:
    """None worth a word."""
    return 1.0


def prepare(config: Config, seed: int) -> Generator[Note, None, tuple[float, dict[str, Any]]]:
    """A number that every arm of a seed begins with."""
    yield Note(f"Prepared seed {seed}.")
    return seed / 7, {"start": seed / 7, "odd": float("nan")}


def begin(config: Config, cell: Cell, *, prepared: float) -> Begun:
    """A walk, not yet moved."""
    state = Walk(stage_generator(cell.seed, cell.arm))
    return state, walk(config, cell, state=state, start=prepared)


def walk(config: Config, cell: Cell, *, state: Walk, start: float) -> Iterator[Seen]:
    """Steps with what was seen before each."""
    while state.step < cell.steps:
        step = state.step
        if step == 3 and cell.arm == config.refuse:
            raise Refusal("The walk was refused.")
        if step == 3 and cell.arm == config.breaks:
            raise NonFinite("The walk broke.")
        time.sleep(config.stuck if step == 2 and config.stuck else config.pause)
        row = {
            "arm": cell.arm, "seed": cell.seed, "step": step, "proxy": float(state.place.sum()) + start,
            "gold": float(state.place[0]), "kl": state.drift, "entropy": float("nan"), "length": 1.0, "finished": None,
        }  # fmt: skip
        samples = [{"arm": cell.arm, "seed": cell.seed, "step": step, "prompt": str(i)} for i in range(3)]
        state.place += torch.randn(3, generator=state.generator)
        state.drift *= 1.1
        state.step += 1
        yield Seen(row, samples if step % 5 == 0 else [])


def claims(rows: list[Any], found: dict[str, Any]) -> list[Any]:
    """Nothing is claimed of a walk."""
    return []
