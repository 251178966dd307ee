"""One iteration's evidence, for every optimiser alike: sample, score, and compare with the reference."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from killick.ops.kl import exact_kl, k1
from killick.ops.logprobs import entropy
from killick.ops.masked import masked_mean, masked_sum
from killick.types import NonFinite, Policy, Prompts, Reward, Rollout, Step, check_finite


@dataclass(frozen=True)
class Collected:
    """A scored rollout and where it stands to the reference.

    Args:
        rollout: what was sampled.
        scores: the proxy's, before any penalty.
        old: log-probs of the policy that sampled, by the path that trains.
        log_ratio: old - reference, nats per token, 0 on padding: the sampled KL (k1).
        kl: exact nats per response, None where no full distribution is at hand.
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
        return float((self.log_ratio.sum(1) if self.kl is None else self.kl).mean())

    def record(self, step: int, beta: float, stats: dict[str, float]) -> Step:
        """The iteration as the caller sees it."""
        kl_k1 = self.log_ratio.sum(1)
        return Step(step, self.rollout, self.scores, self.kl, kl_k1, beta, self.entropy, stats)


@torch.no_grad()
def collect(
    policy: Policy,
    reference: Policy,
    reward: Reward,
    prompts: Prompts,
    n: int,
    generator: torch.Generator,
    step: int,
) -> Collected:
    """Sample `n` responses to each prompt, score them, and measure the distance to the reference.

    Old log-probs are read by the training path, not taken from the sampler, so the first ratio is 1 for any policy.

    Raises:
        NonFinite: naming the first quantity that is no number, its step and rows (O-44).
    """
    try:
        rollout = policy.sample(prompts, n, generator)
    except NonFinite as error:
        raise NonFinite(f"At step {step}: {error}") from error
    scores = reward(rollout)
    check_finite("scores are", scores, step)
    old, full = policy.logprobs(rollout)
    before, reference_full = reference.logprobs(rollout)
    log_ratio = k1(old, before)
    check_finite("log-ratios of policy and reference are", log_ratio, step)
    if full is None or reference_full is None:
        return Collected(rollout, scores, old, log_ratio, None, None)
    kl = masked_sum(exact_kl(full, reference_full), rollout.mask, 1)
    check_finite("exact KL is", kl, step)
    return Collected(rollout, scores, old, log_ratio, kl, float(masked_mean(entropy(full), rollout.mask)))


def digest(parameters: Iterable[Tensor]) -> str:
    """SHA-256 over all parameters in order: equal exactly when no weight has moved (O-40)."""
    total = hashlib.sha256()
    for parameter in parameters:
        total.update(parameter.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
