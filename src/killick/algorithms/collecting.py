"""One iteration's evidence, for every optimiser alike: sample, score, and compare with the reference."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.kl import exact_kl, k1
from killick.ops.logprobs import entropy
from killick.ops.masked import masked_mean, masked_sum
from killick.stopwatch import stopwatch
from killick.types import NonFinite, Policy, PromptSource, Refusal, Reward, Rollout, Step, check_finite

PIECE = 2**24
"""Log-probs that are measured at once."""


@dataclass(frozen=True)
class Collected:
    """A scored rollout and where it stands to the reference.

    Args:
        rollout: what was sampled.
        scores: the proxy's, before any penalty.
        old: log-probs of the policy that sampled, by the path that trains.
        log_ratio: old - reference, nats per token, 0 on padding: the sampled KL (k1).
        kl: exact nats per response, None where no full distribution is at hand or nobody asked for it.
        entropy: exact nats per token, None with `kl`.
    """

    rollout: Rollout
    scores: Float[Tensor, " batch"]
    old: Float[Tensor, "batch time"]
    log_ratio: Float[Tensor, "batch time"]
    kl: Float[Tensor, " batch"] | None
    entropy: float | None

    @property
    def mean_kl(self) -> float:
        """Nats per response: exact where it can be, the sampled estimate elsewhere."""
        return float((self.kl_k1 if self.kl is None else self.kl).mean())

    @cached_property
    def kl_k1(self) -> Float[Tensor, " batch"]:
        """Nats per response: the sampled log-ratio, which the reward charges."""
        return self.log_ratio.sum(1)

    def record(self, step: int, beta: float, stats: dict[str, float]) -> Step:
        """The iteration as the caller sees it."""
        return Step(step, self.rollout, self.scores, self.kl, self.kl_k1, beta, self.entropy, stats)


@runtime_checkable
class Rows(Protocol):
    """How many prompts an iteration asks for, and how many responses to each."""

    @property
    def batch(self) -> int:
        """Prompts."""
        ...

    @property
    def n(self) -> int:
        """Responses to each."""
        ...


@runtime_checkable
class Leashed(Protocol):
    """The state of any optimiser on a leash."""

    policy: Policy
    reference: Policy
    generator: torch.Generator
    step: int

    @property
    def config(self) -> Rows:
        """Its settings."""
        ...


def always(_: int) -> bool:
    """Measure the exact KL and the entropy at every step."""
    return True


def in_pieces(measure: Callable[..., Tensor], *distributions: Float[Tensor, "batch time vocab"]) -> Tensor:
    """Measure a few rows at a time: what is computed beside a wide vocabulary takes several times its memory."""
    each = max(1, PIECE // distributions[0][:1].numel())
    parts = zip(*(distribution.split(each) for distribution in distributions), strict=True)
    return torch.cat([measure(*part) for part in parts])


@torch.no_grad()
def collect(
    state: Leashed, reward: Reward, *, prompts: PromptSource, exact: bool = True, graph: bool = False
) -> Collected:
    """Ask for prompts, sample responses to each, score them, and measure the distance to the reference.

    Old log-probs are read by the training path, not taken from the sampler, so the first ratio is 1 for any policy.

    Args:
        state: whose policy speaks.
        reward: the proxy.
        prompts: asked for as many as the settings say.
        exact: measure the exact KL and the entropy, where a full distribution is at hand.
        graph: keep the gradient of `old`, for a loss that is taken at these very weights.

    Raises:
        Refusal: where a prompt source or a reward gives another number of rows than it was asked for.
        NonFinite: naming the first quantity that is no number, its step and rows (O-44).
    """
    policy, batch, n, step = state.policy, state.config.batch, state.config.n, state.step
    asked = prompts(batch, state.generator)
    count = asked[0].shape[0]
    if count != batch:
        raise Refusal(f"The prompt source gave {count} prompts, not the {batch} that were asked for.")
    try:
        rollout = policy.sample(asked, n, state.generator)
    except NonFinite as error:
        raise NonFinite(f"At step {step}: {error}") from error
    if len(rollout) != count * n:
        raise Refusal(f"The policy gave {len(rollout)} responses to {count} prompts, not {n} to each.")
    stopwatch.lap("sampling")
    scores = reward(rollout)
    if scores.shape != (len(rollout),):
        raise Refusal(f"A reward gives one number per response, shape ({len(rollout)},), not {tuple(scores.shape)}.")
    check_finite("scores are", scores, step=step)
    stopwatch.lap("proxy")
    with torch.set_grad_enabled(graph):
        old, full = policy.logprobs(rollout)
    stopwatch.lap("old log-probs")
    before, reference_full = state.reference.logprobs(rollout)
    log_ratio = k1(old, before)
    check_finite("log-ratios of policy and reference are", log_ratio, step=step)
    kl, spread = None, None
    if exact and full is not None and reference_full is not None:
        kl = masked_sum(in_pieces(exact_kl, full, reference_full), rollout.mask, dim=1)
        check_finite("exact KL is", kl, step=step)
        spread = float(masked_mean(in_pieces(entropy, full), rollout.mask))
    stopwatch.lap("reference")
    return Collected(rollout, scores, old, log_ratio, kl, spread)
