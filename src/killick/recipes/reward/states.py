"""The states of responses under a frozen model: read once, kept in the cache piece by piece, with the time it takes."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from killick.algorithms.reference import digest
from killick.models.judging import PretrainedReward
from killick.recipes.ledger import Note
from killick.rundir.cache import State, cached
from killick.stopwatch import moment
from killick.types import Rollout, check_finite

PIECE = 256
"""Responses whose states are kept together: what a stop may lose."""
LONG = 60
"""Seconds from which on a person is told beforehand."""
KEPT = "What has been read is kept: you may stop it, and begin again."


@dataclass(frozen=True)
class Progress:
    """How far a long piece of work has come.

    Args:
        what: is done.
        done, total: in any unit that takes time evenly.
    """

    what: str
    done: int
    total: int


def read_states(
    judge: PretrainedReward, rollout: Rollout
) -> Generator[Note | Progress, None, Float[Tensor, "row hidden"]]:
    """The pooled state of each row, float32; those that an earlier run has read come from the cache."""
    tokens = rollout.prompt_mask.sum(1) + rollout.lengths
    total, done = int(tokens.sum()), 0
    mark = digest(judge.model.base_model.parameters())
    settings = {"model": mark, "dtype": str(judge.model.dtype), "device": str(judge.model.device)}
    pieces, told = [], False
    for rows in torch.arange(len(rollout)).split(PIECE):
        piece, sizes = rollout[rows], tokens[rows]

        def build(
            piece: Rollout = piece, sizes: Tensor = sizes, done: int = done
        ) -> Generator[Note | Progress, None, State]:
            nonlocal told
            found, began, first = [], moment(), done
            for at, states in judge.batches(piece):
                check_finite("The model's states are", states)
                found.append((at, states))
                done += int(sizes[at].sum())
                if not told:
                    told = True
                    words = estimate_words(moment().wall - began.wall, done - first, left=total - done)
                    yield from [Note(f"{len(rollout):,} responses: {words} {KEPT}")] if words else []
                yield Progress("tokens of responses read", done, total)
            order = torch.cat([at for at, _ in found]).argsort()
            return {"states": torch.cat([states for _, states in found])[order]}

        state = yield from cached("reward-states", settings | {"ids": ids_mark(piece)}, build=build)
        pieces.append(state["states"])
        done += int(sizes.sum())
    return torch.cat(pieces)


def estimate_words(seconds: float, done: int, *, left: int) -> str:
    """How long what is left will take, from what was done; nothing where it is short."""
    if (ahead := seconds / max(1, done) * left) <= LONG:
        return ""
    return f"what is left to read takes about {max(2, round(ahead / 30)) / 2:g} min here."


def ids_mark(rollout: Rollout) -> str:
    """A hash of what is read, whatever its padding."""
    total = hashlib.sha256()
    for ids, mask in ((rollout.prompts, rollout.prompt_mask), (rollout.responses, rollout.mask)):
        total.update(ids[mask].numpy().tobytes() + mask.sum(1).numpy().tobytes())
    return total.hexdigest()
