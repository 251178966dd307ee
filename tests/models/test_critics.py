"""A critic that begins as a reward model: its first readings are the judge's, it moves, and the judge does not."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from aligning import judge_of
from killick.algorithms.reference import digest
from killick.models.critics import JudgingValue, check_reads, critic_from_judge, stands_on
from killick.models.speakers import WholeValue
from killick.models.texts import Texts
from killick.models.trunk import Trunk
from killick.types import Refusal, Rollout
from llamas import llama, tokenizer


def rollout() -> Rollout:
    """Two prompts of unequal length, answers of two and four tokens."""
    prompts = torch.tensor([[0, 7, 8], [9, 10, 11]])
    prompt_mask = torch.tensor([[False, True, True], [True, True, True]])
    responses = torch.tensor([[20, 2, 0, 0], [21, 22, 23, 2]])
    mask = torch.tensor([[True, True, False, False], [True] * 4])
    return Rollout(prompts, prompt_mask, responses, mask, torch.zeros(2, 4), torch.tensor([True, True]))


def readings(model: Any, seen: Rollout) -> list[float]:
    """What the library's own judge says of each prefix, before each real response token."""
    found = []
    for row in range(len(seen)):
        prompt = seen.prompts[row][seen.prompt_mask[row]]
        for stop in range(int(seen.lengths[row])):
            ids = torch.cat((prompt, seen.responses[row, :stop]))[None]
            with torch.no_grad():
                states = model.base_model(ids).last_hidden_state
                found.append(float(model.score(states[:, -1])[0, 0]))
    return found


@pytest.mark.parametrize("kind", ["shared trunk", "own trunk", "whole"])
def test_it_begins_by_reading_each_prefix_as_the_judge_does(kind: str) -> None:
    model = llama()
    judge = judge_of(llama(seed=1 if kind == "own trunk" else 0))
    trunk = None if kind == "whole" else Trunk(model, 1)
    before = digest(judge.parameters())
    critic = critic_from_judge(judge, trunk, compute=torch.float32)
    if isinstance(critic, JudgingValue):
        assert (critic.trunk is trunk) == (kind == "shared trunk")
        assert {name.split(".")[0] for name in critic.state_dict()} == {"layers", "norm", "head"}
    else:
        assert isinstance(critic, WholeValue)
    seen = rollout()
    assert_close(critic(seen)[seen.mask], torch.tensor(readings(judge, seen)), atol=1e-5, rtol=1e-5)
    critic(seen)[seen.mask].square().sum().backward()
    moved = [(each, each.grad) for each in critic.parameters() if each.grad is not None and each.grad.any()]
    assert len(moved) > 8
    with torch.no_grad():
        for parameter, gradient in moved:
            parameter.sub_(0.1 * gradient)
    assert digest(judge.parameters()) == before  # O-41
    assert not torch.allclose(critic(seen)[seen.mask], torch.tensor(readings(judge, seen)), atol=1e-3)


def test_a_trunk_is_shared_only_where_every_weight_below_is_the_same() -> None:
    """Top layers may differ; the last bit of a bottom one, a depth or a width may not."""
    trunk = Trunk(llama(), 1)
    judge = judge_of(llama())
    assert stands_on(judge, trunk)
    judge.base_model.layers[-1].mlp.up_proj.weight.data.add_(1.0)
    assert stands_on(judge, trunk)
    judge.base_model.layers[0].mlp.up_proj.weight.data[0, 0].add_(1e-3)
    assert not stands_on(judge, trunk)
    assert not stands_on(judge_of(llama(layers=4)), trunk)
    assert not stands_on(judge_of(llama(vocabulary=310)), trunk)


def test_a_trunk_of_its_own_keeps_no_rollout_but_the_last() -> None:
    critic = critic_from_judge(judge_of(llama(seed=1)), Trunk(llama(), 1), compute=torch.float32)
    assert isinstance(critic, JudgingValue)
    seen = rollout()
    with torch.no_grad():
        critic(seen)
        critic(seen[:1])
    assert len(critic.trunk.memo) == 1


def test_a_judge_with_another_tokenizer_or_frame_is_refused_by_its_name() -> None:
    class Judge:
        texts = Texts(tokenizer(template=True))

    check_reads(Judge(), Texts(tokenizer(template=True)), name="--reward judge")
    with pytest.raises(Refusal, match=r"--reward judge has another tokenizer or chat template"):
        check_reads(Judge(), Texts(tokenizer(template=False)), name="--reward judge")
