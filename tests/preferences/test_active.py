"""What to ask next: each strategy picks what it says, never twice, and never more than there is."""

import pytest
import torch

from killick.preferences.active import ask_disagreement, ask_information, ask_random
from killick.types import Refusal


def test_at_random_every_candidate_has_the_same_chance() -> None:
    """4,000 draws of 2 of 5: each is in 2/5 of them, within 4 standard errors; never twice in one."""
    draws = torch.Generator().manual_seed(0)
    picked = torch.stack([ask_random(5, count=2, generator=draws) for _ in range(4000)])
    assert bool((picked[:, 0] != picked[:, 1]).all())
    shares = picked.flatten().bincount(minlength=5) / 4000
    assert float((shares - 0.4).abs().max()) < 4 * (0.4 * 0.6 / 4000) ** 0.5


def test_disagreement_asks_what_members_see_differently() -> None:
    """Members say 0 and 2, 1 and 1, -3 and 3 of three pairs: the last first, the unanimous one last."""
    first, second = torch.tensor([[0.0, 1.0, -3.0], [2.0, 1.0, 3.0]]), torch.zeros(2, 3)
    assert ask_disagreement(first, second, count=3).tolist() == [2, 0, 1]


def test_information_asks_about_what_labels_have_not_shown() -> None:
    """A hundred labels along the first feature: the second is asked about, though its candidate is shorter."""
    candidates, labelled = torch.tensor([[1.0, 0.0], [0.0, 0.5]]), torch.tensor([[1.0, 0.0]]).expand(100, -1)
    assert ask_information(candidates, torch.zeros(2), labelled=labelled, count=1).tolist() == [1]
    assert ask_information(candidates, torch.zeros(2), labelled=labelled[:0], count=1).tolist() == [0]


@pytest.mark.parametrize("count", [0, 4])
def test_asking_for_more_than_there_is_is_refused(count: int) -> None:
    """By every strategy."""
    said = f"a count of 1 to the 3 candidates, not {count}"
    with pytest.raises(Refusal, match=said):
        ask_random(3, count=count, generator=torch.Generator())
    with pytest.raises(Refusal, match=said):
        ask_disagreement(torch.zeros(2, 3), torch.zeros(2, 3), count=count)
    with pytest.raises(Refusal, match=said):
        ask_information(torch.zeros(3, 2), torch.zeros(2), labelled=torch.zeros(0, 2), count=count)


def test_what_cannot_disagree_or_believe_is_refused() -> None:
    """One member; a prior of 0."""
    with pytest.raises(Refusal, match="at least 2 members to disagree, not 1"):
        ask_disagreement(torch.zeros(1, 3), torch.zeros(1, 3), count=1)
    with pytest.raises(Refusal, match="prior is 1 / variance of the weights, a positive number, not 0"):
        ask_information(torch.zeros(3, 2), torch.zeros(2), labelled=torch.zeros(0, 2), count=1, prior=0.0)
