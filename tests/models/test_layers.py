"""Llama-like layers by hand beside the library's own forward pass, on random weights."""

import os
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from killick.models.decoding import Distribution
from killick.models.layers import KeyValues, layer_of, linear, normed, packed, reach, run, turned, unlike
from killick.models.stack import stack_of
from killick.types import Vocabulary

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("transformers", reason="the library's layers need transformers (extra hf)")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

SIZES = {
    "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 7, "pad_token_id": 0,
}  # fmt: skip
ROPE = {"rope_theta": 5000.0}
LAYOUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama with biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, wide heads": ("Llama", {"head_dim": 16, "num_key_value_heads": 4}),
    "llama 3 positions": ("Llama", {"rope_parameters": ROPE | {
        "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}}),
    "stretched positions": ("Llama", {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 2.0}}),
    "yarn positions": ("Llama", {"rope_parameters": ROPE | {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "mistral, window of 5": ("Mistral", {"sliding_window": 5}),
    "qwen2": ("Qwen2", {}),
    "qwen2, window of 5 from layer 1": ("Qwen2", {
        "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
}  # fmt: skip


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def library(layout: str, **more: Any) -> Any:
    """A random model whose weights, biases and norms included, are far from their initial values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformers
    name, settings = LAYOUTS[layout]
    config = getattr(transformers, f"{name}Config")(
        **SIZES | {"rope_parameters": ROPE | {"rope_type": "default"}} | settings | more
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    draws = seeded(1)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = torch.randn(parameter.shape, generator=draws)
            parameter.copy_(spread * 0.2 if parameter.dim() > 1 else parameter + 0.2 * spread)
    return model


def asked(padding: int) -> tuple[Tensor, Tensor]:
    """Three rows of twelve tokens; the second and third begin with padding."""
    ids = torch.randint(1, 40, (3, 12), generator=seeded(2))
    mask = torch.arange(12) >= torch.tensor([0, padding, 2 * padding])[:, None]
    return ids, mask


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("padding", [0, 3])
def test_one_pass_gives_the_librarys_logits(layout: str, padding: int) -> None:
    model, (ids, mask) = library(layout), asked(padding)
    assert unlike(model) is None
    with torch.no_grad():
        expected = model(ids, attention_mask=mask.long(), position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
        stack = stack_of(model, Distribution(Vocabulary(40, 4)), dtype=torch.float32)
        where = stack.reach(mask, new=12, seen=12)
        found = stack.logits(run(stack.read(ids), stack.layers, where=where)).view(3, 12, 40)
    assert float(expected.std()) > 0.5
    assert_close(found[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_token_by_token_with_a_cache_is_the_same(layout: str) -> None:
    """Five tokens at once, then one at a time, two rows of each prompt: the same logits as in one pass."""
    model, (ids, mask) = library(layout), asked(2)
    stack = stack_of(model, Distribution(Vocabulary(40, 4)), dtype=torch.float32)
    caches = [KeyValues(6, 12) for _ in stack.layers]
    twice, real = ids.repeat_interleave(2, 0), mask.repeat_interleave(2, 0)
    with torch.no_grad():
        where = stack.reach(mask[:, :5], new=5, seen=5)
        first = stack.logits(run(stack.read(ids[:, :5]), stack.layers, where=where, caches=caches)).view(3, 5, 40)
        rest = []
        for at in range(5, 12):
            where = stack.reach(real[:, : at + 1], new=1, seen=at + 1)
            rest.append(stack.logits(run(stack.read(twice[:, at : at + 1]), stack.layers, where=where, caches=caches)))
        expected = model(ids, attention_mask=mask.long(), position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
    assert_close(first[mask[:, :5]], expected[:, :5][mask[:, :5]], atol=1e-5, rtol=1e-5)
    for row in (0, 1):
        assert_close(torch.stack(rest, 1)[row::2], expected[:, 5:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layout", ["llama with biases", "qwen3"])
def test_gradients_are_the_librarys(layout: str) -> None:
    model, (ids, mask) = library(layout), asked(2)
    gradients = []
    for by_hand in (False, True):
        model.zero_grad()
        if by_hand:
            stack = stack_of(model, Distribution(Vocabulary(40, 4)), dtype=torch.float32)
            states = run(stack.read(ids), stack.layers, where=stack.reach(mask, new=12, seen=12))
            logits = stack.logits(states).view(3, 12, 40)
        else:
            logits = model(ids, attention_mask=mask.long(), position_ids=(mask.cumsum(1) - 1).clamp(min=0)).logits
        logits[mask].log_softmax(-1)[:, 3].sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for (name, _), one, other in zip(model.named_parameters(), *gradients, strict=True):
        assert bool(one.any()) or "k_proj.bias" in name, name  # the same for all keys: softmax does not see it
        assert_close(other, one, atol=1e-4, rtol=1e-4)


def test_a_turn_by_hand() -> None:
    """Width 4, theta 100: angles 1 and .1 at position 1. (1, 2, 3, 4) has the pairs (1, 3) and (2, 4):
    cos 1 - 3 sin 1 = -1.984111, 2 cos .1 - 4 sin .1 = 1.590675, 3 cos 1 + sin 1 = 2.462378,
    4 cos .1 + 2 sin .1 = 4.179684."""
    model = library("llama", hidden_size=16, rope_parameters={"rope_type": "default", "rope_theta": 100.0})
    where = reach(model.model.rotary_emb, torch.float32, mask=None, new=1, seen=2)
    found = turned(torch.tensor([1.0, 2.0, 3.0, 4.0]).view(1, 1, 1, 4), where.turn)
    assert_close(found.flatten(), torch.tensor([-1.984111, 1.590675, 2.462378, 4.179684]), atol=1e-5, rtol=0)


def test_a_norm_by_hand() -> None:
    """(3, 4) has the mean square 12.5: divided by 3.5355339 and weighted with (1, 2)."""
    found = normed(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), eps=0.0)
    assert_close(found, torch.tensor([[0.8485281, 2.2627417]]), atol=1e-6, rtol=0)


def test_float32_weights_compute_in_bfloat16_and_still_learn() -> None:
    """The pass is that of the cast weights bit for bit, and the gradient arrives in float32."""
    model = library("llama")
    layer = model.model.layers[0]
    x = torch.randn(24, 32, generator=seeded(3)).bfloat16()
    where = reach(model.model.rotary_emb, torch.bfloat16, mask=None, new=12, seen=12)
    kept = run(x, [layer_of(layer, torch.bfloat16)], where=where)
    kept.float().sum().backward()
    gradient = layer.mlp.up_proj.weight.grad
    assert gradient is not None
    assert gradient.dtype == torch.float32
    with torch.no_grad():
        cast = run(x, [layer_of(layer.bfloat16(), torch.bfloat16)], where=where)
    assert torch.equal(kept, cast)


@pytest.mark.parametrize("rows", [1, 5, 64, 640])
@pytest.mark.parametrize("bias", [False, True])
def test_a_packed_layer_gives_the_same_bits(rows: int, bias: bool) -> None:
    draws = seeded(rows)
    x, weight = (torch.randn(size, 96, generator=draws, dtype=torch.bfloat16) for size in (rows, 160))
    part = weight, torch.randn(160, generator=draws, dtype=torch.bfloat16) if bias else None
    assert torch.equal(linear(x, packed(part, rows=rows)), torch.nn.functional.linear(x, *part))


def test_what_has_no_packed_product_stays_as_it_is() -> None:
    part = torch.randn(4, 3, generator=seeded(0)), None
    assert packed(part, rows=2) is part


def test_a_packed_stack_gives_the_same_logits_and_leaves_its_weights_alone() -> None:
    model = library("llama with biases").bfloat16()
    stack = stack_of(model, Distribution(Vocabulary(40, time=3)), dtype=torch.bfloat16)
    before = [layer.gate[0] for layer in stack.layers]
    ids = torch.randint(1, 40, (4, 6), generator=seeded(1))
    with torch.no_grad():
        found = [each.scored(each.read(ids).view(4, 6, -1), None, first=0) for each in (stack, stack.packed(4))]
    assert torch.equal(*found)
    assert all(
        layer.gate[0] is weight and not weight.is_mkldnn for layer, weight in zip(stack.layers, before, strict=True)
    )


def test_other_layouts_are_named() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    small = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=8, n_layer=1, n_head=2, n_positions=16))
    assert unlike(small) == "layout is gpt2"
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    tiny: dict[str, Any] = SIZES | {"num_hidden_layers": 1}
    stretched = LlamaForCausalLM(LlamaConfig(**tiny, rope_parameters=rope))
    assert unlike(stretched) == "rotary positions are of the type dynamic"
    other = LlamaForCausalLM(LlamaConfig(**tiny, hidden_act="gelu"))
    assert unlike(other) == "activation is gelu"
