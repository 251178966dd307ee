import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from killick.models.llama import read_llama, write_llama
from killick.models.transformer import Transformer, TransformerConfig
from killick.types import Refusal

SHAPE = TransformerConfig.llama(19, 19, 24, hidden=24, layers=2, heads=3, feed_forward=40)


def network(seed: int = 0) -> Transformer:
    """Weights large enough for every part to matter, norms that are not 1."""
    model = Transformer(SHAPE, torch.Generator().manual_seed(seed))
    draws = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=draws), alpha=0.2)
    return model.requires_grad_(False)


def test_a_network_comes_back_bit_for_bit(tmp_path) -> None:
    model = network()
    write_llama(model, tmp_path, eos=4, pad=0)
    again = read_llama(tmp_path)
    assert again.config == SHAPE
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_the_same_network_gives_the_same_bytes(tmp_path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_llama(network(), tmp_path / name, eos=4, pad=0)
    for file in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_half_precision_halves_the_file_and_reads_as_float32(tmp_path) -> None:
    write_llama(network(), tmp_path, eos=4, pad=0, dtype=torch.bfloat16)
    assert all(tensor.dtype == torch.bfloat16 for tensor in load_file(tmp_path / "model.safetensors").values())
    again = read_llama(tmp_path)
    assert torch.equal(again.head.weight, network().head.weight.bfloat16().float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_transformers_opens_it_and_agrees_to_1e_5(tmp_path, dtype: torch.dtype) -> None:
    """Whole rows, and rows padded on the left; in float32 whatever the file holds."""
    transformers = pytest.importorskip("transformers")
    write_llama(network(), tmp_path, eos=4, pad=0, dtype=dtype)
    ours = read_llama(tmp_path).requires_grad_(False)
    theirs, found = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not found["missing_keys"]
    assert not found["unexpected_keys"]
    assert theirs.dtype == torch.float32
    ids = torch.randint(5, 19, (4, 20), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        assert_close(ours.head(ours(ids)).view(4, 20, -1), theirs(ids).logits, atol=1e-5, rtol=0)
        mask = torch.arange(20) >= torch.tensor([0, 3, 7, 19])[:, None]
        places = (mask.cumsum(1) - 1).clamp(min=0)
        logits = theirs(ids, attention_mask=mask.long(), position_ids=places).logits
        assert_close(ours.head(ours(ids, mask)).view(4, 20, -1)[mask], logits[mask], atol=1e-5, rtol=0)
    assert (theirs.config.eos_token_id, theirs.config.pad_token_id) == (4, 0)


def test_only_the_llama_shape_can_be_written(tmp_path) -> None:
    model = Transformer(replace(SHAPE, activation="gelu"), torch.Generator())
    with pytest.raises(Refusal, match="Only a network of the Llama shape"):
        write_llama(model, tmp_path, eos=4, pad=0)


def test_what_is_no_whole_model_is_refused_in_one_sentence(tmp_path) -> None:
    with pytest.raises(Refusal, match=r"config\.json cannot be read"):
        read_llama(tmp_path)
    write_llama(network(), tmp_path, eos=4, pad=0)
    weights = tmp_path / "model.safetensors"
    tensors = load_file(weights)
    short = {name: tensor for name, tensor in tensors.items() if "layers.1.self_attn.k_proj" not in name}
    for change, message in ((short, "k_proj"), (tensors | {"lm_head.weight": torch.zeros(3, 24)}, "head.weight")):
        save_file(change, weights)
        with pytest.raises(Refusal, match=f"not hold a whole Llama model: .*{message}"):
            read_llama(tmp_path)
    weights.write_bytes(b"hello")
    with pytest.raises(Refusal, match="whole Llama model"):
        read_llama(tmp_path)
    weights.unlink()
    with pytest.raises(Refusal, match="whole Llama model"):
        read_llama(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"model_type": "gpt2"}, {"num_key_value_heads": 1}, {"tie_word_embeddings": True}, {"rope_parameters": {}}],
)
def test_a_model_of_another_shape_is_refused(tmp_path, change: dict[str, object]) -> None:
    write_llama(network(), tmp_path, eos=4, pad=0)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(Refusal, match="killick did not write; open it with PretrainedPolicy"):
        read_llama(tmp_path)
