"""The families of reward models: what they share, what they are asked, and that none depends on another."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from killick.models.policy import TransformerPolicy
from killick.models.transformer import Transformer, TransformerConfig
from killick.preferences.pairing import neighbours
from killick.recipes.emphasis import rewards
from killick.recipes.emphasis.rewards import FAMILIES, Lesson, by_count, coverage, gather, kinds, learn, restored
from killick.rewards.counts import Counts
from killick.rewards.ensemble import Ensemble
from killick.rewards.fit import FitConfig
from killick.rewards.pooled import Pooled
from killick.types import Preference
from killick.worlds.emphasis import Emphasis

LESSON = Lesson(7, "cpu", "source", FAMILIES, 300, 200, 0.1, 8, FitConfig(steps=30, batch=32, learning_rate=1e-2))
world = Emphasis()


@cache
def policy() -> TransformerPolicy:
    """Almost uniform over 24 tokens."""
    network = TransformerConfig(25, 24, context=13, hidden=8, layers=1, heads=2, feed_forward=8)
    return TransformerPolicy(Transformer(network, torch.Generator().manual_seed(0)), world.vocabulary)


@cache
def learnt(lesson: Lesson) -> dict[str, Any]:
    """What the stage returns."""
    loop = learn(lesson, policy())
    while True:
        try:
            next(loop)
        except StopIteration as stop:
            found: dict[str, Any] = stop.value
            return found


def test_a_family_is_the_same_whichever_others_are_asked_for() -> None:
    """Weights and findings bit for bit, alone or in company; an ensemble's first member is the plain network."""
    for family in FAMILIES:
        alone = learnt(replace(LESSON, families=(family,)))
        for name, tensor in alone["families"][family].items():
            assert torch.equal(tensor, learnt(LESSON)["families"][family][name]), name
        assert alone["found"]["families"][family] == learnt(LESSON)["found"]["families"][family]
    whole = learnt(LESSON)["families"]
    assert torch.equal(whole["minimum"]["model.members.0.model.embedding"], whole["relu"]["model.embedding"])
    assert torch.equal(whole["minimum"]["model.members.4.mean"], whole["mean"]["model.members.4.mean"])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_on_the_scale_of_the_same_samples_and_comes_back_from_the_cache(family: Any) -> None:
    """Mean 0 and deviation 1 on the 2,000 reference samples; its findings are those of the reward that PPO will see."""
    reward = restored(family, LESSON.hidden, state=learnt(LESSON)["families"][family], device="cpu")
    evidence = gather(LESSON, policy())
    scores = reward(evidence.reference).double()
    assert float(scores.mean()) == pytest.approx(0, abs=1e-4)
    assert float(scores.std(correction=0)) == pytest.approx(1, abs=1e-4)
    assert by_count(reward(evidence.probes)) == learnt(LESSON)["found"]["families"][family]["score_by_count"]
    assert not any(parameter.requires_grad for parameter in reward.parameters())


def test_what_each_family_is_made_of() -> None:
    """One network, or five of the same kind."""
    assert [len(kinds(family)) for family in FAMILIES] == [1, 1, 1, 5, 5]
    made = [restored(family, 8, state=learnt(LESSON)["families"][family], device="cpu").model for family in FAMILIES]
    assert [type(model) for model in made] == [Pooled, Pooled, Counts, Ensemble, Ensemble]
    assert ["Tanh" in repr(model) for model in made[:2]] == [False, True]
    assert [model.pick for model in made[3:]] == ["minimum", "mean"]


def test_what_is_found_beside_the_families() -> None:
    """300 pairs; every count 0 to 12 has a gold, and twelve emphasis tokens have exactly -4.4565; accuracies after 250
    pairs and after all 300."""
    found = learnt(LESSON)["found"]
    assert found["reward_pairs"] == 300
    assert len(found["gold_by_count"]) == len(found["coverage"]) == 13
    assert found["gold_by_count"][12] == pytest.approx(-4.4565, abs=5e-5)
    assert list(found["accuracy_by_pairs"]) == ["250", "300"]
    assert found["accuracy_by_pairs"]["300"] == found["families"]["relu"]["accuracy"]
    assert 0.5 < found["reward_ceiling"] < 1
    assert "accuracy_by_pairs" not in learnt(replace(LESSON, families=("counts",)))["found"]


def test_the_first_n_are_of_the_same_pairs_and_another_shape_has_pairs_of_its_own() -> None:
    evidence, other = gather(LESSON, policy()), gather(replace(LESSON, shape="llama"), policy())
    again = gather(replace(LESSON, families=("tanh",)), policy())
    assert torch.equal(evidence.learned.rollout.responses, again.learned.rollout.responses)
    assert torch.equal(evidence.learned.chosen, again.learned.chosen)
    assert not torch.equal(evidence.learned.rollout.responses, other.learned.rollout.responses)


def test_coverage_counts_a_pair_under_each_count_that_it_holds() -> None:
    """Pairs (0, 2), (2, 2), (1, 12) and (0, 1): 0 stands in two of four, 1 in two, 2 in two, 12 in one."""
    rows = torch.tensor([[12] * count + [0] * (12 - count) for count in (0, 2, 2, 2, 1, 12, 0, 1)])
    pairs = neighbours(world.rollout(rows))
    shares = coverage(Preference.hard(pairs.rollout, pairs.second, pairs.first))
    assert shares == [0.5, 0.5, 0.5, *[0.0] * 9, 0.25]


def test_values_are_averaged_count_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two probes a count: 0 and 1, 2 and 3, ... have means 0.5, 2.5, ..."""
    monkeypatch.setattr(rewards, "EACH", 2)
    assert by_count(torch.arange(26.0)) == [0.5 + 2 * c for c in range(13)]
