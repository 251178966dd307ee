"""Folders that people name by mistake: whichever command opens them, one sentence says what is wrong with them."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from commands import Command, command
from llamas import END, llama_folder

pytest.importorskip("transformers", reason="a language model needs the extra hf")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
killick = pytest.fixture(command, name="killick")
ROWS = [
    {"prompt": f"My {thing}:", "chosen": " was good.", "rejected": f" was not {number}."}
    for number, thing in enumerate(("lamp", "park", "bird", "day", "dog", "hat", "cup", "car", "map", "pen"))
]
FIT = ("reward", "fit", "rows.jsonl", "--l2", "0.1", "--model")
ALIGN = (
    "align", "--prompts", "prompts.txt", "--beta", "0.1", "--steps", "1", "--responses", "4", "--tokens", "4",
    "--held-out", "0", "--out", "out",
)  # fmt: skip
BROKEN = {
    "missing": "",
    "empty": "",
    "letters": "",
    "file": "",
    "config": "",
    "weightless": "model.safetensors",
    "cut": "damaged",
    "pickle": "model.safetensors",
    "sizes": "do not fit its config.json: model.embed_tokens.weight is [300, 32], not [200, 32]",
    "unheard": "",
    "mute": "tokenizer",
    "template": "chat template",
}
"""What is wrong with a folder -> words of the sentence."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return llama_folder(tmp_path_factory.mktemp("model") / "good", layers=2)


def broken(good: Path, folder: Path, how: str) -> Path:
    """A folder with that fault."""
    if how == "empty":
        folder.mkdir()
    elif how == "letters":
        folder.mkdir()
        (folder / "dear.txt").write_text("you", encoding="utf-8")
    elif how == "file":
        folder.write_text("", encoding="utf-8")
    elif how != "missing":
        shutil.copytree(good, folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = folder / "model.safetensors"
        if how == "config":
            (folder / "config.json").write_text("{", encoding="utf-8")
        if how in ("weightless", "pickle"):
            weights.unlink()
        if how == "pickle":
            torch.save({}, folder / "pytorch_model.bin")
        if how == "cut":
            weights.write_bytes(weights.read_bytes()[:5000])
        if how == "mute":
            for path in [*folder.glob("tok*"), *folder.glob("*.jinja")]:
                path.unlink()
        if how == "template":
            (folder / "chat_template.jinja").write_text("{{ broken(", encoding="utf-8")
        changed = {"sizes": {"vocab_size": 200}, "unheard": {"model_type": "nosuch"}}.get(how, {})
        if changed:
            (folder / "config.json").write_text(json.dumps(config | changed), encoding="utf-8")
    return folder


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "prompts.txt").write_text("\n".join(row["prompt"] for row in ROWS), encoding="utf-8")


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize(
    "words",
    [
        (*FIT, "{}", "--out", "out"),
        ("reward", "score", "{}", "rows.jsonl"),
        ("reward", "exam", "{}", "rows.jsonl", "--out", "out"),
        ("best-of", "--candidates", "rows.jsonl", "--reward", "{}"),
        (*ALIGN, "--model", "{}", "--reward", "vader"),
        (*ALIGN, "--model", "good", "--reward", "{}"),
    ],
    ids=["fit", "score", "exam", "best-of", "align", "align for"],
)
def test_what_is_no_model_is_one_sentence_that_names_it(killick: Command, good, files, tmp_path, how, words) -> None:
    (tmp_path / "good").symlink_to(good)
    if "best-of" in words:
        rows = [{"prompt": row["prompt"], "response": row["chosen"]} for row in ROWS]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    broken(good, tmp_path / "wrong", how)
    said = killick(*(word.replace("{}", "wrong") for word in words))
    assert said.status == 2, said.out
    assert len(said.err.splitlines()) == 1, said.err
    assert "wrong" in said.err or how == "template"
    asked_to_judge = "{}" in (words[2], words[-1]) or "exam" in words
    assert BROKEN[how] in said.err or (asked_to_judge and "score.weight" in said.err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("pad", [END, None])
def test_padding_that_is_the_end_token_or_none_at_all_is_no_fault(killick: Command, files, tmp_path, pad) -> None:
    """A reward model is fitted and a policy aligned all the same."""
    llama_folder(tmp_path / "model", layers=2, pad=pad)
    assert killick(*FIT, "model", "--out", "rm").status == 0
    said = killick(*ALIGN, "--model", "model", "--reward", "rm")
    assert said.status == 0, said.err
    assert (tmp_path / "out" / "policy" / "config.json").exists()


def test_a_model_that_was_not_fetched_yet_says_how_to_fetch_it(killick: Command, files) -> None:
    for words in ((*FIT, "smollm2", "--out", "out"), (*ALIGN, "--model", "smollm2", "--reward", "vader")):
        said = killick(*words)
        assert said.status == 2
        assert said.err == "killick: smollm2 is not here yet; killick models get smollm2 fetches it.\n"


def test_a_tokenizer_without_template_takes_no_dialogues(killick: Command, files, tmp_path) -> None:
    """Told by the flag that asks for a frame, and by the prompt that needs one."""
    llama_folder(tmp_path / "model", layers=2, template=False)
    said = killick(*FIT, "model", "--chat", "on", "--out", "out")
    assert (said.status, "no chat template" in said.err) == (2, True)
    turns = [("user", "Hi"), ("assistant", "Yes?"), ("user", "Go")]
    messages = [{"role": role, "content": content} for role, content in turns]
    talks = [row | {"prompt": messages} for row in ROWS]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in talks), encoding="utf-8")
    said = killick(*FIT, "model", "--out", "out")
    assert said.status == 2
    assert "A dialogue needs a tokenizer with a chat template" in said.err
    assert not (tmp_path / "out").exists()
