"""What every world promises: one test for each promise, and every world takes all of them."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from killick.models.decoding import Distribution, decode
from killick.types import Rollout, World
from killick.worlds.answers import Answers
from killick.worlds.arithmetic import EOS, PAD, Arithmetic
from killick.worlds.brand import Brand
from killick.worlds.emphasis import Emphasis
from words import VOCABULARY, WORDS, encode
from words import decode as spell


@dataclass(frozen=True)
class Case:
    """A world, how many ids its policy reads, and responses (one for each prompt kind) that are as good as can be."""

    world: Any
    inputs: int
    best: Rollout


def arithmetic() -> Case:
    """4<eos> is well formed and ends even, whatever was asked."""
    world = Arithmetic()
    ids, seen = world.prompts(3, torch.Generator().manual_seed(0))
    responses = torch.tensor([[4, EOS, PAD, PAD]]).repeat(3, 1)
    mask = torch.tensor([[True, True, False, False]]).repeat(3, 1)
    return Case(world, 14, Rollout(ids, seen, responses, mask, torch.zeros(3, 4), torch.ones(3, dtype=torch.bool)))


def emphasis() -> Case:
    """Three emphasis tokens and nine of the highest value."""
    world = Emphasis()
    return Case(world, 25, world.rollout(torch.tensor([[12] * 3 + [23] * 9])))


def answers() -> Case:
    """Each prompt's best answer."""
    world = Answers()
    rows = 8 * torch.arange(4) + world.golds.argmax(1)
    return Case(world, 4, world.everything()[rows])


def brand() -> Case:
    """The product named, in a material of its kind, with the promise."""
    world = Brand(encode, spell, vocabulary=VOCABULARY)
    ids, seen = (x[:1] for x in world.everything())
    said = encode("The Alder rain jacket is made of nylon . We repair it free for life . <end>")
    responses, mask = torch.tensor([said]), torch.ones(1, len(said), dtype=torch.bool)
    return Case(world, len(WORDS), Rollout(ids, seen, responses, mask, torch.zeros(mask.shape), mask[:, 0]))


every_world = pytest.mark.parametrize(
    "case", [arithmetic(), emphasis(), answers(), brand()], ids=["arithmetic", "emphasis", "answers", "brand"]
)


def babble(world: World, count: int, n: int, seed: int) -> Rollout:
    """What a policy with equal odds for every allowed token says."""
    generator = torch.Generator().manual_seed(seed)
    prompts = world.prompts(count, generator)
    vocabulary = world.vocabulary
    return decode(
        lambda new: torch.zeros(len(new), vocabulary.size),
        prompts,
        n=n,
        distribution=Distribution(vocabulary),
        generator=generator,
    )


@every_world
def test_prompts_are_ids_that_the_policy_reads_padded_on_the_left_only(case: Case) -> None:
    """Ids are whole numbers within the input range; real tokens follow padding, and the last one is real."""
    ids, mask = case.world.prompts(50, torch.Generator().manual_seed(1))
    assert ids.shape == mask.shape
    assert len(ids) == 50
    assert (ids.dtype, mask.dtype) == (torch.long, torch.bool)
    assert 0 <= int(ids.min()) <= int(ids.max()) < case.inputs
    assert bool((mask[:, 1:] >= mask[:, :-1]).all())
    assert bool(mask[:, -1].all())


@every_world
def test_the_same_generator_gives_the_same_prompts_and_draws_only_from_it(case: Case) -> None:
    """Bit for bit, and the global stream is left alone."""
    before = torch.random.get_rng_state()
    first, again = (case.world.prompts(20, torch.Generator().manual_seed(5)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert torch.equal(before, torch.random.get_rng_state())


@every_world
def test_gold_is_one_finite_number_per_response(case: Case) -> None:
    """On 400 responses at random."""
    rollout = babble(case.world, 100, 4, 2)
    gold = case.world.gold(rollout)
    assert gold.shape == (400,)
    assert gold.dtype == torch.float32
    assert bool(torch.isfinite(gold).all())


@every_world
def test_the_best_is_attained_and_never_passed(case: Case) -> None:
    """The best of 50 responses to each prompt, averaged over prompts, stays below; the constructed ones reach it."""
    rollout = babble(case.world, 40, 50, 3)
    top = case.world.gold(rollout).view(40, 50).max(1).values
    assert float(top.mean()) <= case.world.best + 1e-5
    assert float(case.world.gold(case.best).mean()) == pytest.approx(case.world.best, abs=1e-6)


@every_world
def test_gold_reads_each_response_alone(case: Case) -> None:
    """In another order, or one by one, the numbers are the same (1e-6: a mean of another shape may round)."""
    rollout = babble(case.world, 12, 1, 4)
    gold, order = case.world.gold(rollout), torch.randperm(12, generator=torch.Generator().manual_seed(0))
    assert_close(case.world.gold(rollout[order]), gold[order], atol=1e-6, rtol=0)
    assert_close(torch.cat([case.world.gold(rollout[i : i + 1]) for i in range(12)]), gold, atol=1e-6, rtol=0)


@every_world
def test_gold_is_blind_to_the_padding_and_to_log_probs(case: Case) -> None:
    """Whatever id stands behind the end, and whoever wrote it."""
    rollout = babble(case.world, 200, 1, 6)
    filled = replace(
        rollout, responses=rollout.responses.where(rollout.mask, 0), logprobs=torch.randn_like(rollout.logprobs)
    )
    assert torch.equal(case.world.gold(filled), case.world.gold(rollout))


@every_world
def test_each_response_is_rendered_as_one_string(case: Case) -> None:
    """And different responses to the same prompt look different."""
    rollout = babble(case.world, 30, 2, 7)
    shown = case.world.render(rollout)
    assert len(shown) == 60
    assert all(isinstance(text, str) and "\n" not in text for text in shown)
    heads = [
        (*p, *r, *m)
        for p, r, m in zip(rollout.prompts.tolist(), rollout.responses.tolist(), rollout.mask.tolist(), strict=True)
    ]
    for i in range(0, 60, 2):
        assert (shown[i] == shown[i + 1]) == (heads[i] == heads[i + 1])


@every_world
def test_the_flaw_is_one_sentence(case: Case) -> None:
    """It begins with a capital letter, ends with a stop, and holds more than three words."""
    flaw = case.world.flaw
    assert flaw[0].isupper()
    assert flaw.endswith(".")
    assert "\n" not in flaw
    assert len(flaw.split()) > 3
