"""The ledger's columns, the same for every algorithm, and the notes between the rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from jaxtyping import Float
from torch import Tensor

from killick.types import NonFinite, Step, Vocabulary


@dataclass(frozen=True)
class Note:
    """A sentence for the person who watches."""

    text: str


Row: TypeAlias = dict[str, Any]


@contextmanager
def in_arm(arm: str) -> Iterator[None]:
    """Name the arm in which a number broke."""
    try:
        yield
    except NonFinite as error:
        raise NonFinite(f"In arm {arm}: {error}") from error


def arm_name(beta: float, *parts: str) -> str:
    """An arm is named by its setting: `beta=0.1+ptx`."""
    return "+".join((f"beta={beta:g}", *parts))


def ledger_row(
    arm: str, seed: int, *, step: Step, gold: Float[Tensor, " batch"] | None, vocabulary: Vocabulary,
    **more: float | str | None,
) -> Row:  # fmt: skip
    """One iteration as a row: means over the rollout before its update.

    Args:
        arm: named by its setting.
        seed: of the run.
        step: what the optimiser yielded.
        gold: of the same rollout; None where nobody says.
        vocabulary: `finished` is null where no response can end early.
        more: columns of this recipe's own, after the common ones; None where nothing was measured.
    """
    rollout = step.rollout
    return {
        "arm": arm,
        "seed": seed,
        "step": step.step,
        "proxy": float(step.proxy.mean()),
        "gold": None if gold is None else float(gold.mean()),
        "kl": None if step.kl is None else float(step.kl.mean()),
        "kl_k1": float(step.kl_k1.mean()),
        "beta": step.beta,
        "entropy": step.entropy,
        "length": float(rollout.lengths.float().mean()),
        "finished": None if vocabulary.eos is None else float(rollout.finished.float().mean()),
        **more,
        **step.stats,
    }
