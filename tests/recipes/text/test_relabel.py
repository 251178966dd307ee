"""Labels of the policy's own answers: against what, and what the fit then makes of them."""

import pytest
import torch

from killick.recipes.cells import Cell
from killick.recipes.text import recipe as text
from killick.recipes.text.relabel import Relabelled
from straight import ended
from writers import counts_letters, tiny


@pytest.fixture
def relabelled(monkeypatch: pytest.MonkeyPatch) -> Relabelled:
    """Two rollouts taken, nothing refitted."""
    counts_letters(monkeypatch)
    config = tiny(betas=(), relabel=True)
    config.validate()
    _, (prepared, _) = ended(text.prepare(config, 3))
    state, seen = text.begin(config, Cell("beta=0+relabel", 3, 4), prepared=prepared)
    for _ in range(2):
        next(seen)
    assert isinstance(state, Relabelled)
    return state


def test_each_new_pair_is_of_one_prompt_and_holds_an_answer_of_the_policy(relabelled: Relabelled) -> None:
    """A quarter of 20 labels; the second refit names only answers that the first has not seen as its own."""
    base = len(relabelled.said.gold)
    asked = torch.cat((torch.arange(base) // relabelled.said.n, relabelled.asked))
    assert len(relabelled.gold) == 12
    relabelled.refit(3, 2)
    pairs = torch.stack((relabelled.chosen, relabelled.rejected), 1)
    assert len(pairs) == 5
    assert bool((pairs.amax(1) >= base).all())
    assert bool((pairs[:, 0] != pairs[:, 1]).all())
    assert torch.equal(asked[pairs[:, 0]], asked[pairs[:, 1]])
    assert relabelled.fresh == 12


def test_the_proxy_is_exchanged_and_the_heads_that_watch_stay(relabelled: Relabelled) -> None:
    """The reference's answers keep mean 0 and deviation 1."""
    before = relabelled.proxy.heads
    relabelled.refit(3, 2)
    after = relabelled.proxy.heads
    assert not torch.equal(before.weight[0], after.weight[0])
    assert torch.equal(before.weight[1:], after.weight[1:])
    scores = after.scores(relabelled.said.features)[:, 0]
    assert float(scores.mean()) == pytest.approx(0, abs=1e-3)
    assert float(scores.std(correction=0)) == pytest.approx(1, abs=1e-3)


def test_labels_follow_gold(relabelled: Relabelled) -> None:
    """A judge who hardly errs prefers the answer with more gold."""
    relabelled.kappa = 1e6
    relabelled.refit(3, 2)
    gold = torch.cat((relabelled.said.gold, relabelled.gold))
    assert bool((gold[relabelled.chosen] >= gold[relabelled.rejected]).all())


def test_a_state_without_a_part_is_refused(relabelled: Relabelled) -> None:
    saved = relabelled.state_dict()
    assert relabelled.step == 2
    del saved["gold"]
    with pytest.raises(KeyError, match="gold"):
        relabelled.load_state_dict(saved)
