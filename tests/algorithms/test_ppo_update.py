"""One update of PPO, by hand: policies of free numbers, and the gradient that reaches the optimiser."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.algorithms.collecting import collect
from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, backward, piece_terms, ppo, update
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.ppo_targets import Targets, targets
from killick.types import Rollout, Vocabulary
from killick.worlds.arithmetic import Arithmetic
from learners import Learner, learner

STILL = 1e-30
"""A learning rate at which no log-ratio moves within one update."""


class Table(torch.nn.Module):
    """Policy and critic at once: a free number for each row and place; the prompt says which row is read."""

    vocabulary = Vocabulary(2, time=3)

    def __init__(self, numbers: list[list[float]]):
        super().__init__()
        self.numbers = torch.nn.Parameter(torch.tensor(numbers))
        self.read: list[list[int]] = []

    def sample(self, prompts: Any, n: int, generator: torch.Generator) -> Rollout:
        raise NotImplementedError

    def logprobs(self, rollout: Rollout) -> tuple[torch.Tensor, None]:
        self.read.append(rollout.prompts[:, 0].tolist())
        return self.numbers[rollout.prompts[:, 0]].where(rollout.mask, 0.0), None

    def forward(self, rollout: Rollout) -> torch.Tensor:
        return self.numbers[rollout.prompts[:, 0]]


def state_of(log_ratio: list[list[float]], value: Any = None, leash: Leash = Leash(), **settings: Any) -> PPOState:
    """A state whose policy stands at these log-ratios to an old one of zeros."""
    plain = PPOConfig(batch=max(2, len(log_ratio)), epochs=1, learning_rate=STILL, max_grad_norm=1e9)
    generator = torch.Generator().manual_seed(settings.pop("seed", 0))
    return PPOState(Table(log_ratio), Table(log_ratio), value, replace(plain, **settings), generator, leash)


def batch_of(advantages: list[list[float]], lengths: list[int] | None = None, old: float = 0.0) -> Targets:
    """What an update reads; `old` stands on the padding of the old log-probs."""
    wanted = torch.tensor(advantages)
    rows = torch.arange(len(wanted))[:, None]
    mask = torch.arange(3) < torch.tensor(lengths or [3] * len(wanted))[:, None]
    zeros = torch.zeros(len(wanted), 3)
    rollout = Rollout(rows, rows >= 0, torch.zeros_like(mask, dtype=torch.long), mask, zeros, mask[:, 0])
    return Targets(rollout, zeros.masked_fill(~mask, old), wanted, None, None)


def terms_of(state: PPOState, batch: Targets) -> dict[str, float]:
    return {name: float(value) for name, value in backward(state, batch).items()}


def gradients(state: PPOState) -> torch.Tensor:
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in state.parameters]
    return torch.cat([part.flatten() for part in parts]).clone()


def watched(state: PPOState) -> list[torch.Tensor]:
    """The gradients that each optimiser step is about to use."""
    seen: list[torch.Tensor] = []
    step = state.optimiser.step

    def noted() -> None:
        seen.append(gradients(state))
        step()

    state.optimiser.step = noted  # type: ignore[method-assign]
    return seen


# One minibatch, by hand


def test_the_step_kl_of_three_tokens_by_hand() -> None:
    # O-39: e^d - 1 - d at .3, -.3, .1 is .049859, .040818, .005171; their mean is .031949.
    state, batch, three = state_of([[0.3, -0.3, 0.1]]), batch_of([[0.0] * 3]), torch.tensor(3)
    found = piece_terms(state, batch, counted=three)
    assert float(found["step_kl"]) == pytest.approx(0.031949, abs=1e-6)


@pytest.mark.parametrize("pieces", [1, 2])
def test_the_step_kl_is_a_mean_over_real_tokens_in_one_piece_or_two(pieces: int) -> None:
    # The same three numbers in rows of 2 and 1; what stands on the padding is far off.
    state = state_of([[0.3, -0.3, 9.0], [0.1, 9.0, 9.0]], micro_batches=pieces)
    found = terms_of(state, batch_of([[1.0] * 3] * 2, [2, 1], old=-9.0))
    assert found["step_kl"] == pytest.approx(0.031949, abs=1e-6)
    assert found["ratio_max"] == pytest.approx(1.349859, abs=1e-5)  # e^.3
    assert found["ratio_error"] == pytest.approx(0.349859, abs=1e-5)
    assert found["clip_fraction"] == pytest.approx(1 / 3)  # .3 alone is beyond the clip


def test_the_policy_loss_of_three_tokens_by_hand() -> None:
    # Ratios 1.349859, .740818, 1.105171 with advantages 1, 1, -1 at clip .2: -1.2 (clipped), -.740818, 1.105171;
    # mean -.278549. Gradients -A r / 3 where nothing is clipped: 0, -.246939, .368390.
    state = state_of([[0.3, -0.3, 0.1]])
    found = terms_of(state, batch_of([[1.0, 1.0, -1.0]]))
    assert found["policy_loss"] == pytest.approx(-0.278549, abs=1e-6)
    assert found["clip_fraction"] == pytest.approx(1 / 3)
    assert gradients(state).tolist() == pytest.approx([0.0, -0.246939, 0.368390], abs=1e-6)


def test_at_sequence_level_a_response_has_one_ratio_the_product_of_its_tokens() -> None:
    # Log-ratios .3 - .3 + .1 = .1 and, over two real tokens, .2 - .6 = -.4. Ratios 1.105171 and .670320, advantages 2
    # and -1: -2.210342 and .8 (clipped); mean -.705171. k3: (.005171 + .070320) / 2 = .037746.
    state = state_of([[0.3, -0.3, 0.1], [0.2, -0.6, 9.0]], level="sequence")
    found = terms_of(state, batch_of([[2.0], [-1.0]], [3, 2]))
    assert found["policy_loss"] == pytest.approx(-0.705171, abs=1e-6)
    assert found["clip_fraction"] == 0.5
    assert found["step_kl"] == pytest.approx(0.037746, abs=1e-6)
    assert found["ratio_max"] == pytest.approx(1 / 0.670320, abs=1e-5)
    # -A r / 2 on each token of row 0, nothing on the clipped row.
    assert gradients(state).tolist() == pytest.approx([-1.105171] * 3 + [0.0] * 3, abs=1e-6)


@pytest.mark.parametrize("pieces", [1, 2])
def test_the_critics_loss_of_three_tokens_by_hand(pieces: int) -> None:
    # Values 1, 2 and, in a row of its own, 4 against returns 0, 5, 1; the rest is padding. O-37: a mean over three
    # tokens, in one piece or two: (.5 + 4.5 + 4.5) / 3 = 3.166667; gradients (1, -3, 3) / 3 times .3.
    critic = Table([[1.0, 2.0, 99.0], [4.0, 99.0, 99.0]])
    state = state_of([[0.0] * 3] * 2, critic, value_coefficient=0.3, micro_batches=pieces)
    batch = batch_of([[0.0] * 3] * 2, [2, 1])
    batch = replace(batch, values=torch.zeros(2, 3), returns=torch.tensor([[0.0, 5.0, 0.0], [1.0, 0.0, 0.0]]))
    assert terms_of(state, batch)["value_loss"] == pytest.approx(3.166667)
    assert gradients(state).tolist() == pytest.approx([0.0] * 6 + [0.1, -0.3, 0.0, 0.3, 0.0, 0.0])


# Which minibatches are read, and which move the policy


@pytest.mark.parametrize(("limit", "done"), [(0.03, 0), (0.033, 4)])
def test_a_step_beyond_the_kl_limit_is_not_taken(limit: float, done: int) -> None:
    # O-39: .031949 lies between the two limits; k1 would read -.033333 and never stop.
    state = state_of([[0.3, -0.3, 0.1]], epochs=4, stop_kl=limit)
    steps = watched(state)
    stats = update(state, batch_of([[1.0] * 3]), demonstrations=None)
    assert (stats["steps_planned"], stats["steps_done"], len(steps)) == (4, done, done)
    assert len(state.policy.read) == max(done, 1)  # type: ignore[attr-defined]


def test_an_early_stop_ends_the_whole_update() -> None:
    # O-39: row 0 stands still, row 1 is too far. Whichever comes first, nothing is read after row 1.
    orders = set()
    for seed in range(8):
        state = state_of([[0.0] * 3, [0.3, -0.3, 0.1]], epochs=4, minibatches=2, stop_kl=0.03, seed=seed)
        steps = watched(state)
        stats = update(state, batch_of([[1.0] * 3] * 2), demonstrations=None)
        read = state.policy.read  # type: ignore[attr-defined]
        assert read in ([[1]], [[0], [1]])
        assert stats["steps_planned"] == 8
        assert stats["steps_done"] == len(steps) == len(read) - 1
        orders.add(len(read))
    assert orders == {1, 2}


@pytest.mark.parametrize("log_ratio", [3.0, -3.0, 10.0, -10.0])
def test_one_token_beyond_the_ratio_limit_skips_its_minibatch_only(log_ratio: float) -> None:
    # O-30: e^3 = 20 exceeds 10 either way up, though the mean ratio of the six tokens does not at 3 and -3.
    rows = [[0.0] * 3, [0.0] * 3, [0.0] * 3, [0.0, log_ratio, 0.0]]
    state = state_of(rows, epochs=3, minibatches=2, ratio_limit=10.0)
    steps = watched(state)
    stats = update(state, batch_of([[1.0] * 3] * 4), demonstrations=None)
    assert (stats["steps_done"], stats["steps_skipped"], len(steps)) == (3, 3, 3)
    assert stats["ratio_max"] == pytest.approx(torch.tensor(log_ratio).abs().exp().item(), rel=1e-5)
    assert all(gradient.view(4, 3)[3].count_nonzero() == 0 for gradient in steps)


def test_a_ratio_on_padding_skips_nothing() -> None:
    state = state_of([[0.0] * 3] * 2, ratio_limit=10.0)
    assert update(state, batch_of([[1.0] * 3] * 2, [2, 2], old=-9.0), demonstrations=None)["steps_skipped"] == 0


@pytest.mark.parametrize("pieces", [1, 2])
def test_minibatches_are_shuffled_anew_each_epoch_and_cover_every_row_once(pieces: int) -> None:
    orders = []
    for seed in (0, 1):
        state = state_of([[0.0] * 3] * 8, epochs=3, minibatches=3, micro_batches=pieces, seed=seed)
        update(state, batch_of([[1.0] * 3] * 8), demonstrations=None)
        read = state.policy.read  # type: ignore[attr-defined]
        assert len(read) == 9 * pieces
        flat = [row for rows in read for row in rows]
        epochs = [tuple(flat[start : start + 8]) for start in (0, 8, 16)]
        assert all(sorted(epoch) == list(range(8)) for epoch in epochs)
        orders += epochs
    assert len({*orders, tuple(range(8))}) == 7


def test_shared_weights_of_policy_and_critic_are_moved_once_a_step() -> None:
    # Adam's first step is the learning rate in size, whatever the gradient; twice over would be more.
    both = Table([[0.0] * 3])
    state = PPOState(both, Table([[0.0] * 3]), both, PPOConfig(epochs=1, learning_rate=0.125), torch.Generator())
    assert len(state.parameters) == 1
    batch = replace(batch_of([[1.0] * 3]), values=torch.zeros(1, 3), returns=torch.ones(1, 3))
    update(state, batch, demonstrations=None)
    assert both.numbers.tolist()[0] == pytest.approx([0.125] * 3, abs=1e-6)
    assert [float(steps) for steps in state.optimiser.steps] == [1.0]


def test_the_critic_may_learn_at_a_rate_of_its_own() -> None:
    # Adam's first step is the rate in size, whatever the gradient: 1/8 for the policy, 1/2 for the critic.
    policy, critic = Table([[0.0] * 3]), Table([[0.0] * 3])
    for rate, expected in ((None, 0.125), (0.5, 0.5)):
        config = PPOConfig(epochs=1, learning_rate=0.125, value_learning_rate=rate)
        ours, judge = deepcopy(policy), deepcopy(critic)
        state = PPOState(ours, Table([[0.0] * 3]), judge, config, torch.Generator())
        batch = replace(batch_of([[1.0] * 3]), values=torch.zeros(1, 3), returns=torch.ones(1, 3))
        update(state, batch, demonstrations=None)
        assert ours.numbers.tolist()[0] == pytest.approx([0.125] * 3, abs=1e-6)
        assert judge.numbers.tolist()[0] == pytest.approx([expected] * 3, abs=1e-6)


def test_both_optimisers_take_the_settings_of_adam() -> None:
    made = learner("transformer")
    plain, other = made.state(), made.state(adam_betas=(0.9, 0.95), weight_decay=0.1)
    for optimiser in (plain.optimiser, plain.value_optimiser):
        assert (optimiser.betas, optimiser.weight_decay) == ((0.9, 0.999), 0.0)
    for optimiser in (other.optimiser, other.value_optimiser):
        assert (optimiser.betas, optimiser.weight_decay) == ((0.9, 0.95), 0.1)


def rates_of(part: str = "optimiser", **settings: Any) -> list[float]:
    """The learning rate of every optimiser step."""
    state = state_of([[0.0] * 3] * 2, iterations=10, epochs=4, learning_rate=1e-3, **settings)
    rates: list[float] = []
    optimiser = getattr(state, part)
    optimiser.step = lambda: rates.append(optimiser.learning_rate)
    for state.step in range(10):
        update(state, batch_of([[1.0] * 3] * 2), demonstrations=None)
    return rates


def test_the_rate_falls_over_planned_optimiser_steps() -> None:
    # O-38: 10 iterations x 4 epochs x 2 minibatches from 1e-3: a share 1 - k / 80 before step k.
    rates = rates_of(minibatches=2, decay=True)
    assert rates == pytest.approx([1e-3 * (1 - k / 80) for k in range(80)])
    assert [rates[k] for k in (8, 10, 40, 79)] == pytest.approx([9e-4, 8.75e-4, 5e-4, 1.25e-5])


@pytest.mark.parametrize("decay", [False, True])
def test_the_rate_rises_over_the_iterations_of_the_warm_up(decay: bool) -> None:
    # 5 iterations of 4 epochs: a share (k + 1) / 20 before step k, then 1; with decay, times 1 - k / 40.
    fall = [1 - k / 40 if decay else 1.0 for k in range(40)]
    assert rates_of(warmup=5, decay=decay) == pytest.approx([1e-3 * min(1, (k + 1) / 20) * fall[k] for k in range(40)])
    # The critic leads: its rate is full at once.
    assert rates_of("value_optimiser", warmup=5, decay=decay) == pytest.approx([1e-3 * share for share in fall])


# The gradient of a real model


def expected_gradients(state: PPOState, batch: Targets, demonstrations: Rollout) -> list[torch.Tensor]:
    """Of PPO at ratio 1, of the critic and of the demonstrations' likelihood, each written out anew."""
    assert state.value is not None
    assert batch.returns is not None
    mask = batch.rollout.mask
    losses = (
        -(batch.advantages * state.policy.logprobs(batch.rollout)[0])[mask].mean(),
        ((state.value(batch.rollout) - batch.returns)[mask] ** 2).mean() / 2,
        -state.policy.logprobs(demonstrations)[0][demonstrations.mask].mean(),
    )
    found = [torch.autograd.grad(loss, state.parameters, allow_unused=True) for loss in losses]
    blanks = [torch.zeros_like(p) for p in state.parameters]
    return [
        torch.cat([(b if g is None else g).flatten() for g, b in zip(row, blanks, strict=True)]).detach()
        for row in found
    ]


