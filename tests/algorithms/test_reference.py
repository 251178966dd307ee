import pytest
import torch

from killick.algorithms.reference import check_same, check_unmoved, digest, freeze
from killick.models.tabular import TabularPolicy
from killick.types import Refusal, Vocabulary
from learners import learner


def test_a_reference_is_frozen_in_eval_mode() -> None:
    policy, reference = (learner("transformer").policy for _ in range(2))
    reference.train()
    freeze(reference, policy)
    assert not any(parameter.requires_grad for parameter in reference.parameters())
    assert not any(module.training for module in reference.modules())
    assert all(parameter.requires_grad for parameter in policy.parameters())


def test_a_move_is_found_and_stillness_passes() -> None:
    policy, reference = (learner("transformer").policy for _ in range(2))
    before = freeze(reference, policy)
    check_unmoved(reference, policy, before=before)
    with torch.no_grad():
        next(reference.parameters()).add_(1e-6)
    with pytest.raises(RuntimeError, match="reference has moved"):
        check_unmoved(reference, policy, before=before)


def test_a_reference_that_is_the_policy_may_move_and_keeps_its_gradient() -> None:
    policy = learner("table").policy
    before = freeze(policy, policy)
    with torch.no_grad():
        policy.logits.add_(torch.randn(policy.logits.shape))
    check_unmoved(policy, policy, before=before)
    assert policy.logits.requires_grad


def test_sharing_a_weight_that_trains_is_refused_and_a_frozen_one_is_fine() -> None:
    # O-40; a frozen trunk under both is how one model serves as policy and reference.
    policy, reference = (learner("transformer").policy for _ in range(2))
    reference.network.embed = policy.network.embed
    with pytest.raises(Refusal, match="share weights that train"):
        freeze(reference, policy)
    policy.network.embed.requires_grad_(False)
    freeze(reference, policy)


def test_another_vocabulary_is_refused() -> None:
    policy = learner("table").policy
    other = TabularPolicy(torch.zeros(4, 1, 5), Vocabulary(5, time=1))
    with pytest.raises(Refusal, match="different vocabularies"):
        freeze(other, policy)


def test_a_state_of_another_reference_is_refused() -> None:
    check_same("a", "a")
    with pytest.raises(Refusal, match="another reference"):
        check_same("a", "b")


def test_a_digest_changes_with_any_bit() -> None:
    tensors = [torch.zeros(3), torch.ones(2, 2)]
    before = digest(tensors)
    assert digest([tensor.clone() for tensor in tensors]) == before
    tensors[1][1, 1] = 1 + 1e-7
    assert digest(tensors) != before
