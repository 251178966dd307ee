"""Several rewards as one: members on one scale first, then the most doubtful of them, or their mean."""

import pytest
import torch
from torch.testing import assert_close

from killick.rewards.counts import Counts
from killick.rewards.ensemble import Ensemble
from killick.rewards.fit import Standardised, standardise
from killick.types import Refusal, Rollout
from killick.worlds.emphasis import Emphasis

world = Emphasis()
reference = world.demonstrations(500, torch.Generator().manual_seed(0))


def rollout(*counts: int) -> Rollout:
    """Sequences of so many emphasis tokens (12), the rest token 0."""
    return world.rollout(torch.tensor([[12] * count + [0] * (12 - count) for count in counts]))


def counting(weight: float, mean: float = 0.0, deviation: float = 1.0) -> Standardised:
    """(weight times emphasis tokens - mean) / deviation."""
    model = Counts([12])
    torch.nn.init.constant_(model.weights, weight)
    return Standardised(model, mean, deviation)


def test_the_minimum_is_the_most_doubtful_member_of_each_response_and_the_mean_is_the_mean() -> None:
    """Members c - 1 and (12 - 2 c) / 2 = 6 - c: at c = 0 they say -1 and 6, at 3: 2 and 3, at 12: 11 and -6."""
    members = [counting(1.0, 1.0), counting(-2.0, -12.0, 2.0)]
    asked = rollout(0, 3, 12)
    assert_close(Ensemble(members).each(asked), torch.tensor([[-1.0, 2.0, 11.0], [6.0, 3.0, -6.0]]))
    assert Ensemble(members)(asked).tolist() == [-1.0, 2.0, -6.0]
    assert Ensemble(members, "mean")(asked).tolist() == [2.5, 2.5, 2.5]


def test_a_members_own_unit_does_not_decide_whom_the_minimum_believes() -> None:
    """One opinion in two units, 1 a token and 100 a token: once scaled on the same responses they agree, so the minimum
    is either of them; raw, the small unit would win every response with emphasis."""
    models = [counting(1.0).model, counting(100.0).model]
    once = standardise(models[0], reference)
    both = Ensemble([standardise(model, reference) for model in models])
    assert_close(both(reference), once(reference), atol=1e-5, rtol=1e-5)


def test_members_that_agree_are_any_of_them_and_the_minimum_never_exceeds_the_mean() -> None:
    """On 500 responses, for five members drawn at random."""
    draws = torch.Generator().manual_seed(1)
    members = [standardise(Counts(range(24), draws), reference) for _ in range(5)]
    least, mean = Ensemble(members)(reference), Ensemble(members, "mean")(reference)
    assert bool((least <= mean).all())
    assert float((mean - least).mean()) > 0.5
    assert torch.equal(Ensemble([members[0]] * 2)(reference), members[0](reference))


def test_its_state_holds_every_members_weights_and_scale() -> None:
    """A second ensemble of other members scores alike after loading it."""
    first = Ensemble([counting(1.0, 1.0), counting(-2.0, -12.0, 2.0)])
    second = Ensemble([counting(0.5), counting(0.25)])
    second.load_state_dict(first.state_dict())
    assert torch.equal(second(rollout(0, 5, 12)), first(rollout(0, 5, 12)))


def test_one_member_is_no_ensemble() -> None:
    with pytest.raises(Refusal, match="at least 2 members, not 1"):
        Ensemble([counting(1.0)])
