"""PPO with a leash: one loop for tables, small transformers and language models, at token or at sequence level.

It knows no world and never sees gold: each step record carries the rollout, and the caller scores it.
Source: Schulman et al. 2017, arXiv 1707.06347; the KL charge in the reward: Ziegler et al. 2019, arXiv 1909.08593;
PPO-ptx: Ouyang et al. 2022, arXiv 2203.02155.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from killick.algorithms.collecting import always, collect
from killick.algorithms.leash import Leash
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.ppo_targets import Targets, targets, units
from killick.algorithms.reference import check_same, check_unmoved, freeze
from killick.ops.kl import bound, count_bounded, k3
from killick.ops.losses import clipped, negative_log_likelihood, ppo_clip, value_loss
from killick.ops.masked import masked_sum
from killick.optimiser import Adam, clip_
from killick.state import restore, snapshot
from killick.stopwatch import stopwatch
from killick.types import Demonstrations, NonFinite, Policy, PromptSource, Refusal, Reward, Rollout, Step, Value


class PPOState:
    """Everything that changes while PPO runs: weights, optimisers, beta, generator, step.

    Args:
        policy: optimised in place.
        reference: never moves, unless it is `policy` itself (a moving reference, on purpose).
        value: a critic, or None for a baseline.
        config: settings.
        generator: every draw of the loop comes from it.
        leash: beta, fixed or adaptive.

    Raises:
        Refusal: where a setting is out of range, or the parts do not go together.
    """

    PARTS = ("policy", "value", "optimiser", "value_optimiser", "generator", "beta", "step", "reference_digest")

    def __init__(
        self,
        policy: Policy,
        reference: Policy,
        value: Value | None,
        config: PPOConfig,
        generator: torch.Generator,
        leash: Leash = Leash(),
    ):
        leash.validate()
        config.validate()
        config.check(policy.vocabulary, critic=value is not None)
        self.policy, self.reference, self.value = policy, reference, value
        self.config, self.generator, self.leash = config, generator, leash
        self.beta, self.step = leash.beta, 0
        self.reference_digest = freeze(reference, policy)
        ours = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        judging = [parameter for parameter in (value.parameters() if value else ()) if parameter.requires_grad]
        shared = set(ours)
        apart = [parameter for parameter in judging if parameter not in shared]
        self.optimiser, self.value_optimiser = (
            Adam(moved, rate, betas=config.adam_betas, weight_decay=config.weight_decay)
            for moved, rate in ((ours, config.learning_rate), (apart, self.value_rate))
        )

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """All that is moved, each once."""
        return self.optimiser.parameters + self.value_optimiser.parameters

    @property
    def value_rate(self) -> float:
        """The critic's learning rate, before decay; it has no warm-up."""
        return self.config.value_learning_rate or self.config.learning_rate

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


def ppo(
    state: PPOState, reward: Reward, *, prompts: PromptSource, demonstrations: Demonstrations | None = None,
    exact: Callable[[int], bool] = always,
) -> Iterator[Step]:  # fmt: skip
    """Run the remaining iterations, yielding each one's record; `state` then stands after its update.

    Args:
        state: moved in place.
        reward: the proxy.
        prompts: (count, generator) -> prompts, called anew each iteration.
        demonstrations: (count, generator) -> rollout, for the ptx term.
        exact: at which steps somebody looks at the exact KL, the entropy and what the update did, which elsewhere
            stay None and empty: to measure them takes half of a small policy's update. A leash with a target looks at
            every one.

    Raises:
        NonFinite: at the first score, log-prob or gradient that is no number.
        Refusal: where a ptx term is asked for without demonstrations.
    """
    config = state.config
    if config.ptx_coefficient and demonstrations is None:
        raise Refusal("A ptx term needs demonstrations to learn from; none were given.")
    while state.step < config.iterations:
        looked = exact(state.step) or state.leash.steered
        found = collect(state, reward, prompts=prompts, exact=looked)
        aims = targets(found, state.value, beta=state.beta, config=config, step=state.step)
        stats = update(state, aims, demonstrations=demonstrations, looked=looked)
        stopwatch.lap("update")
        record = found.record(state.step, state.beta, stats)
        if state.leash.steered:
            state.beta = state.leash.adapt(state.beta, found.mean_kl)
        state.step += 1
        yield record


