"""From labels to a reward model: what people prefer comes out, as right as their noise allows, and survives a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from killick.models.weights import read
from killick.preferences.storing.records import Item, Judgement
from killick.recipes.labelling.labels import read_labels
from killick.recipes.reward.fit import WEIGHTS, Fitted, accuracy_facts, fit_reward, load, save, soft_ceiling
from killick.types import Preference, Refusal, Rollout
from labelled import answers_items, arithmetic_items, emphasis_items, labels


def fitted(items: list[Item], world: str, *, annotators: int, kappa: float = 2.0) -> Fitted:
    """The whole way from items."""
    return fit_reward(read_labels(labels(items, annotators=annotators, kappa=kappa), world, seed=0), world, seed=0)


@pytest.mark.parametrize("k", [2, 4])
def test_even_digits_come_out_positive_and_the_accuracy_lies_by_its_ceiling(k: int) -> None:
    """Kappa 2, last digits all different: of 45 pairs 25 differ in parity. Ceiling (25 sigma(2) + 20 / 2) / 45 = .7115.

    The digit weights can reach it here, since answers differ in their last digit only. Accuracy: 90 held-out rankings
    or more, three standard errors of as many pairs; the ceiling from agreement takes
    strengths for normal, which they are not.
    """
    found = fitted(arithmetic_items(400 if k == 2 else 120, k=k), "arithmetic", annotators=3)
    weights = list(found.facts["weights"].values())
    assert min(weights[::2]) > 0.05
    assert max(weights[1::2]) < -0.05
    assert found.facts["accuracy"] == pytest.approx(0.7115, abs=3 * (0.7115 * 0.2885 / 90) ** 0.5)
    assert found.facts["accuracy_low"] < 0.7115 < found.facts["accuracy_high"]
    assert found.facts["ceiling"] == pytest.approx(0.7115, abs=0.04)
    assert found.facts["ceiling_low"] < found.facts["ceiling"] < found.facts["ceiling_high"]


@pytest.mark.parametrize("every", [0, 3])
def test_without_overlap_the_ceiling_is_not_known(every: int) -> None:
    """One annotator, who ties nothing or each third pair: one opinion of each item has no noise that could be seen."""
    rows = labels(arithmetic_items(150), annotators=1)
    tie = Judgement(((0, 1),), 1.0)
    rows = [
        (item, replace(label, judgement=tie) if every and place % every == 0 else label)
        for place, (item, label) in enumerate(rows)
    ]
    facts = fit_reward(read_labels(rows, "arithmetic", seed=0), "arithmetic", seed=0).facts
    assert (facts["ceiling"], facts["kappa"], facts["ties"]) == (None, None, 50 if every else 0)


def test_other_worlds_have_their_own_reward_models(tmp_path: Path) -> None:
    """Emphasis: tokens of high value please; no weight a symbol, and the file gives the same scores bit for bit."""
    found = fitted(emphasis_items(200), "emphasis", annotators=1, kappa=20.0)
    assert found.facts["weights"] is None
    assert found.facts["accuracy"] > 0.7
    save(found, tmp_path)
    rollout = read_labels(labels(emphasis_items(60), annotators=1), "emphasis", seed=0).preference.rollout
    with torch.no_grad():
        assert torch.equal(load(tmp_path)(rollout), found.model(rollout))


def test_a_world_of_four_prompts_is_fitted_and_judged_by_other_items() -> None:
    """Answers, 90 of its own pairs, three annotators who seldom err."""
    facts = fitted(answers_items(90), "answers", annotators=3, kappa=10.0).facts
    assert facts["split_by"] == "items"
    assert 10 <= facts["held_units"] <= 40
    assert facts["accuracy"] > 0.7
    assert facts["ceiling"] > 0.8


def test_a_saved_model_is_read_back_and_nothing_is_overwritten(tmp_path: Path) -> None:
    """Weights bit for bit, results as plain numbers."""
    found = fitted(arithmetic_items(120), "arithmetic", annotators=2)
    save(found, tmp_path / "rm")
    assert torch.equal(load(tmp_path / "rm").state_dict()["weights"], found.model.state_dict()["weights"])
    assert json.loads((tmp_path / "rm" / "results.json").read_text()) == found.facts
    with pytest.raises(Refusal, match="is there already, and nothing is overwritten"):
        save(found, tmp_path / "rm")


def test_a_file_without_its_weights_is_refused_by_name(tmp_path: Path) -> None:
    """A copy with the tensor deleted (O-08), and a file of another kind."""
    save(fitted(arithmetic_items(120), "arithmetic", annotators=1), tmp_path)
    settings, tensors = read(tmp_path / WEIGHTS)
    save_file({"tokens": tensors["tokens"]}, tmp_path / WEIGHTS, {"killick": json.dumps(settings)})
    assert "weights" not in load_file(tmp_path / WEIGHTS)
    with pytest.raises(Refusal, match=r'does not fit the world arithmetic.*Missing key.*"weights"'):
        load(tmp_path)
    save_file(tensors, tmp_path / WEIGHTS, {"killick": json.dumps({"kind": "policy"})})
    with pytest.raises(Refusal, match="holds no reward model of a world"):
        load(tmp_path)


def test_accuracy_is_over_pairs_not_over_batches() -> None:
    """O-53: of 17 pairs all but the last are right: 16 / 17 = .941176. A tie among the labels counts for nothing, an
    exact tie of scores for one half (O-05).
    """
    rows = torch.arange(36)
    ids = rows[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    rollout = Rollout(ids, seen, ids, seen, torch.zeros(ids.shape), seen[:, 0])
    pairs = Preference.hard(rollout, rows[::2], rows[1::2])
    pairs = replace(pairs, label=torch.tensor([1.0] * 17 + [0.5]))
    scores = torch.tensor([1.0, 0.0] * 16 + [0.0, 1.0] * 2)
    units, draws = torch.arange(18), torch.Generator().manual_seed(0)
    found = accuracy_facts(scores, pairs, units=units, generator=draws)
    assert found["accuracy"] == pytest.approx(0.941176, abs=1e-6)
    scores[:2] = 3.0
    assert accuracy_facts(scores, pairs, units=units, generator=draws)["accuracy"] == pytest.approx(15.5 / 17)


def test_soft_labels_are_met_as_often_as_they_say_and_set_the_ceiling_themselves() -> None:
    """Labels .9, .7 and one half, the second pair ordered the wrong way round: (.9 + .3) / 2 right of (.9 + .7) / 2."""
    rows = torch.arange(6)
    ids, seen = rows[:, None], torch.ones(6, 1, dtype=torch.bool)
    pairs = Preference.hard(Rollout(ids, seen, ids, seen, torch.zeros(6, 1), seen[:, 0]), rows[::2], rows[1::2])
    assert soft_ceiling(pairs) is None
    soft = replace(pairs, label=torch.tensor([0.9, 0.7, 0.5]))
    scores = torch.tensor([2.0, 1.0, 1.0, 2.0, 1.0, 2.0])
    found = accuracy_facts(scores, soft, units=torch.arange(3), generator=torch.Generator().manual_seed(0))
    assert found["accuracy"] == pytest.approx(0.6)
    ceiling = soft_ceiling(soft)
    assert ceiling is not None
    assert ceiling["ceiling"] == pytest.approx(0.8)
    mixed = replace(pairs, label=torch.tensor([0.9, 1.0, 1.0]))
    assert soft_ceiling(mixed) is None  # one soft label says nothing of the others
