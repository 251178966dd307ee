"""Labels with known noise, and linear heads whose right answer is known."""

from dataclasses import replace

import pytest
import torch

from killick.recipes.text.rewards import (
    Heads,
    Lesson,
    drawn_pairs,
    every_pair,
    fitted_heads,
    labelled,
    learnt,
    lessons,
)  # fmt: skip
from killick.rewards.fit import FitConfig
from straight import ended
from writers import N, made

FIT = FitConfig(steps=150, learning_rate=0.05, l2=0.01)


def test_pairs_are_of_one_prompt_and_each_is_drawn_once() -> None:
    """12 prompts of 6 answers have 12 * 15 = 180 pairs; more than that cannot be asked for."""
    assert every_pair(made()) == 180
    drawn = drawn_pairs(made(), 1000, generator=torch.Generator().manual_seed(1))
    assert len(drawn) == 180
    assert bool((drawn.first // N == drawn.second // N).all())
    assert len({frozenset(pair) for pair in zip(drawn.first.tolist(), drawn.second.tolist(), strict=True)}) == 180
    assert len(drawn_pairs(made(), 7, generator=torch.Generator().manual_seed(1))) == 7


def test_labels_err_as_often_as_they_should() -> None:
    """P(a) = sigma(kappa (gold a - gold b)): within three deviations of its mean; sure at a huge kappa."""
    said = made()
    sure = labelled(said, Lesson("proxy", 180), kappa=1e6, seed=0)
    assert bool((said.gold[sure.chosen] >= said.gold[sure.rejected]).all())
    noisy = labelled(said, Lesson("proxy", 180), kappa=1.0, seed=0)
    gaps = said.gold[noisy.chosen] - said.gold[noisy.rejected]
    right = torch.sigmoid(gaps.abs())
    reach = 3 * (right * (1 - right)).sum().sqrt()
    assert abs((gaps > 0).sum() - right.sum()) < reach


def test_other_labels_are_another_draw() -> None:
    first, other = (labelled(made(), Lesson("a", 40, name), kappa=1.0, seed=0) for name in ("labels", "other labels"))
    assert first.chosen.tolist() != other.chosen.tolist()


def test_a_head_finds_the_direction_of_gold_on_the_scale_of_the_reference() -> None:
    """Mean 0, deviation 1 on its rows; the feature that never moves gets no weight that matters."""
    said = made()
    sure = labelled(said, Lesson("proxy", 180), kappa=4.0, seed=0)
    weight, bias, loss = learnt(said.features, sure, config=FIT, reference=len(said.gold))
    scores = said.features @ weight + bias
    assert float(scores.mean()) == pytest.approx(0, abs=1e-4)
    assert float(scores.std(correction=0)) == pytest.approx(1, abs=1e-4)
    assert float(torch.corrcoef(torch.stack((scores, said.gold)))[0, 1]) > 0.97
    assert 0 < loss < 0.6


def test_rows_beyond_the_reference_teach_but_set_no_scale() -> None:
    """The same pairs with more rows behind them: the same head."""
    said = made()
    pairs = labelled(said, Lesson("proxy", 60), kappa=4.0, seed=0)
    alone = learnt(said.features, pairs, config=FIT, reference=len(said.gold))
    more = learnt(torch.cat((said.features, said.features + 50)), pairs, config=FIT, reference=len(said.gold))
    assert torch.allclose(alone[0], more[0])
    assert torch.allclose(alone[1], more[1])


def test_heads_score_by_row_and_the_proxy_can_be_exchanged() -> None:
    heads = Heads(["proxy", "few"], torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0.5, -1.0]))
    features = torch.tensor([[3.0, 4.0]])
    assert heads.scores(features).tolist() == [[3.5, 7.0]]
    assert heads.replaced(torch.tensor([0.0, 1.0]), torch.tensor(1.0)).scores(features).tolist() == [[5.0, 7.0]]


def test_every_head_is_judged_on_the_same_held_out_pairs_beside_its_ceiling() -> None:
    """Another draw of answers is held out; with clean labels the ceiling is 1 and the proxy near it."""
    taught = lessons(100, most=180)
    assert [(each.name, each.pairs) for each in taught] == [("proxy", 100), ("other", 100), ("few", 20), ("many", 180)]
    said, held = made(), replace(made(1), texts=made().texts)
    told, (heads, found) = ended(fitted_heads(said, held, config=FIT, taught=taught, kappa=1e4, seed=0, mark="test"))
    assert told == ["4 reward models are fitted"]
    assert heads.names == list(found) == ["proxy", "other", "few", "many"]
    proxy = found["proxy"]
    assert (proxy["pairs"], proxy["held_pairs"], proxy["ceiling"]) == (100, 180, pytest.approx(1, abs=1e-3))
    assert proxy["interval"][0] <= proxy["accuracy"] <= proxy["interval"][1]
    assert proxy["accuracy"] > 0.9
    assert found["many"]["correlation"] > 0.95
    again, (found_heads, _) = ended(fitted_heads(said, held, config=FIT, taught=taught, kappa=1e4, seed=0, mark="test"))
    assert again == []
    assert torch.equal(found_heads.weight, heads.weight)
