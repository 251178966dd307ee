"""Policy, reference and critic from one model, with and without a shared trunk."""

from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="the speakers are transformers models (extra hf)")

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reference import digest
from killick.models.speakers import Speakers, speakers
from killick.types import Prompts, Refusal, Rollout, Vocabulary
from llamas import llama

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = Vocabulary(300, time=5, eos=2, pad=0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def other_layout() -> Any:
    """A small GPT-2 with dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return GPT2LMHeadModel(GPT2Config(vocab_size=300, n_embd=16, n_layer=2, n_head=2, n_positions=64))


def prompts(count: int, generator: torch.Generator) -> Prompts:
    ids = torch.randint(3, 300, (count, 4), generator=generator)
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[::2, 0] = False
    return ids, mask


def low_tokens(rollout: Rollout) -> torch.Tensor:
    return ((rollout.responses < 150) & rollout.mask).sum(1) / rollout.lengths


def made(kind: str) -> Speakers:
    if kind == "another layout":
        return speakers(other_layout(), WORDS, train_layers=None, generator=seeded(0))
    model = llama(loud=8.0)
    model = model.bfloat16() if "bfloat16" in kind else model
    return speakers(model, WORDS, train_layers=None if "whole" in kind else 2, generator=seeded(0), temperature=0.9)


@pytest.mark.parametrize("kind", ["top", "top, bfloat16", "whole", "whole, bfloat16", "another layout"])
def test_ppo_starts_at_ratio_one_and_kl_zero_and_the_reference_stays(kind: str) -> None:
    """Three rollouts: in the first the policy is the reference, later it is not; the old log-probs are exact."""
    found = made(kind)
    assert (found.trunk is None) == (not kind.startswith("top"))
    model: Any = found.trunk.model if found.trunk else found.reference.model
    whole, top = digest(model.parameters()), digest(found.reference.parameters())
    config = PPOConfig(iterations=3, batch=16, minibatches=2, learning_rate=3e-3)
    state = PPOState(found.policy, found.reference, found.value, config, seeded(1), Leash(0.05))
    before = {p.data_ptr() for p in found.reference.parameters()}
    assert not before & {p.data_ptr() for p in state.parameters}
    steps = list(ppo(state, low_tokens, prompts=prompts))
    kls = [float(step.kl.mean()) for step in steps if step.kl is not None]
    assert kls[0] == pytest.approx(0, abs=1e-6)
    assert kls[2] > 1e-4
    assert max(step.stats["ratio_error"] for step in steps) <= 1e-5
    assert (digest(model.parameters()), digest(found.reference.parameters())) == (whole, top)
    assert not any(parameter.requires_grad for parameter in found.reference.parameters())
    assert found.value is not None
    assert bool(found.value.head.weight.any())
    state.state_dict()


@pytest.mark.parametrize("kind", ["top, bfloat16", "whole"])
def test_going_on_from_a_saved_state_is_bit_equal(kind: str) -> None:
    """Three rollouts at once; or one, saved, and two by others who have read other rows before."""
    digests = []
    for split in (False, True):
        config = PPOConfig(iterations=3, batch=8, minibatches=2, learning_rate=3e-3)
        found = made(kind)
        state = PPOState(found.policy, found.reference, found.value, config, seeded(1), Leash(0.05))
        if split:
            next(ppo(state, low_tokens, prompts=prompts))
            saved, found = state.state_dict(), made(kind)
            found.policy.logprobs(found.policy.sample(prompts(5, seeded(9)), 2, seeded(9)))
            state = PPOState(found.policy, found.reference, found.value, config, seeded(5), Leash(0.05))
            state.load_state_dict(saved)
        last = list(ppo(state, low_tokens, prompts=prompts))[-1]
        digests.append((digest(state.parameters), float(last.proxy.sum()), last.stats))
    assert digests[0] == digests[1]


def test_without_a_generator_no_critic_is_made() -> None:
    """A baseline of other responses needs none, and of a whole model it would be a third copy."""
    for layers in (None, 1):
        found = speakers(llama(), WORDS, train_layers=layers, generator=None)
        assert found.value is None
        assert found.policy.logprobs(found.policy.sample(prompts(2, seeded(0)), 1, seeded(0)))[0].isfinite().all()


def test_what_does_not_go_together_is_refused() -> None:
    """A trunk under another layout; a filter, which would make some tokens impossible for one of the two."""
    with pytest.raises(Refusal, match="layout is gpt2"):
        speakers(other_layout(), WORDS, train_layers=1, generator=seeded(0))
    for extra in ({"top_k": 5}, {"top_p": 0.9}):
        with pytest.raises(Refusal, match="top_k or top_p"):
            speakers(llama(), WORDS, train_layers=1, generator=seeded(0), **extra)
    speakers(llama(), WORDS, train_layers=1, generator=seeded(0), top_k=None, top_p=1.0)
