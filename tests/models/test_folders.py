"""Model folders: every fault is told by name, and what is written is an ordinary folder."""

import os

import pytest
import torch

import llamas
from killick.models.folders import compact, open_causal, open_judging, several, write_folder
from killick.types import Refusal

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers", reason="a model's folder needs transformers (extra hf)")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_a_reward_model_is_no_policy(tmp_path) -> None:
    """Its head would be left out, or a fresh one put in its place."""
    from transformers import LlamaForSequenceClassification

    LlamaForSequenceClassification(llamas.llama(layers=1).config).save_pretrained(tmp_path)
    with pytest.raises(Refusal, match=r"a model that judges \(LlamaForSequenceClassification\), not one that speaks"):
        open_causal(tmp_path)
    model, missing = open_judging(tmp_path, dtype=torch.float32, num_labels=2)
    assert (model.score.out_features, missing) == (2, [])


def test_a_written_folder_opens_bit_equal_and_holds_no_pickle(tmp_path) -> None:
    """An ordinary model folder with safetensors; the weights that stand in are the ones that are written."""
    model = llamas.llama(layers=1)
    norm = torch.arange(float(model.config.hidden_size))
    write_folder(model, tmp_path, dtype=torch.float32, texts=None, trained={"model.norm.weight": norm})
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "model.safetensors"} <= names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pkl"))]
    copy = open_causal(tmp_path).state_dict()
    assert torch.equal(copy.pop("model.norm.weight"), norm)
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in copy.items())


def test_a_folder_that_is_no_model_is_refused_in_one_sentence(tmp_path) -> None:
    """Absent, empty, with settings that are no JSON, with settings but no weights."""
    (tmp_path / "empty").mkdir()
    for name, content in (("nonsense", "{"), ("bare", '{"model_type": "llama", "vocab_size": 24}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(content)
    for name in ("absent", "empty", "nonsense", "bare"):
        with pytest.raises(Refusal, match=f"{name} is no folder of a causal language model") as refusal:
            open_causal(tmp_path / name)
        assert "\n" not in str(refusal.value)


def test_a_folder_whose_weights_are_cut_off_is_refused(tmp_path) -> None:
    """Half a file."""
    path = llamas.llama_folder(tmp_path, layers=1) / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(Refusal, match=r"weights in .* are damaged"):
        open_causal(tmp_path)


def test_a_folder_without_one_of_the_tensors_is_refused_by_its_name(tmp_path) -> None:
    """Never fresh random ones in their place: log-probs would be noise, and nobody would know."""
    from safetensors.torch import load_file, save_file

    llamas.llama_folder(tmp_path, layers=1)
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(Refusal, match=r"lacks the weights model\.norm\.weight"):
        open_causal(tmp_path)


def test_five_names_are_told_and_how_many_more_there_are() -> None:
    assert several(list("abcde")) == "a, b, c, d, e"
    assert several(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_weights_are_halved_where_nothing_is_lost() -> None:
    """1.5 is a bfloat16, 1.001 is none."""
    found = compact({"exact": torch.tensor([1.5, -2.0]), "not": torch.tensor([1.5, 1.001])})
    assert {name: weight.dtype for name, weight in found.items()} == {"exact": torch.bfloat16, "not": torch.float32}
