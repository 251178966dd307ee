import pytest
import torch

from killick.algorithms.collecting import Collected, collect, digest
from killick.types import NonFinite
from learners import KINDS, learner


def gather(kind: str) -> Collected:
    made = learner(kind)
    generator = torch.Generator().manual_seed(0)
    asked = made.prompts(16, generator)
    return collect(made.policy, made.policy, made.reward, asked, 2, generator, 5)


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
    generator = torch.Generator().manual_seed(0)
    found = collect(made.policy, made.policy, made.reward, made.prompts(4, generator), 2, generator, 0)
    assert found.entropy == pytest.approx(torch.tensor(8.0).log().item(), abs=1e-6)


def test_an_unfollowable_reference_is_named() -> None:
    made = learner("table")
    reference = learner("table").policy
    with torch.no_grad():
        reference.logits[0, 0, :7] = -torch.inf
    generator = torch.Generator().manual_seed(0)
    asked = made.prompts(4, generator)
    with pytest.raises(NonFinite, match="log-ratios of policy and reference are not finite at step 3"):
        collect(made.policy, reference, made.reward, asked, 2, generator, 3)


def test_a_digest_changes_with_any_bit() -> None:
    tensors = [torch.zeros(3), torch.ones(2, 2)]
    before = digest(tensors)
    assert digest([t.clone() for t in tensors]) == before
    tensors[1][1, 1] = 1 + 1e-7
    assert digest(tensors) != before
