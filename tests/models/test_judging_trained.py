"""Layers that learn: the scores of the model itself, in any batch, and put back where they belong."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from killick.models.judging import PretrainedReward
from killick.models.judging_trained import TopJudge, WholeJudge
from killick.types import Refusal, Rollout
from llamas import llama_folder

PROMPTS = ["Hi", "My honest review of the lamp: I thought", "Hi", "x"]
ANSWERS = ["it was good.", "", "no", "a much longer answer, since lengths differ " * 2]


@pytest.fixture(name="judge")
def begun(tmp_path: Path) -> PretrainedReward:
    judge = PretrainedReward.begin(llama_folder(tmp_path))
    with torch.no_grad():
        judge.model.score.weight.normal_(generator=torch.Generator().manual_seed(0))
    return judge


@pytest.fixture(name="rollout")
def reading(judge: PretrainedReward) -> Rollout:
    return judge.read(PROMPTS, ANSWERS)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("kept", [2**30, 0])
def test_top_layers_give_the_models_own_scores(
    judge: PretrainedReward, rollout: Rollout, layers: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether trunk states are kept or computed anew; rows that come twice, in any order."""
    monkeypatch.setattr("killick.models.judging_trained.KEPT", kept)
    model = TopJudge(judge, rollout, train_layers=layers)
    assert (model.below is None) == (kept == 0)
    rows = torch.tensor([3, 1, 3, 0, 2])
    assert_close(model.score(rows).detach(), judge.scores(PROMPTS, ANSWERS)[rows], atol=1e-5, rtol=0)


def test_all_weights_give_the_models_own_scores(judge: PretrainedReward, rollout: Rollout) -> None:
    rows = torch.tensor([3, 1, 3, 0, 2])
    found = WholeJudge(judge, rollout).score(rows)
    assert_close(found.detach(), judge.scores(PROMPTS, ANSWERS)[rows], atol=1e-5, rtol=0)
    found.sum().backward()
    assert all(weight.grad is not None for weight in judge.model.parameters())


def test_what_top_layers_learn_is_put_back_and_nothing_else_moves(judge: PretrainedReward, rollout: Rollout) -> None:
    before = {name: weight.clone() for name, weight in judge.model.state_dict().items()}
    model = TopJudge(judge, rollout, train_layers=1)
    for weight in model.parameters():
        with torch.no_grad():
            weight.add_(0.01)
    assert all(torch.equal(weight, before[name]) for name, weight in judge.model.state_dict().items())
    expected = model.score(torch.arange(4)).detach()
    model.put_back()
    assert_close(judge.scores(PROMPTS, ANSWERS), expected, atol=1e-5, rtol=0)
    moved = {name for name, weight in judge.model.state_dict().items() if not torch.equal(weight, before[name])}
    assert all(name.startswith(("model.layers.2.", "model.norm", "score")) for name in moved)
    assert any(name.startswith("model.layers.2.") for name in moved)


def test_only_what_learns_is_in_its_state(judge: PretrainedReward, rollout: Rollout) -> None:
    top, whole = TopJudge(judge, rollout, train_layers=2), WholeJudge(judge, rollout)
    assert {name.split(".")[0] for name in top.state_dict()} == {"layers", "norm", "head"}
    assert sum(weight.numel() for weight in top.parameters()) < sum(weight.numel() for weight in whole.parameters())


def test_layers_that_are_not_there_are_refused(judge: PretrainedReward, rollout: Rollout) -> None:
    with pytest.raises(Refusal, match="The model has 3 layers; between 1 and 3 of them can train, not 4"):
        TopJudge(judge, rollout, train_layers=4)