def update(
    state: PPOState, batch: Targets, *, demonstrations: Demonstrations | None, looked: bool = True
) -> dict[str, float]:
    """All optimiser steps on one rollout; returns what they did, averaged over the minibatches that were read.

    Where nobody looks it returns nothing, and measures only what the settings stop at.
    """
    config = state.config
    measured = looked or config.stop_kl is not None or config.ratio_limit is not None
    shown = demonstrations(config.ptx_batch, state.generator) if config.ptx_coefficient and demonstrations else None
    planned, rows = config.epochs * config.minibatches, torch.arange(len(batch.rollout), device=batch.old.device)
    seen: list[dict[str, Tensor]] = []
    done = skipped = 0
    for index in range(planned):
        if config.minibatches > 1 and index % config.minibatches == 0:
            rows = torch.randperm(len(rows), generator=state.generator, device=rows.device)
            parts = rows.tensor_split(config.minibatches)
        minibatch = batch if config.minibatches == 1 else batch[parts[index % config.minibatches]]
        state.optimiser.zero_grad()
        state.value_optimiser.zero_grad()
        terms = backward(state, minibatch, measured=measured)
        seen.append(terms)
        if config.stop_kl is not None and terms["step_kl"] > config.stop_kl:
            break
        if config.ratio_limit is not None and terms["ratio_max"] > config.ratio_limit:
            skipped += 1
            continue
        if shown is not None:
            terms["ptx_loss"] = supervise(state, shown)
        terms["grad_norm"] = clip_(state.parameters, config.max_grad_norm)
        if not math.isfinite(terms["grad_norm"]):
            raise NonFinite(
                f"The gradient norm is {float(terms['grad_norm'])} at step {state.step}, in optimiser step {index}."
            )
        set_rates(state, index, planned=planned)
        state.optimiser.step()
        state.value_optimiser.step()
        done += 1
    if not looked:
        return {}
    means = {name: float(torch.stack([t[name] for t in seen if name in t]).float().mean()) for name in seen[0]}
    edges = {"ratio_error": float(seen[0]["ratio_error"]), "ratio_max": max(float(t["ratio_max"]) for t in seen)}
    return means | edges | {"steps_planned": planned, "steps_done": done, "steps_skipped": skipped}


def set_rates(state: PPOState, index: int, *, planned: int) -> None:
    """Warm-up and decay count planned optimiser steps, so that an early stop or a resume does not shift them (O-38)."""
    config, before = state.config, state.step * planned + index
    rise = min(1.0, (before + 1) / (config.warmup * planned)) if config.warmup else 1.0
    fall = 1 - before / (config.iterations * planned) if config.decay else 1.0
    state.optimiser.learning_rate = config.learning_rate * rise * fall
    state.value_optimiser.learning_rate = state.value_rate * fall  # a new critic leads while the policy warms up


def backward(state: PPOState, minibatch: Targets, *, measured: bool = True) -> dict[str, Tensor]:
    """Add the gradients of one minibatch, piece by piece, and return its losses; where it is measured, its ratios too.

    Sums are divided by the counts of the whole minibatch, so that the pieces do not change the objective (O-37).
    """
    mask, pieces = minibatch.rollout.mask, [minibatch]
    counted = units(mask, state.config).sum().clamp(min=1)
    if state.config.micro_batches > 1:
        rows = torch.arange(len(mask), device=mask.device)
        pieces = [minibatch[part] for part in rows.tensor_split(state.config.micro_batches) if len(part)]
    found = [piece_terms(state, piece, counted=counted, measured=measured) for piece in pieces]
    if len(found) == 1:
        return found[0]
    total = {name: torch.stack([terms[name] for terms in found]).sum() for name in found[0]}
    edges = ("ratio_error", "ratio_max") if measured else ()
    return total | {name: torch.stack([terms[name] for terms in found]).max() for name in edges}


def piece_terms(state: PPOState, piece: Targets, *, counted: Tensor, measured: bool = True) -> dict[str, Tensor]:
    """One forward and backward pass; each term is this piece's share of the minibatch mean."""
    config, mask, unit = state.config, piece.rollout.mask, units(piece.rollout.mask, state.config)
    log_ratio = state.policy.logprobs(piece.rollout)[0] - piece.old
    if config.level == "sequence":
        log_ratio = masked_sum(log_ratio, mask, dim=1)[:, None]
    loss = masked_sum(ppo_clip(log_ratio, piece.advantages, clip_range=config.clip_range), unit) / counted
    terms = {"policy_loss": loss.detach()}
    if state.value is not None and piece.values is not None and piece.returns is not None:
        errors = value_loss(
            state.value(piece.rollout), piece.returns, old=piece.values, clip_range=config.value_clip_range
        )
        critic = masked_sum(errors, mask) / counted  # a critic goes with the level token
        terms["value_loss"] = critic.detach()
        loss = loss + config.value_coefficient * critic
    loss.backward()
    if not measured:
        return terms
    log_ratio = log_ratio.detach()
    ratio = bound(log_ratio).exp()
    outside = clipped(log_ratio, piece.advantages, clip_range=config.clip_range)
    return terms | {
        "ratio_max": torch.where(unit, bound(log_ratio.abs()).exp(), 1.0).max(),
        "ratio_error": torch.where(unit, (ratio - 1).abs(), 0.0).max(),
        "step_kl": masked_sum(k3(torch.zeros_like(log_ratio), log_ratio), unit) / counted,
        "clip_fraction": (outside & unit).sum() / counted,
        "bounded": count_bounded(log_ratio, unit).float(),
    }


def supervise(state: PPOState, shown: Rollout) -> Tensor:
    """Add the gradient of the ptx term: coefficient times the mean negative log-likelihood of demonstrations (O-42)."""
    loss = negative_log_likelihood(state.policy.logprobs(shown)[0], shown.mask)
    (state.config.ptx_coefficient * loss).backward()
    return loss.detach()
