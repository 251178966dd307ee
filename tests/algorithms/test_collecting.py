from types import SimpleNamespace
from typing import Any

import pytest
import torch

from killick.algorithms import collecting
from killick.algorithms.collecting import Collected, collect, in_pieces
from killick.ops.kl import exact_kl
from killick.types import NonFinite, Refusal, Rollout
from learners import KINDS, learner


def state_of(policy: Any, reference: Any, batch: int, seed: int = 0, step: int = 0) -> Any:
    """The little that `collect` reads of an optimiser's state: two responses to each prompt."""
    generator = torch.Generator().manual_seed(seed)
    rows = SimpleNamespace(batch=batch, n=2)
    return SimpleNamespace(policy=policy, reference=reference, config=rows, generator=generator, step=step)


def gather(kind: str) -> Collected:
    made = learner(kind)
    return collect(state_of(made.policy, made.policy, 16), made.reward, prompts=made.prompts)


@pytest.mark.parametrize("kind", KINDS)
def test_old_log_probs_agree_with_the_sampler(kind: str) -> None:
    found = gather(kind)
    # float32 against a cached pass: a few units in the sixth digit.
    assert torch.allclose(found.old, found.rollout.logprobs, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_is_at_no_distance_from_itself(kind: str) -> None:
    found = gather(kind)
    assert found.kl is not None
    assert torch.equal(found.log_ratio, torch.zeros_like(found.log_ratio))
    assert float(found.kl.abs().max()) <= 1e-6
    assert found.mean_kl == pytest.approx(0, abs=1e-6)


def test_entropy_of_a_uniform_policy_is_log_of_its_tokens() -> None:
    made = learner("table")
    with torch.no_grad():
        made.policy.logits.zero_()
    found = collect(state_of(made.policy, made.policy, 4), made.reward, prompts=made.prompts)
    assert found.entropy == pytest.approx(torch.tensor(8.0).log().item(), abs=1e-6)


def test_an_unfollowable_reference_is_named() -> None:
    made = learner("table")
    reference = learner("table").policy
    with torch.no_grad():
        reference.logits[0, 0, :7] = -torch.inf
    state = state_of(made.policy, reference, 4, step=3)
    with pytest.raises(NonFinite, match="log-ratios of policy and reference are not finite at step 3"):
        collect(state, made.reward, prompts=made.prompts)


@pytest.mark.parametrize("shape", [(32, 1), (1,), (), (31,)])
def test_a_reward_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    made = learner("table")
    state = state_of(made.policy, made.policy, 16)

    def reward(rollout: Rollout) -> Any:
        return torch.zeros(shape)

    with pytest.raises(Refusal, match=r"one number per response, shape \(32,\), not \("):
        collect(state, reward, prompts=made.prompts)


def test_a_source_that_gives_another_number_of_prompts_is_refused() -> None:
    made = learner("table")
    state = state_of(made.policy, made.policy, 16)
    with pytest.raises(Refusal, match="gave 3 prompts, not the 16"):
        collect(state, made.reward, prompts=lambda count, generator: made.prompts(3, generator))


def test_without_full_distributions_the_kl_is_the_sampled_one_per_response() -> None:
    # Log-ratios .2, -1, 0 and .5 sum to -.8 and .5 nats per response: mean -.15 (a sample may be negative).
    rollout = gather("table").rollout[:2]
    ratio = torch.tensor([[0.2, -1.0, 0.0], [0.5, 0.0, 0.0]])
    found = Collected(rollout, torch.zeros(2), torch.zeros(2, 3), ratio, None, None)
    assert found.mean_kl == pytest.approx(-0.15)
    exact = Collected(rollout, torch.zeros(2), torch.zeros(2, 3), ratio, torch.tensor([0.3, 0.1]), 1.0)
    assert exact.mean_kl == pytest.approx(0.2)
    step = exact.record(4, 0.7, {"steps_done": 1.0})
    assert (step.step, step.beta, step.entropy, step.stats) == (4, 0.7, 1.0, {"steps_done": 1.0})
    assert step.kl_k1.tolist() == pytest.approx([-0.8, 0.5])


def test_the_distance_to_a_reference_by_hand() -> None:
    # Policy (.5, .5, 0, ...), reference (.25, .75, 0, ...): log 2 at answer 0, log 2/3 at answer 1;
    # KL = (log 2 + log 2/3) / 2 = .143841; entropy log 2.
    policy, reference = (learner("table").policy for _ in range(2))
    with torch.no_grad():
        policy.logits.copy_(torch.tensor([0.5, 0.5] + [0.0] * 6).log().expand_as(policy.logits))
        reference.logits.copy_(torch.tensor([0.25, 0.75] + [0.0] * 6).log().expand_as(policy.logits))
    made = learner("table")
    found = collect(state_of(policy, reference, 4), made.reward, prompts=made.prompts)
    assert found.kl is not None
    assert found.kl.tolist() == pytest.approx([0.143841] * 8, abs=1e-6)
    charged = torch.where(found.rollout.responses == 0, 0.693147, -0.405465)
    assert torch.allclose(found.log_ratio, charged, atol=1e-6)
    assert found.entropy == pytest.approx(0.693147, abs=1e-6)
    assert found.mean_kl == pytest.approx(0.143841, abs=1e-6)


def test_scores_that_are_no_numbers_are_named_with_their_rows() -> None:
    made = learner("table")
    state = state_of(made.policy, made.policy, 2, step=7)
    poisoned = torch.tensor([0.0, torch.nan, 0.0, torch.inf])
    with pytest.raises(NonFinite, match=r"scores are not finite at step 7 in 2 of 4 rows \(row 1, 3\)"):
        collect(state, lambda rollout: poisoned, prompts=made.prompts)


def test_rows_measured_in_pieces_are_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows of 3 x 50 log-probs, two at a time."""
    draws = torch.Generator().manual_seed(0)
    one, other = (torch.randn(7, 3, 50, generator=draws).log_softmax(-1) for _ in range(2))
    whole = in_pieces(exact_kl, one, other)
    assert torch.equal(whole, exact_kl(one, other))
    sizes = []

    def counted(*parts: torch.Tensor) -> torch.Tensor:
        sizes.append(len(parts[0]))
        return exact_kl(*parts)

    monkeypatch.setattr(collecting, "PIECE", 300)
    assert torch.equal(in_pieces(counted, one, other), whole)
    assert sizes == [2, 2, 2, 1]
