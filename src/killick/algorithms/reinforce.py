"""REINFORCE with a leash: the plain policy gradient that PPO refines, one update per rollout.

Source: Williams 1992; the leash as in Ziegler et al. 2019, arXiv 1909.08593.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from killick.algorithms.collecting import always, collect
from killick.algorithms.leash import Leash
from killick.algorithms.reference import check_same, check_unmoved, freeze
from killick.ops.advantages import group_mean, leave_one_out
from killick.optimiser import SGD, Adam, norm_of
from killick.state import restore, snapshot
from killick.stopwatch import stopwatch
from killick.types import NonFinite, Policy, PromptSource, Refusal, Reward, Step

OPTIMISERS: dict[str, type[Adam | SGD]] = {"adam": Adam, "sgd": SGD}


@dataclass(frozen=True)
class ReinforceConfig:
    """Settings of REINFORCE.

    Args:
        iterations: rollouts, each followed by one update.
        batch: prompts per rollout.
        n: responses per prompt.
        learning_rate: the optimiser's; of the gradient of a mean over all responses.
        baseline: the mean over the prompt's own responses, or over its other ones.
        optimiser: adam, whose steps hardly depend on how rarely an answer is drawn, or sgd, plain gradient ascent.
    """

    iterations: int = 301
    batch: int = 4
    n: int = 64
    learning_rate: float = 0.05
    baseline: Literal["group-mean", "leave-one-out"] = "group-mean"
    optimiser: Literal["adam", "sgd"] = "adam"

    def validate(self) -> None:
        """Refuse settings that cannot train.

        Raises:
            Refusal: naming the field.
        """
        for name, least in (("iterations", 1), ("batch", 1), ("n", 2)):
            if getattr(self, name) < least:
                raise Refusal(f"REINFORCE needs {name} of at least {least}, not {getattr(self, name)}.")
        if not 0 < self.learning_rate < float("inf"):
            raise Refusal(f"REINFORCE needs a positive learning_rate, not {self.learning_rate:g}.")
        for name, known in (("baseline", ("group-mean", "leave-one-out")), ("optimiser", tuple(OPTIMISERS))):
            if getattr(self, name) not in known:
                raise Refusal(f"REINFORCE knows the {name} {' and '.join(known)}, not {getattr(self, name)}.")


class ReinforceState:
    """Everything that changes while REINFORCE runs.

    Args:
        policy: optimised in place.
        reference: never moves, unless it is `policy` itself (a moving reference, on purpose: no leash holds then).
        config: settings.
        generator: every draw of the loop comes from it.
        leash: beta, fixed or adaptive.

    Raises:
        Refusal: where a setting is out of range, or policy and reference share weights that train.
    """

    PARTS = ("policy", "optimiser", "generator", "beta", "step", "reference_digest")

    def __init__(
        self,
        policy: Policy,
        reference: Policy,
        config: ReinforceConfig,
        generator: torch.Generator,
        leash: Leash = Leash(),
    ):
        leash.validate()
        config.validate()
        self.policy, self.reference, self.config = policy, reference, config
        self.generator, self.leash = generator, leash
        self.beta, self.step = leash.beta, 0
        self.reference_digest = freeze(reference, policy)
        trained = (parameter for parameter in policy.parameters() if parameter.requires_grad)
        self.optimiser = OPTIMISERS[config.optimiser](trained, config.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """The state as tensors and plain types; the reference is checked, not stored.

        Raises:
            RuntimeError: where the reference has moved.
        """
        check_unmoved(self.reference, self.policy, before=self.reference_digest)
        return snapshot(self, self.PARTS)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; a missing part is a KeyError (O-45)."""
        if self.reference is not self.policy:
            check_same(state["reference_digest"], self.reference_digest)
        restore(self, self.PARTS, saved=state)


def reinforce(
    state: ReinforceState, reward: Reward, *, prompts: PromptSource, exact: Callable[[int], bool] = always
) -> Iterator[Step]:
    """Run the remaining iterations, yielding each one's record; `state` then stands after its update.

    The score function is multiplied by (score - beta log-ratio - baseline), a mean over all responses.

    Args:
        state: moved in place.
        reward: the proxy.
        prompts: (count, generator) -> prompts, called anew each iteration.
        exact: at which steps somebody looks at the exact KL and the entropy: it costs as much as a policy's pass over a
            table. A leash with a target looks at every one.

    Raises:
        NonFinite: at the first score, log-prob or gradient that is no number.
    """
    config = state.config
    while state.step < config.iterations:
        found = collect(state, reward, prompts=prompts, exact=exact(state.step) or state.leash.steered, graph=True)
        total = found.scores - state.beta * found.kl_k1
        compare = group_mean if config.baseline == "group-mean" else leave_one_out
        advantages = total - compare(total, config.n)
        loss = (advantages / -len(found.rollout)) @ found.old.sum(1)
        state.optimiser.zero_grad()
        loss.backward()
        norm = float(norm_of(state.optimiser.parameters))
        if not math.isfinite(norm):
            raise NonFinite(f"The gradient norm is {norm} at step {state.step}.")
        state.optimiser.step()
        stopwatch.lap("update")
        record = found.record(state.step, state.beta, {"policy_loss": float(loss.detach()), "grad_norm": norm})
        if state.leash.steered:
            state.beta = state.leash.adapt(state.beta, found.mean_kl)
        state.step += 1
        yield record
