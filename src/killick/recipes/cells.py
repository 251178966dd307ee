"""A cell is one arm at one seed: what one process runs at a time, keeps its own ledger, and is taken up alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from killick.recipes.ledger import Row
from killick.types import Step, World


@dataclass(frozen=True)
class Cell:
    """One arm at one seed, of so many steps."""

    arm: str
    seed: int
    steps: int

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.arm},seed={self.seed}"


@dataclass(frozen=True)
class Seen:
    """One step of a cell: its ledger row (None for a step that is passed over), and a few answers now and then."""

    row: Row | None
    samples: list[Row] = field(default_factory=list)


@runtime_checkable
class Resumable(Protocol):
    """The state of a loop that can be put down and taken up."""

    @property
    def step(self) -> int:
        """How many steps have been made."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that changes, as tensors and plain types."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        ...


Begun = tuple[Resumable, Iterator[Seen]]


def answers_shown(cell: Cell, step: Step, *, world: World, prompts: list[str], gold: Any, every: int = 10) -> list[Row]:
    """Six answers of every tenth step, as a person reads them."""
    if step.step % every and step.step != cell.steps - 1:
        return []
    return [
        {"arm": cell.arm, "seed": cell.seed, "step": step.step, "prompt": prompt, "response": response,
         "gold": float(value), "proxy": float(proxy)}
        for prompt, response, value, proxy in zip(
            prompts, world.render(step.rollout[:6]), gold[:6], step.proxy[:6], strict=False
        )
    ]  # fmt: skip
