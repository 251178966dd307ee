"""The transformer: its sizes, torch's own layer beside it, the cache, padding, causality and rotary positions."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.testing import assert_close

from killick.models.transformer import (
    Block,
    Cache,
    Transformer,
    TransformerConfig,
    rotations,
    visibility,
)
from killick.types import Refusal

modest = settings(max_examples=15, deadline=None, derandomize=True)
SMALL = TransformerConfig(11, 7, context=12, hidden=16, layers=2, heads=2, feed_forward=24)
SHAPES = [
    replace(SMALL, norm=n, positions=p, activation=a, biases=a != "swiglu", final_norm=n == "rms")  # type: ignore[arg-type]
    for n, p, a in product(("layer", "rms"), ("learned", "rotary"), ("relu", "gelu", "swiglu"))
]
every_shape = pytest.mark.parametrize("config", SHAPES, ids=lambda c: f"{c.norm}-{c.positions}-{c.activation}")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(config: TransformerConfig = SMALL, seed: int = 0) -> Transformer:
    return Transformer(config, seeded(seed)).requires_grad_(False)


def ids_of(batch: int, length: int, seed: int = 1) -> Tensor:
    return torch.randint(0, 11, (batch, length), generator=seeded(seed))


def size(config: TransformerConfig) -> int:
    return sum(p.numel() for p in network(config).parameters())


# Closed forms


def test_the_arithmetic_network_has_102_542_weights() -> None:
    """Embeddings 14 x 64 and 10 x 64; two layers of qkv 12,480, out 4,160, up 16,640, down 16,448, norms 256; final
    norm 128; head 910."""
    assert size(TransformerConfig(14, 14, context=10)) == 102_542
    assert 24 * 64 + 2 * (12_480 + 4_160 + 16_640 + 16_448 + 256) + 128 + 910 == 102_542


def test_the_emphasis_network_has_70_936_weights() -> None:
    """Embeddings 25 x 64 and 13 x 64; two layers of qkv 12,480, out 4,160, up 8,320, down 8,256, norms 256; no final
    norm; head 1,560."""
    assert size(TransformerConfig(25, 24, context=13, feed_forward=128, final_norm=False)) == 70_936
    assert 38 * 64 + 2 * (12_480 + 4_160 + 8_320 + 8_256 + 256) + 1_560 == 70_936


def test_the_llama_shape_has_no_biases_and_no_learned_positions() -> None:
    """Embedding 11 x 16; two layers of 4 x 256 (attention), 3 x 384 (gated feed-forward), 32 (norms); 16; head 112."""
    config = TransformerConfig.llama(11, 7, 12, hidden=16, layers=2, heads=2, feed_forward=24)
    assert size(config) == 176 + 2 * (1024 + 1152 + 32) + 16 + 112
    assert not [name for name, _ in network(config).named_parameters() if "bias" in name or "place" in name]


def test_a_layer_is_torchs_own_pre_norm_encoder_layer() -> None:
    """`nn.TransformerEncoderLayer(norm_first=True)` with the same weights and a causal mask; 1e-5 in float32."""
    block = next(network(replace(SMALL, layers=1)).blocks.children())
    other = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True, norm_first=True)
    names = {
        "self_attn.in_proj_": "qkv.", "self_attn.out_proj.": "out.", "linear1.": "up.", "linear2.": "down.",
        "norm1.": "norm_attention.", "norm2.": "norm_feed_forward.",
    }  # fmt: skip
    mine = block.state_dict()
    other.load_state_dict(
        {theirs + kind: mine[ours + kind] for theirs, ours in names.items() for kind in ("weight", "bias")}
    )
    x = torch.randn(3, 5, 16, generator=seeded(2))
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    out = block(x.reshape(15, 16), 3, None, None, None).view(3, 5, 16)
    assert_close(out, other(x, src_mask=causal, is_causal=True).detach(), atol=1e-5, rtol=1e-5)


def test_rotations_are_unit_turns_of_falling_speed_and_leave_values_alone() -> None:
    """Position p turns pair j by p / 10000^(2 j / 8) for a head of width 8."""
    turn = rotations(SMALL)
    assert turn.shape == (12, 3, 1, 4)
    for place, pair in product(range(12), range(4)):
        angle = place / 10_000 ** (2 * pair / 8)
        expected = complex(math.cos(angle), math.sin(angle))
        assert complex(turn[place, 0, 0, pair]) == pytest.approx(expected, abs=1e-6)
        assert turn[place, 1, 0, pair] == turn[place, 0, 0, pair]
        assert complex(turn[place, 2, 0, pair]) == 1


def test_visibility_is_the_past_that_is_real_and_oneself() -> None:
    """Two padded columns, then three tokens; a padded query sees itself only, so that its softmax is finite."""
    mask = torch.tensor([[False, False, True, True, True]])
    expected = torch.tensor(
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    ).bool()
    assert torch.equal(visibility(mask, 5)[0, 0], expected)
    assert torch.equal(visibility(mask, 2)[0, 0], expected[3:])


# The start


def test_the_second_layer_starts_as_a_copy_of_the_first_and_not_as_the_same_tensors() -> None:
    """As `nn.TransformerEncoder` does; under "normal" all layers are drawn apart."""
    first, second = (block.state_dict() for block in network().blocks)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(first[name].data_ptr() != second[name].data_ptr() for name in first)
    first, second = (block.state_dict() for block in network(replace(SMALL, initialisation="normal")).blocks)
    assert not torch.equal(first["qkv.weight"], second["qkv.weight"])


def test_torchs_start_has_torchs_ranges() -> None:
    """Xavier for qkv: +-sqrt(6 / (64 + 192)); He for the rest: +-1 / sqrt(inputs); attention biases 0; embeddings
    N(0, 1). The largest of thousands of uniform numbers lies within 1 % of its range."""
    model = network(TransformerConfig(200, 14, context=100))
    block = model.blocks[0].state_dict()
    for name, width in (("qkv", (6 / 256) ** 0.5), ("out", 1 / 8), ("up", 1 / 8), ("down", 1 / 16)):
        assert 0.99 * width < float(block[f"{name}.weight"].abs().max()) <= width
    assert not bool(block["qkv.bias"].any() | block["out.bias"].any())
    assert 0 < float(block["up.bias"].abs().max()) <= 1 / 8
    # Variance of 12,800 standard normal numbers: within 4 standard errors, sqrt(2 / 12800) = 0.0125 each.
    assert abs(float(model.embed.weight.var()) - 1) < 0.05


def test_the_normal_start_has_deviation_0_02_and_no_biases() -> None:
    """16,384 numbers: the deviation within 4 standard errors (0.02 / sqrt(2 x 16384) = 1.1e-4)."""
    model = network(replace(TransformerConfig(14, 14, context=10), initialisation="normal"))
    assert abs(float(model.blocks[0].state_dict()["up.weight"].std()) - 0.02) < 4.5e-4
    assert not any(bool(p.any()) for name, p in model.named_parameters() if name.endswith("bias"))


def test_the_generator_alone_decides_the_weights() -> None:
    """Same seed, same weights; the global stream is left alone."""
    before = torch.random.get_rng_state()
    a, b, c = (network(seed=seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(a.head.weight, b.head.weight)
    assert not torch.equal(a.head.weight, c.head.weight)


# Invariants


@every_shape
def test_states_read_through_the_cache_are_those_of_one_pass(config: TransformerConfig) -> None:
    """Four tokens at once, then one by one; with and without padding on the left (1e-5 in float32)."""
    model, ids = network(config), ids_of(3, 8)
    for mask in (None, torch.tensor([[1] * 8, [0] + [1] * 7, [0, 0, 0] + [1] * 5]).bool()):
        whole = model(ids, mask).view(3, 8, -1)
        caches = [Cache(3, config, 8, model.head.weight) for _ in model.blocks]
        parts = []
        for start, stop in ((0, 4), (4, 5), (5, 6), (6, 7), (7, 8)):
            seen = None if mask is None else mask[:, :stop]
            parts.append(model(ids[:, start:stop], seen, 0, caches).view(3, stop - start, -1))
        real = torch.ones(3, 8, dtype=torch.bool) if mask is None else mask
        assert_close(torch.cat(parts, 1)[real], whole[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("masked", [True, False])
def test_several_new_tokens_behind_a_cache_see_all_of_it(masked: bool) -> None:
    """Four tokens, then four more at once, with a mask of ones and without a mask: the states of one pass (1e-5)."""
    model, ids = network(), ids_of(3, 8)
    caches = [Cache(3, SMALL, 8, model.head.weight) for _ in model.blocks]
    model(ids[:, :4], None, 0, caches)
    mask = torch.ones(3, 8, dtype=torch.bool) if masked else None
    found = model(ids[:, 4:], mask, 0, caches)
    assert_close(found, model(ids, None, 4), atol=1e-5, rtol=1e-5)


@every_shape
def test_no_state_sees_a_later_token(config: TransformerConfig) -> None:
    """Change token 4 of 6: states 0 to 3 stay (1e-6), state 4 and 5 move."""
    model, ids = network(config), ids_of(2, 6)
    other = ids.clone()
    other[:, 4] = (other[:, 4] + 1) % 11
    before, after = (model(x).view(2, 6, -1) for x in (ids, other))
    assert_close(before[:, :4], after[:, :4], atol=1e-6, rtol=1e-6)
    assert float((before[:, 4:] - after[:, 4:]).abs().amax(2).min()) > 1e-4


@every_shape
def test_padding_on_the_left_is_invisible(config: TransformerConfig) -> None:
    """Three more columns in front, whatever they hold: the same states behind them (1e-5), so positions follow too."""
    model, ids = network(config), ids_of(2, 5)
    plain = model(ids)
    mask = torch.tensor([[False] * 3 + [True] * 5] * 2)
    for fill in (0, 9):
        padded = torch.cat((torch.full((2, 3), fill), ids), 1)
        assert_close(model(padded, mask, 3), plain, atol=1e-5, rtol=1e-5)


@modest
@given(st.integers(0, 7), st.integers(0, 1000))
def test_the_first_column_only_cuts_what_is_returned(first: int, seed: int) -> None:
    """States from `first` on are the last ones of all (1e-6)."""
    model, ids = network(), ids_of(2, 8, seed)
    whole = model(ids).view(2, 8, -1)
    assert_close(model(ids, None, first).view(2, 8 - first, -1), whole[:, first:], atol=1e-6, rtol=1e-6)


@modest
@given(st.integers(1, 7), st.integers(0, 1000))
def test_rotary_attention_depends_on_relative_position_only(shift: int, seed: int) -> None:
    """All positions moved by the same shift: the same output (1e-5). Moved apart by it: another one."""
    config = replace(SMALL, positions="rotary")
    block, turn = Block(config).requires_grad_(False), rotations(config)
    x = torch.randn(5, 16, generator=seeded(seed))
    near = torch.arange(5)
    plain = block(x, 1, turn[near], None, None)
    assert_close(block(x, 1, turn[near + shift], None, None), plain, atol=1e-5, rtol=1e-5)
    apart = near + shift * (near >= 2)
    assert float((block(x, 1, turn[apart], None, None) - plain).abs().max()) > 1e-4


def test_a_row_is_the_same_alone_as_in_a_batch() -> None:
    """1e-5: another shape may round otherwise."""
    model, ids = network(), ids_of(4, 6)
    whole = model(ids).view(4, 6, -1)
    for row in range(4):
        assert_close(model(ids[row : row + 1]), whole[row], atol=1e-5, rtol=1e-5)


# Refusals


@pytest.mark.parametrize("name", ["inputs", "outputs", "context", "hidden", "layers", "heads", "feed_forward"])
def test_sizes_below_one_are_refused_by_name(name: str) -> None:
    """Zero and below."""
    for value in (0, -4):
        with pytest.raises(Refusal, match=f"{name} must be at least 1, not {value}"):
            replace(SMALL, **{name: value}).validate()  # type: ignore[arg-type]


def test_a_width_that_does_not_fall_into_heads_of_pairs_is_refused() -> None:
    """16 by 3 heads, and 6 by 2 heads of 3 (odd: no pairs to turn)."""
    for hidden, heads in ((16, 3), (6, 2)):
        with pytest.raises(Refusal, match=f"hidden {hidden}"):
            network(replace(SMALL, hidden=hidden, heads=heads))


def test_a_sequence_beyond_the_context_is_refused_before_anything_is_read() -> None:
    """13 tokens in 12; also 12 cached and one new."""
    model = network()
    with pytest.raises(Refusal, match="13 tokens is longer than the context of 12"):
        model(ids_of(1, 13))
    caches = [Cache(1, SMALL, 13, model.head.weight) for _ in model.blocks]
    model(ids_of(1, 12), None, 0, caches)
    with pytest.raises(Refusal, match="13 tokens"):
        model(ids_of(1, 1), None, 0, caches)


def test_a_long_cached_sequence_has_the_states_of_one_pass() -> None:
    """Token by token past the threshold, rows padded on the left, against the whole row at once."""
    config = TransformerConfig.llama(11, 7, 30, hidden=16, layers=2, heads=2, feed_forward=24)
    model, ids = network(config), ids_of(3, 30)
    mask = torch.arange(30) >= torch.tensor([0, 2, 5])[:, None]
    whole = model(ids, mask).view(3, 30, -1)
    caches = [Cache(3, config, 30, model.head.weight) for _ in model.blocks]
    model(ids[:, :6], mask[:, :6], 5, caches)
    for place in range(6, 30):
        assert_close(model(ids[:, place, None], mask[:, : place + 1], 0, caches), whole[:, place], atol=1e-5, rtol=0)
