"""What to ask next in arithmetic: fair beginnings, no label spent twice, and a table that says what came out."""

import pytest
import torch

from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.preferences.labelers import BradleyTerry
from killick.preferences.pairing import neighbours
from killick.recipes.arithmetic import asking as arithmetic_asking
from killick.recipes.arithmetic.asking import STRATEGIES, Study, chosen, compared, expected_accuracy, tables
from killick.rewards.counts import Counts
from killick.rewards.fit import FitConfig
from killick.worlds.arithmetic import Arithmetic
from straight import ended

STUDY = Study(0, "cpu", 2.0, FitConfig(steps=20, learning_rate=0.05))
SHAPE = TransformerConfig(14, 14, context=10, hidden=16, layers=1, heads=2, feed_forward=16, final_norm=False)


def speaker() -> TransformerPolicy:
    """A policy that has learned nothing."""
    return TransformerPolicy(Transformer(SHAPE, torch.Generator().manual_seed(0)), Arithmetic.vocabulary)


def test_all_strategies_begin_alike_and_none_beats_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """20, 30, 40 of 200 pairs; the same first labels under the same first fit; the same run again gives the same."""
    for name, value in {"POOL": 200, "HELD": 200, "START": 20, "BATCH": 10, "LABELS": 40}.items():
        monkeypatch.setattr(arithmetic_asking, name, value)
    notes, learnt = ended(compared(STUDY, speaker()))
    found = learnt["found"]
    assert found["sizes"] == [20, 30, 40]
    assert len(notes) == len(STRATEGIES) == len(found["accuracy"])
    assert len({curve[0] for curve in found["accuracy"].values()}) == 1
    assert all(0.3 < value <= found["ceiling"] for curve in found["accuracy"].values() for value in curve)
    assert ended(compared(STUDY, speaker()))[1]["found"] == found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_asked_was_not_asked_before_and_no_label_of_it_is_seen(strategy: str) -> None:
    """Turning the labels of what is not known round changes nothing that is asked."""
    world, draws = Arithmetic(), torch.Generator().manual_seed(1)
    rollout = speaker().sample(world.prompts(100, draws), 2, draws)
    pool = BradleyTerry(2.0).label(neighbours(rollout), world.gold(rollout), draws)
    known, left = torch.arange(0, 30), torch.arange(30, 100)
    turned = pool.flipped()
    mixed = torch.arange(100) < 30
    other = type(pool).hard(rollout, torch.where(mixed, pool.chosen, turned.chosen),
                            torch.where(mixed, pool.rejected, turned.rejected))  # fmt: skip
    model = Counts(range(10), torch.Generator().manual_seed(2))
    asked, again = (
        chosen(STUDY, strategy, pool=labels, known=known, left=left, model=model,
               draws=torch.Generator().manual_seed(3))
        for labels in (pool, other)
    )  # fmt: skip
    assert torch.equal(asked, again)
    assert len(asked.unique()) == len(asked) == arithmetic_asking.BATCH
    assert 0 <= int(asked.min()) <= int(asked.max()) < len(left)


def test_the_expected_accuracy_is_exact_over_the_labels() -> None:
    """A pair of chance .9 for its chosen: a model that agrees earns .9, one that does not .1, one without view .5."""
    world, draws = Arithmetic(), torch.Generator().manual_seed(1)
    rollout = speaker().sample(world.prompts(1, draws), 2, draws)
    held = BradleyTerry(2.0).label(neighbours(rollout), world.gold(rollout), draws)
    model, earned = Counts(range(10)), []
    counts = model.encode(rollout)
    difference = counts[held.chosen[0]] - counts[held.rejected[0]]
    assert bool(difference.any())
    for sign in (1.0, -1.0, 0.0):
        model.weights.data = sign * difference
        earned.append(expected_accuracy(model, held, chance=torch.tensor([0.9])))
    assert earned == pytest.approx([0.9, 0.1, 0.5])


def test_the_table_tells_the_lead_over_random() -> None:
    """Two seeds: information ahead by .02 and .04 past the first size: .03 with a deviation of .0141."""
    sizes = [10, 20, 40]
    seeds = {
        str(seed): {
            "asking": {
                "sizes": sizes, "whole": 0.63, "ceiling": 0.65,
                "accuracy": {"random": [0.5, 0.6, 0.6], "disagreement": [0.5, 0.6, 0.6],
                             "information": [0.5, 0.6 + ahead, 0.6 + ahead]},
            }
        }
        for seed, ahead in ((0, 0.02), (1, 0.04))
    }  # fmt: skip
    (table,) = tables(seeds)
    rows = {str(row[0]): row for row in table.rows}
    assert table.columns == ["strategy", "10 labels", "20 labels", "40 labels", "lead", "deviation"]
    assert rows["random"][-2:] == [None, None]
    assert rows["information"][1:] == pytest.approx([0.5, 0.63, 0.63, 0.03, 0.02 / 2**0.5])
    assert tables({"0": {"weights": {}}}) == []
