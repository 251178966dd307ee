"""`killick reward score DIR ... FILE`: a table, a file of rows, one sentence for each fault."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from commands import Command, command
from killick.models.judging import PretrainedReward
from llamas import llama_folder
from preferring import pairs, written

killick = pytest.fixture(command, name="killick")


@pytest.fixture(autouse=True)
def prepared(tmp_path: Path) -> None:
    for number, name in enumerate(("rm", "other")):
        judge = PretrainedReward.begin(llama_folder(tmp_path / "model", seed=number))
        with torch.no_grad():
            judge.model.score.weight.normal_(generator=torch.Generator().manual_seed(number))
        judge.save(tmp_path / name)
    written(tmp_path / "prefs.jsonl", pairs(6))


def test_every_response_of_a_preference_file(killick: Command, tmp_path: Path) -> None:
    said = killick("reward", "score", "rm", "prefs.jsonl", "--out", "scored.jsonl")
    assert said.status == 0, said.err
    assert "The first 20 of 48 are shown." in " ".join(said.out.split())
    rows = [json.loads(line) for line in (tmp_path / "scored.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows[:3]] == [1, 1, 2]
    judge = PretrainedReward.load(tmp_path / "rm")
    scores = judge.scores([row["prompt"] for row in rows], [row["response"] for row in rows])
    assert [row["score"] for row in rows] == pytest.approx(scores.tolist(), abs=1e-5)
    assert f"{rows[0]['score']:.3f}" in said.out
    again = ("reward", "score", "rm", "prefs.jsonl", "--out", "scored.jsonl")
    assert "scored.jsonl exists, and nothing is written over" in killick(*again).err
    assert killick(*again, "--force").status == 0


def test_several_models_at_once(killick: Command, tmp_path: Path) -> None:
    said = killick("reward", "score", "rm", "other", "prefs.jsonl", "--out", "scored.csv")
    assert said.status == 0, said.err
    head = (tmp_path / "scored.csv").read_text().splitlines()[0]
    assert head == '"line","place","prompt","response","score rm","score other"'


def test_what_cannot_be_scored_is_one_sentence(killick: Command, tmp_path: Path) -> None:
    """A folder alone, a folder in the file's place, a language model, a reward model that lost its head (O-08)."""
    assert "takes the folder of a reward model (or several) and then a file" in killick("reward", "score", "rm").err
    assert "other is a folder" in killick("reward", "score", "rm", "other").err
    assert "named twice" in killick("reward", "score", "rm", "rm", "prefs.jsonl").err
    assert "lacks the weights score.weight" in killick("reward", "score", "model", "prefs.jsonl").err
    assert "There is no model folder none." in killick("reward", "score", "none", "prefs.jsonl").err
    tensors = load_file(tmp_path / "rm" / "model.safetensors")
    del tensors["score.weight"]
    save_file(tensors, tmp_path / "rm" / "model.safetensors", {"format": "pt"})
    assert "rm lacks the weights score.weight" in killick("reward", "score", "rm", "prefs.jsonl").err
