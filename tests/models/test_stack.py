"""Sampling with a cache, each prompt read once: what it draws, and what it never computes."""

import pytest
import torch
from torch.testing import assert_close

pytest.importorskip("transformers", reason="a stack is a transformers model's (extra hf)")

from killick.models.decoding import Distribution
from killick.models.stack import sample, stack_of
from killick.types import Prompts, Vocabulary
from llamas import llama

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
WORDS = Vocabulary(300, time=6, eos=None, pad=0)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def asked(count: int, padding: int = 0) -> Prompts:
    ids = torch.randint(3, 300, (count, 5), generator=seeded(1))
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[::2, :padding] = False
    return ids, mask


@pytest.mark.parametrize("padding", [0, 2])
def test_greedy_answers_are_those_of_the_librarys_generate(padding: int) -> None:
    """A distribution of the one most probable token draws what `generate` takes."""
    model, prompts = llama(loud=8.0), asked(6, padding)
    distribution = Distribution(WORDS, top_k=1)
    with torch.no_grad():
        stack = stack_of(model, distribution, dtype=torch.float32)
    found = sample(stack, prompts, n=2, distribution=distribution, generator=seeded(0))
    expected = model.generate(
        prompts[0], attention_mask=prompts[1].long(), do_sample=False, max_new_tokens=6, min_new_tokens=6,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    assert torch.equal(found.responses[::2], expected[:, 5:])
    assert torch.equal(found.responses[1::2], expected[:, 5:])
    assert not bool(found.logprobs.any())  # certain, so 0 nats


def test_responses_of_one_prompt_are_drawn_as_from_prompts_that_repeat() -> None:
    """Reading a prompt once for all its responses changes nothing but the work."""
    distribution = Distribution(WORDS, 0.7)
    with torch.no_grad():
        stack = stack_of(llama(loud=8.0), distribution, dtype=torch.float32)
    ids, mask = asked(4, 2)
    once = sample(stack, (ids, mask), n=3, distribution=distribution, generator=seeded(2))
    many = (ids.repeat_interleave(3, 0), mask.repeat_interleave(3, 0))
    each = sample(stack, many, n=1, distribution=distribution, generator=seeded(2))
    assert torch.equal(once.responses, each.responses)
    assert torch.equal(once.prompts, each.prompts)
    assert_close(once.logprobs, each.logprobs, atol=1e-5, rtol=1e-5)
    assert len(set(map(tuple, once.responses[:3].tolist()))) > 1


def test_the_head_has_rows_for_spoken_tokens_only() -> None:
    """Three of 300: the head is [3 hidden], and a vocabulary smaller than the model's cuts it off."""
    model = llama()
    for distribution, rows in (
        (Distribution(WORDS, spoken=(5, 7, 250)), [5, 7, 250]),
        (Distribution(Vocabulary(4, time=2)), [0, 1, 2, 3]),
    ):
        head, bias = stack_of(model, distribution, dtype=torch.bfloat16).head
        assert bias is None
        assert torch.equal(head, model.lm_head.weight[rows].bfloat16())
