"""The anchor: a reference that is frozen when a loop begins and is found out if it moves (O-40)."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

from killick.types import Policy, Refusal


def freeze(reference: Policy, policy: Policy) -> str:
    """Put the reference into eval mode without gradient, and take the digest of its weights.

    A reference that *is* the policy moves with it, on purpose, and is left alone.

    Raises:
        Refusal: where the two share a weight that trains, or speak different vocabularies.
    """
    if reference is policy:
        return digest(reference.parameters())
    if reference.vocabulary != policy.vocabulary:
        raise Refusal(
            f"Policy and reference speak different vocabularies: {policy.vocabulary}, {reference.vocabulary}."
        )
    trained = {p.data_ptr() for p in policy.parameters() if p.requires_grad}
    if trained & {p.data_ptr() for p in reference.parameters()}:
        raise Refusal("Policy and reference share weights that train; copy the policy before the loop begins.")
    for parameter in reference.parameters():
        parameter.requires_grad_(False)
    if isinstance(reference, torch.nn.Module):
        reference.eval()
    return digest(reference.parameters())


def check_unmoved(reference: Policy, policy: Policy, *, before: str) -> None:
    """Stop a save whose KL means nothing.

    Raises:
        RuntimeError: where the reference differs from the digest that `freeze` took.
    """
    if reference is not policy and digest(reference.parameters()) != before:
        raise RuntimeError("The reference has moved since the loop began; its KL means nothing.")


def check_same(saved: str, before: str) -> None:
    """Refuse a state that was trained against another reference.

    Raises:
        Refusal: where the digests differ.
    """
    if saved != before:
        raise Refusal("This state was trained against another reference; start from the same reference.")


def digest(parameters: Iterable[Tensor]) -> str:
    """SHA-256 over all parameters in order: equal exactly when no weight has moved."""
    total = hashlib.sha256()
    for parameter in parameters:
        total.update(parameter.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
