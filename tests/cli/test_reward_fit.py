"""`killick reward fit PREFS --model DIR --out DIR`: from a file to a folder; one sentence for each fault."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import Command, command
from killick.preferences.store import Judgement, Store
from killick.preferences.storing.records import Item
from llamas import llama_folder
from preferring import pairs, written
from stores import join

killick = pytest.fixture(command, name="killick")


@pytest.fixture(autouse=True)
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    llama_folder(tmp_path / "model")
    written(tmp_path / "prefs.jsonl", pairs(60))


FIT = ("reward", "fit", "prefs.jsonl", "--model", "model", "--out", "rm")


def test_from_a_file_to_a_reward_model(killick: Command, tmp_path: Path) -> None:
    """Numbers on the screen are those of results.json; the place is not taken twice; the next command is told."""
    said = killick(*FIT, "--members", "3")
    assert said.status == 0, said.err
    facts = json.loads((tmp_path / "rm" / "results.json").read_text())
    assert "prefs.jsonl: 240 judgements (pairs);" in said.out
    assert f"accuracy  {facts['accuracy']:.3f}  [{facts['accuracy_low']:.3f}, {facts['accuracy_high']:.3f}]" in said.out
    assert "ceiling   not known" in said.out
    assert "its head the mean of 3" in said.out
    assert said.out.endswith("killick reward exam rm prefs.jsonl --policy model\n")
    assert facts["accuracy"] > 0.8
    assert {"config.json", "model.safetensors", "members.safetensors", "tokenizer.json", "learned_prompts.json"} <= {
        path.name for path in (tmp_path / "rm").iterdir()
    }
    assert "rm is there already, and nothing is overwritten" in killick(*FIT).err


def test_annotators_who_meet_give_a_ceiling(killick: Command, tmp_path: Path) -> None:
    """Three judge the same 120 pairs; each turns another fifth of them round."""
    rows = [
        replace(row, annotator=f"a{who}", place=row.place[:: -1 if number % 5 == who else 1])
        for who in range(3)
        for number, row in enumerate(pairs(60, each=2))
    ]
    written(tmp_path / "prefs.jsonl", rows, form="comparison")
    said = killick(*FIT)
    assert said.status == 0, said.err
    facts = json.loads((tmp_path / "rm" / "results.json").read_text())
    assert facts["annotators"] == ["a0", "a1", "a2"]
    assert f"ceiling   {facts['ceiling']:.3f}  [" in said.out


def test_from_a_store_to_a_reward_on_text(killick: Command, tmp_path: Path) -> None:
    with Store(str(tmp_path / "labels.db")) as store:
        texts = [tuple(r[0].content for r in row.responses) for row in pairs(60, each=1)]
        store.add_items([Item(f"lamp {number}", each) for number, each in enumerate(texts)], overlap=1)
        one = join(store, "ana")
        for number in range(1, 61):
            judgement = Judgement(() if number == 1 else ((0,), (1,)), 1.0)
            store.label(one, number, judgement=judgement, key=str(number))
    said = killick("reward", "fit", "--from-store", "labels.db", "--model", "model", "--out", "rm")
    assert said.status == 0, said.err
    assert "labels.db: 59 judgements (labels);" in said.out
    assert "Left out or cut: 1 skipped labels" in said.out
    assert said.out.endswith("killick reward exam rm PREFS --policy model\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["reward", "fit", "--model", "model", "--out", "rm"], "a preference file or --from-store DB, one of the two"),
        (["reward", "fit", "prefs.jsonl", "--out", "rm"], "Name what to build on: --model DIR"),
        (["reward", "fit", "prefs.jsonl", "--world", "answers"], "--world goes with --from-store"),
        (["reward", "fit", "prefs.jsonl", "--model", "model"], "Name a new folder for the reward model: --out DIR"),
        (["reward", "fit", "no.jsonl", "--model", "model", "--out", "rm"], "There is no file no.jsonl"),
        ([*FIT[:4], ".", *FIT[5:]], "is no folder of a model (it has no config.json)"),
        ([*FIT, "--max-length", "1000"], "reads 128 tokens at most, not 1000"),
        ([*FIT, "--l2", "0"], "--l2 must be above 0"),
        ([*FIT, "--shares", "0.5", "0.1", "0.1"], "shares of a split must be 0 or more and sum to 1"),
        (["reward", "fit", "--from-store", "no.db", "--model", "model", "--out", "rm"], "There is no store no.db"),
        ([*FIT, "--device", "tpu"], "--device must be auto, cpu, cuda or mps"),
    ],
)
def test_what_cannot_be_fitted_is_one_sentence(killick: Command, tmp_path: Path, words: list[str], told: str) -> None:
    said = killick(*words)
    assert (said.status, told in said.err) == (2, True), said
    assert said.err.count("\n") == 1
    assert not (tmp_path / "rm").exists()


def test_files_and_models_that_do_not_fit(killick: Command, tmp_path: Path) -> None:
    """Answers without judgements; one prompt only; a dialogue for a model without template; damaged weights."""
    (tmp_path / "prefs.jsonl").write_text('{"prompt": "a", "response": "b"}\n')
    assert "columns of no form (prompt, response)" in killick(*FIT).err
    written(tmp_path / "prefs.jsonl", pairs(1))
    assert "All pairs answer one prompt" in killick(*FIT).err
    llama_folder(tmp_path / "plain", template=False)
    talk = '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]'
    (tmp_path / "prefs.jsonl").write_text(f'{{"prompt": {talk}, "chosen": "good", "rejected": "that"}}\n')
    fit = ("reward", "fit", "prefs.jsonl", "--out", "rm", "--model")
    assert "A dialogue needs a tokenizer with a chat template" in killick(*fit, "plain").err
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    assert "The weights in model are damaged" in killick(*fit, "model").err
    assert not (tmp_path / "rm").exists()


def test_a_stop_leaves_nothing_half_written(killick: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while layers train: no folder, the states beside it; the same command goes on and then removes them."""
    from killick.recipes.reward import trained as reward_trained

    words = (*FIT, "--train", "top", "--train-layers", "1", "--epochs", "0.5", "--learning-rate", "1e-3", "--l2", "0.1")
    looked = reward_trained.looked

    def stopped(state: Any, validation: Any, *, best: Any) -> Any:
        if state.step > 3:
            raise KeyboardInterrupt
        return looked(state, validation, best=best)

    monkeypatch.setattr(reward_trained, "looked", stopped)
    said = killick(*words)
    assert said.status == 130
    assert "the same command goes on from there" in said.err
    assert not (tmp_path / "rm").exists()
    monkeypatch.setattr(reward_trained, "looked", looked)
    said = killick(*words)
    assert said.status == 0, said.err
    assert "Going on from step 3 of" in said.out
    assert (tmp_path / "rm" / "results.json").exists()
    assert not list(tmp_path.glob(".rm*"))
    assert "--members makes heads on one frozen trunk" in killick(*words[:4], "x", *words[5:], "--members", "2").err
