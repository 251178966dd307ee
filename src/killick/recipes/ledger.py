"""The ledger's columns, the same for every algorithm, and the notes between the rows."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from jaxtyping import Float
from torch import Tensor

from killick.types import Refusal, Step, Vocabulary


@dataclass(frozen=True)
class Note:
    """A sentence for the person who watches."""

    text: str


Row: TypeAlias = dict[str, Any]


def arm_name(beta: float, *parts: str) -> str:
    """An arm is named by its setting: `beta=0.1+ptx`."""
    return "+".join((f"beta={beta:g}", *parts))


def ledger_row(
    arm: str, seed: int, step: Step, gold: Float[Tensor, " batch"], vocabulary: Vocabulary, **more: float
) -> Row:
    """One iteration as a row: means over the rollout before its update.

    Args:
        arm, seed: which cell.
        step: what the optimiser yielded.
        gold: of the same rollout.
        vocabulary: `finished` is null where no response can end early.
        more: columns of this recipe's own, after the common ones.
    """
    rollout = step.rollout
    return {
        "arm": arm,
        "seed": seed,
        "step": step.step,
        "proxy": float(step.proxy.mean()),
        "gold": float(gold.mean()),
        "kl": None if step.kl is None else float(step.kl.mean()),
        "kl_k1": float(step.kl_k1.mean()),
        "beta": step.beta,
        "entropy": step.entropy,
        "length": float(rollout.lengths.float().mean()),
        "finished": None if vocabulary.eos is None else float(rollout.finished.float().mean()),
        **more,
        **step.stats,
    }


def check_vocabulary(name: str, policy: Vocabulary, world: Vocabulary) -> None:
    """Refuse a policy that cannot say what the world's responses are made of.

    Raises:
        Refusal: where the policy has fewer tokens, or stops at another end token.
    """
    if policy.size < world.size:
        raise Refusal(f"The policy has {policy.size} tokens, fewer than the {world.size} of {name}.")
    if policy.eos != world.eos:
        raise Refusal(f"The policy ends responses with token {policy.eos}, {name} with {world.eos}.")


def check_betas(betas: tuple[float, ...]) -> None:
    """Refuse arms that cannot be.

    Raises:
        Refusal: at no arm, a negative or non-finite beta, or one given twice.
    """
    if not betas:
        raise Refusal("No beta was given; name at least one, such as --betas 0.")
    for beta in betas:
        if not 0 <= beta < float("inf"):
            raise Refusal(f"beta must be 0 or more and finite, not {beta:g}; 0 takes the leash off.")
    if len(set(betas)) < len(betas):
        raise Refusal(f"Each beta is one arm, but {' '.join(f'{b:g}' for b in betas)} names one twice.")


def check_seed(seed: int) -> None:
    """Refuse a seed that cannot be.

    Raises:
        Refusal: below 0.
    """
    if seed < 0:
        raise Refusal(f"A seed must be 0 or more, not {seed}.")
