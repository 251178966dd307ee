"""A reward model and a critic on the policy's own trunk."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.testing import assert_close

pytest.importorskip("transformers", reason="a trunk is a transformers model (extra hf)")

from killick.algorithms.leash import Leash
from killick.algorithms.ppo import PPOState, ppo
from killick.algorithms.ppo_config import PPOConfig
from killick.models.judging import PretrainedReward
from killick.models.speakers import speakers
from killick.models.texts import Texts
from killick.models.top_reader import TopCritic, TopReader, apart
from killick.models.trunk import TopPolicy, Trunk
from killick.types import Prompts, Refusal, Rollout, Vocabulary
from llamas import llama, tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = Vocabulary(300, time=5, eos=2, pad=0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def judge(base: Any) -> Any:
    """A reward model with the bottom of a language model, another top, and a head."""
    from transformers import LlamaForSequenceClassification

    config = deepcopy(base.config)
    config.num_labels = 1
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = LlamaForSequenceClassification(config)
    model.model.load_state_dict(base.model.state_dict())
    with torch.no_grad():
        for layer in model.model.layers[2:]:
            for parameter in layer.parameters():
                parameter.mul_(1.2)
        model.score.weight.mul_(10)
    return model.eval()


def prompts(count: int, generator: torch.Generator) -> Prompts:
    ids = torch.randint(3, 300, (count, 4), generator=generator)
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[::2, 0] = False
    return ids, mask


def score(model: Any, states: torch.Tensor, rollout: Rollout) -> torch.Tensor:
    last = rollout.prompts.shape[1] + rollout.lengths - 1
    return model.score(states[torch.arange(len(rollout)), last])[:, 0]


def test_a_reward_model_on_the_trunk_gives_the_librarys_scores_and_gives_up_its_bottom() -> None:
    base = llama(layers=4, loud=8.0)
    model, trunk = judge(base), Trunk(base, 2)
    rollout = TopPolicy(trunk, WORDS).sample(prompts(6, seeded(0)), 2, seeded(1))
    real = torch.cat((rollout.prompt_mask, rollout.mask), 1)
    ids = torch.cat((rollout.prompts, rollout.responses), 1)
    with torch.no_grad():
        out = model.model(ids, attention_mask=real.long(), position_ids=(real.cumsum(1) - 1).clamp(min=0))
        expected = score(model, out.last_hidden_state, rollout)
        reader = TopReader(trunk, model)
        found = score(model, reader(rollout), rollout)
    assert float(expected.std()) > 0.01
    assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert model.model.layers[1] is base.model.layers[1]
    assert model.model.embed_tokens is base.model.embed_tokens
    assert {p.data_ptr() for p in reader.parameters()} == {
        p.data_ptr() for part in (*model.model.layers[2:], model.model.norm) for p in part.parameters()
    }


def test_what_is_not_the_trunk_is_told_and_refused() -> None:
    base = llama(layers=4)
    trunk = Trunk(base, 2)
    assert apart(trunk, judge(base)) is None
    for name, why in (
        ("model.layers.1.mlp.up_proj.weight", "another layer 2"),
        ("model.embed_tokens.weight", "embedding"),
    ):
        model = judge(base)
        with torch.no_grad():
            model.get_parameter(name)[0, 0] += 0.1
        assert why in str(apart(trunk, model))
        with pytest.raises(Refusal, match=why):
            TopReader(trunk, model)
    assert apart(trunk, judge(llama(layers=3))) == "has another layout"


def test_a_critic_begins_as_the_reward_model_and_trains_apart_from_it() -> None:
    """O-41: after each token it says what the head says of the state before it; PPO moves it, and no score."""
    base = llama(layers=4, loud=8.0)
    model = judge(base)
    found = speakers(base, WORDS, train_layers=2, generator=seeded(0))
    assert found.trunk is not None
    critic = TopCritic(found.trunk, model)
    reader = TopReader(found.trunk, model)
    rollout = found.policy.sample(prompts(6, seeded(0)), 2, seeded(1))
    with torch.no_grad():
        states = reader(rollout)
        assert_close(critic(rollout)[:, 1:], model.score(states[:, 4:-1])[..., 0], atol=1e-6, rtol=0)
        scores, values = score(model, states, rollout), critic(rollout)

    def reward(asked: Rollout) -> torch.Tensor:
        with torch.no_grad():
            return score(model, reader(asked), asked)

    config = PPOConfig(iterations=5, batch=8, learning_rate=3e-3)
    state = PPOState(found.policy, found.reference, critic, config, seeded(1), Leash(0.05))
    assert len(list(ppo(state, reward, prompts=prompts))) == 5
    assert torch.equal(reward(rollout), scores)
    assert not torch.allclose(critic(rollout), values, atol=1e-3)


def test_scores_of_texts_on_the_trunk_are_those_off_it_and_finished_answers_are_remembered() -> None:
    """In float32 to 1e-5; rows that the policy's log-probs have read are not read again."""
    base = llama(layers=4, loud=8.0)
    trunk, texts = Trunk(base, 2), Texts(tokenizer(), chat=False)
    reward = PretrainedReward(judge(base), texts)
    asked, said = ["I saw", "My honest review of the lamp:", "I saw"], ["a bird.", "it was good", ""]
    before = reward.scores(asked, said)
    assert_close(reward.on(trunk).scores(asked, said), before, atol=1e-5, rtol=1e-5)
    trunk.forget()
    TopPolicy(trunk, texts.vocabulary(30, size=300)).logprobs(reward.read(asked, said))
    held = len(trunk.memo)
    assert held == 3
    assert_close(reward.scores(asked, said), before, atol=1e-5, rtol=1e-5)
    assert len(trunk.memo) == held
