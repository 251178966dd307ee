"""The brand's reward models: the source's features and start, what a fit finds, and scores that do not mind batches."""

import pytest
import torch
from torch.testing import assert_close

from chatter import chatter, takes_the_place
from killick.models.reader import Reader
from killick.ops.stats import pair_accuracy
from killick.recipes.brand.preferences import preferences, split
from killick.recipes.brand.rewards import fitted_head, fitted_scalar, fresh_head, fresh_scalar, judged, scored
from killick.rewards.fit import FitConfig
from killick.types import Preference
from killick.worlds.catalogue import PRODUCTS
from straight import done


@pytest.fixture(autouse=True)
def small_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    takes_the_place(monkeypatch)


SPEAKS = chatter()
ALL = done(preferences(SPEAKS, seed=0, products=PRODUCTS[::3]))
PAIRS = split(ALL, PRODUCTS[::3])
SHORT = FitConfig(steps=30, learning_rate=1e-2)


def accuracy(scores: torch.Tensor, pairs: Preference) -> float:
    """How often scores are right on pairs."""
    return float(pair_accuracy(scores[pairs.chosen], scores[pairs.rejected]))


def test_features_are_the_sources() -> None:
    """Of a prompt and an answer with its <end>, cut at 64 tokens: the mean of the last states over the answer, then
    the last one, as `lm.hidden` gives them (here the network run on one row without padding)."""
    head, rollout = fresh_head(SPEAKS.policy), ALL.rollout
    for row in (0, 7):
        answer = rollout.responses[row, : int(rollout.lengths[row])]
        ids = torch.cat((rollout.prompts[row], answer))[None]
        states = SPEAKS.policy.network(ids).detach()[len(rollout.prompts[row]) :]
        wanted = torch.cat((states.mean(0), states[-1]))
        assert_close(head.encode(rollout[torch.tensor([row])])[0], wanted, atol=1e-6, rtol=0)


def test_the_head_starts_as_torch_starts_it_under_seed_0() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        other = torch.nn.Linear(32, 1)
    mine = fresh_head(SPEAKS.policy).network.state_dict()
    assert torch.equal(mine["weight"], other.weight)
    assert torch.equal(mine["bias"], other.bias)


def test_a_fitted_head_is_right_on_what_it_learned_and_stands_on_the_scale_of_its_answers() -> None:
    """Mean 0 and deviation 1 over the answers that were reviewed; from the cache the same to the bit."""
    head, found = done(fitted_head(SPEAKS, SHORT, pairs=PAIRS, seed=0))
    scores = scored(head, ALL.rollout)
    assert_close(scores.mean(), torch.tensor(0.0), atol=1e-4, rtol=0)
    assert_close(scores.std(unbiased=False), torch.tensor(1.0), atol=1e-4, rtol=0)
    assert found["learned_accuracy"] > 0.6
    assert (found["learned_pairs"], found["held_pairs"]) == tuple(map(len, PAIRS))
    assert found["interval"][0] <= found["accuracy"] <= found["interval"][1]
    assert found["ceiling"] == 1
    again, same = done(fitted_head(SPEAKS, SHORT, pairs=PAIRS, seed=0))
    assert torch.equal(scored(again, ALL.rollout), scores)
    assert same == found
    assert not any(parameter.requires_grad for parameter in head.parameters())


def test_other_pairs_give_another_head() -> None:
    """The cache does not hand out what was learnt from others."""
    fewer = (PAIRS[0].pairs(slice(0, 20)), PAIRS[1])
    head, found = done(fitted_head(SPEAKS, SHORT, pairs=fewer, seed=0))
    assert found["learned_pairs"] == 20
    whole, _ = done(fitted_head(SPEAKS, SHORT, pairs=PAIRS, seed=0))
    assert not torch.equal(scored(head, ALL.rollout), scored(whole, ALL.rollout))


def test_the_fine_tune_moves_a_copy_and_leaves_the_chat_model_alone() -> None:
    before = {name: tensor.clone() for name, tensor in SPEAKS.policy.state_dict().items()}
    config = FitConfig(steps=40, batch=8, learning_rate=3e-3)
    model, found = done(fitted_scalar(SPEAKS, config, pairs=PAIRS, seed=0))
    fresh = fresh_scalar(SPEAKS.policy, seed=0)
    assert found["learned_accuracy"] > accuracy(scored(fresh, ALL.rollout), PAIRS[0])
    assert found["accuracy"] == accuracy(scored(model, ALL.rollout), PAIRS[1])
    moved, copied = model.backbone.state_dict(), Reader(SPEAKS.policy.network).state_dict()
    assert any(not torch.equal(moved[name], copied[name]) for name in copied)
    assert all(torch.equal(tensor, before[name]) for name, tensor in SPEAKS.policy.state_dict().items())


def test_scores_come_back_in_order_whatever_the_batches() -> None:
    """Rows are read by length, seven at a time, and put back."""
    model = fresh_scalar(SPEAKS.policy, seed=0)
    rollout = ALL.rollout[torch.arange(30)]
    with torch.no_grad():
        assert_close(scored(model, rollout, rows=7), model(rollout), atol=1e-5, rtol=0)


def test_a_tie_is_half_right() -> None:
    """Scores by length: of these pairs the first is the second wrong, the third a tie."""
    lengths = ALL.rollout.lengths
    long, short = int(lengths.argmax()), int(lengths.argmin())
    pairs = Preference.hard(ALL.rollout, torch.tensor([long, short, long]), torch.tensor([short, long, long]))
    told = judged(lengths.float(), (pairs, pairs), seed=0)
    assert told["accuracy"] == told["learned_accuracy"] == 0.5
    assert accuracy(lengths.float(), pairs) == 0.5
