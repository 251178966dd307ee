"""The KL penalty's strength: fixed, or steered towards a target KL."""

import math
import warnings
from dataclasses import dataclass

from killick.types import Refusal


@dataclass(frozen=True)
class Leash:
    """How hard the policy is held to its reference.

    Args:
        beta: reward units per nat at the start; fixed unless there is a target.
        target: nats per response to steer to; None leaves beta alone.
        gain: how much of the clipped error moves beta in one iteration; responses / horizon in Ziegler's words
            (256 responses and a horizon of 10,000 are a gain of 0.0256).
    """

    beta: float = 0.1
    target: float | None = None
    gain: float = 0.1

    def validate(self) -> None:
        """Refuse settings that cannot steer.

        Raises:
            Refusal: naming the field (O-36).
        """
        if not 0 <= self.beta < math.inf:
            raise Refusal(f"beta must be 0 or more and finite, not {self.beta:g}; 0 takes the leash off.")
        if self.target is None:
            return
        if not 0 < self.target < math.inf:
            raise Refusal(f"The target KL must be a positive number of nats per response, not {self.target:g}.")
        if not 0 < self.gain < math.inf:
            raise Refusal(f"The gain of an adaptive beta must be a positive number, not {self.gain:g}.")
        if self.beta == 0:
            raise Refusal("An adaptive beta must start above 0: it is multiplied, and 0 stays 0.")

    @property
    def steered(self) -> bool:
        """Whether beta moves."""
        return self.target is not None

    def adapt(self, beta: float, kl: float) -> float:
        """The next beta: beta (1 + gain clip((kl - target) / target, -0.2, 0.2)).

        A KL that is no number leaves beta as it is and warns: one bad batch must not end the control.

        Args:
            beta: in force now.
            kl: nats per response, measured in the iteration that ends (never per token: the target is not).

        Source: Ziegler et al. 2019, arXiv 1909.08593, section 2.2.
        """
        if self.target is None:
            return beta
        if not math.isfinite(kl):
            warnings.warn(f"KL is {kl}; beta stays at {beta:g}.", RuntimeWarning, stacklevel=2)
            return beta
        error = min(max(kl / self.target - 1, -0.2), 0.2)
        return beta * (1 + self.gain * error)
