"""The critic: starts at 0, shares nothing, and reads before a token is written."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.value import Critic
from speakers import SMALL, WORDS, rollout_of, seeded, speaker


def opinionated(policy: TransformerPolicy) -> Critic:
    """A critic whose head is no longer 0."""
    critic = Critic.from_network(policy.network)
    torch.nn.init.normal_(critic.network.head.weight, generator=seeded(3))
    return critic.requires_grad_(False)


@pytest.mark.parametrize("config", [SMALL, TransformerConfig.llama(9, 9, 12, hidden=16, heads=2, feed_forward=24)])
def test_a_critic_starts_by_expecting_nothing(config: TransformerConfig) -> None:
    """Exactly 0 everywhere, one number per response token, with or without biases."""
    policy = speaker(config)
    rollout = rollout_of(policy)
    values = Critic.from_network(policy.network)(rollout)
    assert values.shape == rollout.responses.shape
    assert not bool(values.any())


def test_a_critic_holds_copies_of_the_body_and_shares_no_storage() -> None:
    """Every tensor but the head is equal, and none stands at the same place in memory."""
    policy = speaker()
    critic = Critic.from_network(policy.network)
    mine, theirs = critic.network.state_dict(), policy.network.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs if not name.startswith("head."))
    assert mine["head.weight"].shape == (1, 16)
    places = {p.untyped_storage().data_ptr() for p in policy.parameters()}
    assert not places & {p.untyped_storage().data_ptr() for p in critic.parameters()}


def test_a_critic_takes_a_copy_of_a_head_that_is_given() -> None:
    """Equal weights elsewhere in memory; with a bias even where the network has none."""
    policy = speaker(TransformerConfig.llama(9, 9, 12, hidden=16, heads=2, feed_forward=24))
    head = torch.nn.Linear(16, 1).requires_grad_(False)
    critic = Critic.from_network(policy.network, head=head)
    assert torch.equal(critic.network.head.weight, head.weight)
    assert torch.equal(critic.network.head.bias, head.bias)
    assert critic.network.head.weight.data_ptr() != head.weight.data_ptr()
    assert critic.network.head.weight.requires_grad


def test_training_the_critic_leaves_the_policy_alone() -> None:
    """Log-probs bit-equal before and after every weight of the critic has moved."""
    policy = speaker()
    rollout, critic = rollout_of(policy), opinionated(policy)
    before, value = policy.logprobs(rollout)[0].detach(), critic(rollout)
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter.add_(0.1)
    assert torch.equal(policy.logprobs(rollout)[0].detach(), before)
    assert not torch.equal(critic(rollout), value)


def test_the_weights_of_a_critic_can_be_trained_even_from_a_frozen_network() -> None:
    """A reference is frozen; its copy must not be."""
    policy = speaker().requires_grad_(False)
    critic = Critic.from_network(policy.network)
    assert all(p.requires_grad for p in critic.parameters())
    critic(rollout_of(policy)).sum().backward()
    assert critic.network.head.weight.grad is not None


def test_a_value_is_read_before_its_token_is_written() -> None:
    """Change response token 2: values 0 to 2 stay (1e-6), value 3 moves."""
    policy = TransformerPolicy(Transformer(SMALL, seeded(0)), replace(WORDS, eos=None))
    rollout, critic = rollout_of(policy), opinionated(policy)
    other = rollout.responses.clone()
    other[:, 2] = (other[:, 2] + 1) % 7
    before, after = critic(rollout), critic(replace(rollout, responses=other))
    assert_close(after[:, :3], before[:, :3], atol=1e-6, rtol=0)
    assert float((after[:, 3] - before[:, 3]).abs().min()) > 1e-4


def test_real_values_are_blind_to_padding_on_either_side_and_to_neighbours() -> None:
    """Any id behind the end, two columns in front, one row alone: 1e-5."""
    policy = speaker()
    rollout, critic = rollout_of(policy), opinionated(policy)
    assert not bool(rollout.mask.all())
    values, mask = critic(rollout), rollout.mask
    filled = replace(rollout, responses=rollout.responses.where(mask, 3))
    assert_close(critic(filled)[mask], values[mask], atol=1e-6, rtol=0)
    front = torch.full((12, 2), 5)
    longer = replace(
        rollout,
        prompts=torch.cat((front, rollout.prompts), 1),
        prompt_mask=torch.cat((torch.zeros_like(front, dtype=torch.bool), rollout.prompt_mask), 1),
    )
    assert_close(critic(longer)[mask], values[mask], atol=1e-5, rtol=1e-5)
    assert_close(critic(rollout[3:4]), values[3:4], atol=1e-5, rtol=1e-5)


def test_a_state_comes_back_bit_equal_and_a_missing_piece_is_an_error() -> None:
    """As every learner's."""
    policy = speaker()
    critic, other = opinionated(policy), Critic.from_network(policy.network)
    other.load_state_dict(critic.state_dict())
    rollout = rollout_of(policy)
    assert torch.equal(critic(rollout), other(rollout))
    state = critic.state_dict()
    del state["network.head.weight"]
    with pytest.raises(RuntimeError, match=r"head\.weight"):
        other.load_state_dict(state)
