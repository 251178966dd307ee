"""What every policy owes to every optimiser, whatever speaks behind it."""

from copy import deepcopy

import pytest
import torch

from killick.types import Policy, Prompts, Rollout
from learners import KINDS, learner, padded


def draw(kind: str, count: int = 24, n: int = 2, seed: int = 0) -> tuple[Policy, Prompts, Rollout]:
    made = learner(kind)
    generator = torch.Generator().manual_seed(seed)
    asked = made.prompts(count, generator)
    return made.policy, asked, made.policy.sample(asked, n, generator)


@pytest.mark.parametrize("kind", KINDS)
class TestEveryPolicy:
    def test_it_is_a_policy(self, kind: str) -> None:
        assert isinstance(learner(kind).policy, Policy)

    def test_a_rollout_keeps_its_promises(self, kind: str) -> None:
        policy, (ids, seen), rollout = draw(kind)
        vocabulary = policy.vocabulary
        assert torch.equal(rollout.prompts, ids.repeat_interleave(2, 0))
        assert torch.equal(rollout.prompt_mask, seen.repeat_interleave(2, 0))
        assert rollout.responses.shape[1] <= vocabulary.time
        # Real tokens come first, at least one of them; what follows is padding without log-prob.
        assert torch.equal(rollout.mask, rollout.mask.cummin(1).values)
        assert bool(rollout.mask[:, 0].all())
        assert bool((rollout.logprobs[~rollout.mask] == 0).all())
        assert bool((rollout.logprobs[rollout.mask] <= 0).all())
        assert not torch.isin(rollout.responses[rollout.mask], torch.tensor(vocabulary.forbidden or (-1,))).any()
        last = rollout.responses.gather(1, rollout.lengths[:, None] - 1)[:, 0]
        if vocabulary.eos is None:
            assert bool((rollout.lengths == vocabulary.time).all())
            assert not bool(rollout.finished.any())
        else:
            assert torch.equal(rollout.finished, last == vocabulary.eos)
            assert bool((rollout.lengths[~rollout.finished] == vocabulary.time).all())
            assert 0 < int(rollout.finished.sum()) < len(rollout)

    def test_scoring_agrees_with_sampling_and_sums_to_one(self, kind: str) -> None:
        policy, _, rollout = draw(kind)
        with torch.no_grad():
            logprobs, full = policy.logprobs(rollout)
        assert full is not None
        assert torch.allclose(logprobs, rollout.logprobs, atol=1e-5)
        assert torch.allclose(full.exp().sum(-1), torch.ones(full.shape[:2]), atol=1e-5)
        assert full.shape == (*rollout.responses.shape, policy.vocabulary.size)

    def test_padded_prompts_are_answered_alike(self, kind: str) -> None:
        made = learner(kind)
        rollouts = []
        for source in (made.prompts, padded(made.prompts, 3)):
            generator = torch.Generator().manual_seed(3)
            rollouts.append(made.policy.sample(source(16, generator), 1, generator))
        assert torch.equal(rollouts[0].responses, rollouts[1].responses)
        assert torch.allclose(rollouts[0].logprobs, rollouts[1].logprobs, atol=1e-5)

    def test_a_row_is_scored_alike_alone_and_in_company(self, kind: str) -> None:
        policy, _, rollout = draw(kind)
        with torch.no_grad():
            together, _ = policy.logprobs(rollout)
            alone = torch.cat([policy.logprobs(rollout[i : i + 1])[0] for i in range(6)])
        assert torch.allclose(together[:6], alone, atol=1e-5)

    def test_the_generator_alone_decides(self, kind: str) -> None:
        first, second, other = draw(kind)[2], draw(kind)[2], draw(kind, seed=1)[2]
        assert torch.equal(first.responses, second.responses)
        assert torch.equal(first.logprobs, second.logprobs)
        assert other.responses.shape != first.responses.shape or not torch.equal(other.responses, first.responses)

    def test_its_state_travels(self, kind: str) -> None:
        policy, _, rollout = draw(kind)
        other = deepcopy(policy)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(0.1)
            other.load_state_dict(policy.state_dict())
            assert torch.equal(other.logprobs(rollout)[0], policy.logprobs(rollout)[0])