def ready(made: Learner, coefficient: float, limit: float) -> tuple[PPOState, Targets, Rollout]:
    """A state with a critic that has an opinion, its targets, and the demonstrations that its next step will draw."""
    settings: Any = {"epochs": 1, "minibatches": 1, "ptx_coefficient": coefficient, "ptx_batch": 16}
    state = made.state(value_coefficient=0.3, max_grad_norm=limit, batch=16, gamma=0.9, **settings)
    batch = targets(
        collect(state, made.reward, prompts=made.prompts), state.value, beta=state.beta, config=state.config
    )
    state.generator.manual_seed(5)
    demonstrations = Arithmetic().demonstrations(16, torch.Generator().manual_seed(5))
    return state, batch, demonstrations


@pytest.mark.parametrize("coefficient", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("limit", [1e6, 0.05])
def test_the_optimiser_gets_ppo_plus_ptx_plus_critic_clipped_together(coefficient: float, limit: float) -> None:
    # O-42: gradient(c) = gradient of PPO + c x gradient of the likelihood (+ .3 x the critic's), within 1e-6.
    state, batch, demonstrations = ready(learner("transformer"), coefficient, limit)
    policy, critic, nll = expected_gradients(state, batch, demonstrations)
    assert all(float(part.norm()) > 0.01 for part in (policy, critic, nll))
    whole = policy + 0.3 * critic + coefficient * nll
    seen = watched(state)
    stats = update(state, batch, demonstrations=Arithmetic().demonstrations)
    norm = float(whole.norm())
    assert norm > 0.05
    assert len(seen) == 1
    assert torch.allclose(seen[0], whole * min(1.0, limit / norm), rtol=0, atol=1e-6)
    assert float(seen[0].norm()) <= limit
    assert stats["grad_norm"] == pytest.approx(norm, rel=1e-5)
    assert ("ptx_loss" in stats) == (coefficient > 0)


def test_demonstrations_are_drawn_once_an_iteration_and_reused_like_the_rollout() -> None:
    made, asked = learner("transformer"), list[int]()

    def demonstrations(count: int, generator: torch.Generator) -> Rollout:
        asked.append(count)
        return Arithmetic().demonstrations(count, generator)

    state = made.state(ptx_coefficient=1.0, ptx_batch=16, iterations=2, batch=8, epochs=3, minibatches=2)
    rows = list(ppo(state, made.reward, prompts=made.prompts, demonstrations=demonstrations))
    assert [row.stats["steps_done"] for row in rows] == [6, 6]
    assert asked == [16, 16]


def test_with_zero_advantages_the_policys_gradient_is_the_supervised_one() -> None:
    # O-42, at c = 1; the logged terms are apart, and the policy's is 0.
    state, batch, demonstrations = ready(learner("transformer"), 1.0, 1e6)
    batch = replace(batch, advantages=torch.zeros_like(batch.advantages))
    _, critic, nll = expected_gradients(state, batch, demonstrations)
    expected = -state.policy.logprobs(demonstrations)[0][demonstrations.mask].mean()
    seen = watched(state)
    stats = update(state, batch, demonstrations=Arithmetic().demonstrations)
    assert torch.allclose(seen[0], 0.3 * critic + nll, rtol=0, atol=1e-7)
    assert stats["policy_loss"] == 0.0
    assert stats["ptx_loss"] == pytest.approx(float(expected.detach()), abs=1e-6)


# The leash in the loop


@pytest.mark.parametrize("kind", ["transformer", "sequence"])
def test_beta_follows_the_mean_kl_per_response(kind: str) -> None:
    # O-36: the target is chosen so that the exact KL per response is 10 % above it, inside the clip; per
    # token, or a quarter of it, would be cut off at a fifth, and k1 differs. Gain .5: .05 x (1 + .5 x .1) = .0525.
    made = learner(kind)

    def moved(leash: Leash) -> PPOState:
        state = made.state(leash=leash, iterations=2, batch=16, epochs=1)
        with torch.no_grad():
            for parameter in state.policy.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
        return state

    measured = next(ppo(moved(Leash(0.05)), made.reward, prompts=made.prompts))
    assert measured.kl is not None
    kl = float(measured.kl.mean())
    assert kl > 0.01
    assert abs(float(measured.kl_k1.mean()) / kl - 1) > 0.01
    leash = Leash(0.05, target=kl / 1.1, gain=0.5)
    state = moved(leash)
    loop = ppo(state, made.reward, prompts=made.prompts)
    first = next(loop)
    assert first.beta == 0.05
    assert state.beta == leash.adapt(0.05, kl) == pytest.approx(0.0525, abs=1e-6)
    assert next(loop).beta == pytest.approx(0.0525, abs=1e-6)
