from dataclasses import replace

import pytest
import torch

from killick.algorithms.reference import digest
from killick.algorithms.sft import SFTConfig, SFTState, sft
from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.types import NonFinite, Refusal, Rollout, Vocabulary
from killick.worlds.arithmetic import Arithmetic
from learners import learner

CONFIG = SFTConfig(steps=6, batch=16, learning_rate=1e-3, warmup=4)


def start(config: SFTConfig = CONFIG) -> SFTState:
    return SFTState(learner("transformer").policy, config, torch.Generator().manual_seed(0))


def test_one_answer_is_learned_together_with_its_end() -> None:
    # O-20: 200 rows of one fixed two-token answer whose pad is its end token; at least 99 % then stop within 3 tokens.
    vocabulary = Vocabulary(13, time=5, eos=2, pad=2)
    shape = TransformerConfig(13, 13, context=8, hidden=16, feed_forward=32)
    policy = TransformerPolicy(Transformer(shape, torch.Generator().manual_seed(0)), vocabulary)

    def demonstrations(count: int, generator: torch.Generator) -> Rollout:
        prompts = torch.randint(3, 10, (count, 2), generator=generator)
        responses = torch.tensor([11, 12, 2, 2, 2]).expand(count, 5)
        mask = torch.tensor([True, True, True, False, False]).expand(count, 5)
        ended = torch.ones(count, dtype=torch.bool)
        return Rollout(prompts, prompts > 0, responses, mask, torch.zeros(count, 5), ended)

    state = SFTState(policy, SFTConfig(steps=120, batch=200, learning_rate=1e-2), torch.Generator().manual_seed(1))
    losses = [step.loss for step in sft(state, demonstrations)]
    assert losses[-1] < 0.05 < losses[0]
    asked = demonstrations(500, state.generator)
    sampled = policy.sample((asked.prompts, asked.prompt_mask), 1, state.generator)
    assert float((sampled.finished & (sampled.lengths <= 3)).float().mean()) >= 0.99
    assert sampled.responses[0, :3].tolist() == [11, 12, 2]


def test_the_rate_rises_over_the_warm_up_and_then_stays() -> None:
    state = start()
    rates = [state.optimiser.learning_rate for _ in sft(state, Arithmetic().demonstrations)]
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3, 1e-3])


def test_a_split_run_equals_a_whole_one_bit_for_bit() -> None:
    whole, first, second = start(), start(replace(CONFIG, steps=3)), start()
    world = Arithmetic()
    losses = [step.loss for step in sft(whole, world.demonstrations)]
    begun = [step.loss for step in sft(first, world.demonstrations)]
    second.load_state_dict(first.state_dict())
    rest = list(sft(second, world.demonstrations))
    assert begun + [step.loss for step in rest] == losses
    assert [step.step for step in rest] == [3, 4, 5]
    assert digest(second.policy.parameters()) == digest(whole.policy.parameters())


def test_a_loss_that_is_no_number_is_named() -> None:
    state = start()
    with torch.no_grad():
        next(iter(state.policy.parameters())).fill_(torch.nan)
    with pytest.raises(NonFinite, match="SFT loss is not finite at step 0"):
        next(sft(state, Arithmetic().demonstrations))


@pytest.mark.parametrize("settings", [{"steps": 0}, {"batch": 0}, {"warmup": -1}, {"learning_rate": 0.0}])
def test_settings_that_cannot_train_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(Refusal, match=next(iter(settings))):
        start(replace(CONFIG, **settings))  # type: ignore[arg-type]
