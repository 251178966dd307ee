"""The table: exact log-probs, exact gradients, draws that follow them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from killick.models.tabular import TabularPolicy
from killick.types import NonFinite, Refusal, Rollout, Vocabulary

modest = settings(max_examples=20, deadline=None, derandomize=True)
TWO = Vocabulary(size=3, time=2)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def asked(*prompts: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor(prompts)[:, None]
    return ids, torch.ones_like(ids, dtype=torch.bool)


def given_answers(policy: TabularPolicy, prompts: list[int], responses: list[list[int]]) -> Rollout:
    ids, seen = asked(*prompts)
    tokens = torch.tensor(responses)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    return Rollout(ids, seen, tokens, mask, torch.zeros(tokens.shape), torch.zeros(len(ids), dtype=torch.bool))


def test_log_probs_are_the_log_softmax_of_the_prompts_row() -> None:
    """Prompt 1, logits (0, log 2, log 5) then (0, 0, 0): tokens (2, 0) have log 5/8 and log 1/3."""
    logits = torch.zeros(2, 2, 3)
    logits[1, 0] = torch.tensor([1.0, 2.0, 5.0]).log()
    policy = TabularPolicy(logits, TWO)
    found, full = policy.logprobs(given_answers(policy, [1], [[2, 0]]))
    assert found.tolist()[0] == pytest.approx([math.log(5 / 8), math.log(1 / 3)], abs=1e-6)
    assert full[0, 0].tolist() == pytest.approx([math.log(1 / 8), math.log(2 / 8), math.log(5 / 8)], abs=1e-6)


def test_temperature_is_in_the_table() -> None:
    """Logits (1, 0) at T = .5: -0.126928."""
    policy = TabularPolicy(torch.tensor([[[1.0, 0.0]]]), Vocabulary(size=2, time=1), temperature=0.5)
    assert float(policy.table().detach()[0, 0, 0]) == pytest.approx(-0.126928, abs=1e-6)
    rollout = policy.sample(asked(*[0] * 50), 1, seeded(0))
    assert torch.equal(rollout.logprobs, policy.logprobs(rollout)[0].detach())


def test_the_gradient_of_a_log_prob_is_the_token_minus_the_probabilities() -> None:
    """d log p(y) / d logits = onehot(y) - p; rows that were not asked have 0."""
    policy = TabularPolicy(torch.randn(2, 2, 3, generator=seeded(0)), TWO)
    policy.logprobs(given_answers(policy, [0], [[1, 2]]))[0].sum().backward()
    expected = torch.zeros(2, 2, 3)
    expected[0, 0, 1] = expected[0, 1, 2] = 1.0
    expected[0] -= policy.table()[0].exp().detach()
    assert policy.logits.grad is not None
    assert_close(policy.logits.grad, expected, atol=1e-6, rtol=0)


def test_draws_follow_the_table() -> None:
    """20,000 responses of two tokens to prompt 1: nine shares, each within 4 standard errors of the product."""
    policy = TabularPolicy(torch.randn(2, 2, 3, generator=seeded(1)), TWO)
    rollout = policy.sample(asked(1), 20_000, seeded(2))
    table = policy.table()[1].exp().detach().double()
    share = (3 * rollout.responses[:, 0] + rollout.responses[:, 1]).bincount(minlength=9).double() / 20_000
    exact = (table[0][:, None] * table[1]).flatten()
    assert bool(((share - exact).abs() < 4 * (exact * (1 - exact) / 20_000).sqrt()).all())


def test_forbidden_tokens_have_no_probability_anywhere() -> None:
    """Logit 50 on a forbidden token."""
    words = Vocabulary(size=3, time=1, forbidden=(0,))
    policy = TabularPolicy(torch.tensor([[[50.0, 0.0, 0.0]]]), words)
    assert policy.table()[0, 0].tolist() == pytest.approx([-math.inf, math.log(0.5), math.log(0.5)], abs=1e-6)
    assert policy.sample(asked(0), 5000, seeded(0)).responses.unique().tolist() == [1, 2]


@modest
@given(st.integers(0, 1000), st.integers(1, 4))
def test_samples_carry_their_own_log_probs_and_stand_together(seed: int, n: int) -> None:
    """Bit-equal to scoring; fixed length, none finished; the same seed gives the same rollout."""
    policy = TabularPolicy(torch.randn(4, 2, 3, generator=seeded(seed)), TWO)
    rollout, again = (policy.sample(asked(3, 0, 2), n, seeded(seed)) for _ in range(2))
    assert rollout.prompts[:, 0].tolist() == [3] * n + [0] * n + [2] * n
    assert torch.equal(rollout.logprobs, policy.logprobs(rollout)[0].detach())
    assert torch.equal(rollout.responses, again.responses)
    assert bool(rollout.mask.all())
    assert not bool(rollout.finished.any())


def test_what_the_same_prompts_share_is_made_once_and_never_taken_for_other_prompts() -> None:
    """Asked again: the same tensors. Equal prompts in other tensors, another n or other prompts: the right rows."""
    policy = TabularPolicy(torch.randn(4, 2, 3, generator=seeded(0)), TWO)
    prompts = asked(3, 0)
    first, again = (policy.sample(prompts, 2, seeded(1)) for _ in range(2))
    assert first.prompts is again.prompts
    assert torch.equal(first.responses, again.responses)
    for others, n in ((asked(3, 0), 2), (prompts, 3), (asked(1, 2), 2), (prompts, 2)):
        rollout = policy.sample(others, n, seeded(1))
        assert torch.equal(rollout.prompts, others[0].repeat_interleave(n, 0))
        assert torch.equal(rollout.prompt_mask, others[1].repeat_interleave(n, 0))
        assert rollout.mask.shape == rollout.responses.shape == (2 * n, 2)
        assert torch.equal(rollout.logprobs, policy.logprobs(rollout)[0].detach())


def test_the_last_prompt_token_is_the_row() -> None:
    """What stands before it, padding or not, is not read."""
    policy = TabularPolicy(torch.randn(4, 2, 3, generator=seeded(0)), TWO)
    short = given_answers(policy, [2, 1], [[0, 1], [2, 2]])
    long = Rollout(torch.tensor([[3, 0, 2], [9, 9, 1]]), torch.tensor([[True] * 3, [False, False, True]]),
                   short.responses, short.mask, short.logprobs, short.finished)  # fmt: skip
    assert torch.equal(policy.logprobs(short)[0], policy.logprobs(long)[0])


def test_a_given_sampler_draws_from_the_log_probs() -> None:
    """One call a place, with a row for every response; what it says is what is written."""
    seen = []

    def sampler(rows: Tensor, generator: torch.Generator) -> Tensor:
        seen.append(rows)
        return torch.full((len(rows),), len(seen))

    policy = TabularPolicy(torch.randn(2, 2, 3, generator=seeded(0)), TWO, sampler=sampler)
    rollout = policy.sample(asked(0, 1), 2, seeded(0))
    assert rollout.responses.tolist() == [[1, 2]] * 4
    assert torch.equal(seen[1], policy.table()[[0, 0, 1, 1], 1])


def test_the_table_is_a_copy_and_its_state_comes_back_bit_equal() -> None:
    """Two policies made from one tensor do not share it."""
    logits = torch.randn(2, 2, 3, generator=seeded(0))
    policy, other = TabularPolicy(logits, TWO), TabularPolicy(torch.zeros(2, 2, 3), TWO)
    assert policy.logits.data_ptr() != logits.data_ptr()
    other.load_state_dict(policy.state_dict())
    assert torch.equal(other.table(), policy.table())


def test_padding_scores_nothing() -> None:
    """A mask that is False gives 0."""
    policy = TabularPolicy(torch.randn(2, 2, 3, generator=seeded(0)), TWO)
    rollout = given_answers(policy, [0], [[1, 2]])
    short = Rollout(rollout.prompts, rollout.prompt_mask, rollout.responses, torch.tensor([[True, False]]),
                    rollout.logprobs, rollout.finished)  # fmt: skip
    assert policy.logprobs(short)[0][0, 1].item() == 0.0


@pytest.mark.parametrize(
    "vocabulary", [Vocabulary(size=4, time=2), Vocabulary(size=3, time=1), Vocabulary(size=3, time=2, eos=0)]
)
def test_a_vocabulary_that_does_not_fit_the_table_is_refused(vocabulary: Vocabulary) -> None:
    """Another size, another length, or an end token: responses of a table have a fixed length."""
    with pytest.raises(Refusal, match=r"needs a vocabulary of size 3, time 2 and no end token"):
        TabularPolicy(torch.zeros(2, 2, 3), vocabulary)


def test_a_temperature_of_zero_is_refused() -> None:
    """As for every policy."""
    with pytest.raises(Refusal, match="temperature"):
        TabularPolicy(torch.zeros(2, 2, 3), TWO, temperature=0.0)


def test_a_nan_in_the_table_stops_the_sampler() -> None:
    """Named with its row."""
    logits = torch.zeros(2, 2, 3)
    logits[1, 0, 0] = math.nan
    with pytest.raises(NonFinite, match=r"log-probs of the sampled tokens.*row 1"):
        TabularPolicy(logits, TWO).sample(asked(0, 1), 1, seeded(0))
