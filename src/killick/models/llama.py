"""Our transformer in its Llama shape as a folder that `AutoModelForCausalLM.from_pretrained` opens, and back.

Nothing of transformers is needed. Only names and order differ: queries, keys and values are one matrix here and three
there, gate and up one and two; a rotary pair is two neighbours here and stands half a head apart there.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import read_json, write_json
from killick.types import Refusal

THETA = 10_000.0


def write_llama(network: Transformer, folder: Path, *, eos: int, pad: int, dtype: torch.dtype = torch.float32) -> None:
    """Write `config.json` and `model.safetensors`.

    Args:
        network: of the Llama shape.
        folder: there already.
        eos: the token that ends a response.
        pad: the token that fills.
        dtype: of the file; what reads it computes in float32.

    Raises:
        Refusal: where the network is of another shape.
    """
    shape = network.config
    if shape != TransformerConfig.llama(**sizes(shape)):
        raise Refusal("Only a network of the Llama shape can be written for transformers (TransformerConfig.llama).")
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32",
        "vocab_size": shape.inputs, "max_position_embeddings": shape.context, "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "num_key_value_heads": shape.heads,
        "intermediate_size": shape.feed_forward, "hidden_act": "silu", "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA}, "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": eos, "pad_token_id": pad,
    }  # fmt: skip
    tensors = {name: tensor.to(dtype).contiguous() for name, tensor in renamed(network).items()}
    write_json(folder / "config.json", config)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def read_llama(folder: Path) -> Transformer:
    """The network that `write_llama` wrote, in float32.

    Raises:
        Refusal: where there is none, or it is damaged or of another shape.
    """
    config = read_json(folder / "config.json")
    try:
        rotary = config["rope_parameters"]
        known = (config["model_type"], config["num_key_value_heads"], rotary, config["tie_word_embeddings"])
        if known != ("llama", config["num_attention_heads"], {"rope_type": "default", "rope_theta": THETA}, False):
            raise Refusal(f"{folder} holds a model that killick did not write; open it with PretrainedPolicy.")
        shape = TransformerConfig.llama(
            config["vocab_size"], config["vocab_size"], config["max_position_embeddings"], hidden=config["hidden_size"],
            layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
            feed_forward=config["intermediate_size"],
        )  # fmt: skip
        network = Transformer(shape, torch.Generator())
        tensors = load_file(folder / "model.safetensors")
        network.load_state_dict(joined({name: tensor.float() for name, tensor in tensors.items()}, shape))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise Refusal(f"{folder} does not hold a whole Llama model: {reason}.") from error
    return network


def sizes(shape: TransformerConfig) -> dict[str, Any]:
    """What is free in the Llama shape."""
    names = ("inputs", "outputs", "context", "hidden", "layers", "heads", "feed_forward")
    return {name: getattr(shape, name) for name in names}


def renamed(network: Transformer) -> dict[str, Tensor]:
    """The weights under Llama's names, in Llama's order."""
    state, heads = network.state_dict(), network.config.heads
    out = {
        "model.embed_tokens.weight": state["embed.weight"],
        "model.norm.weight": state["final_norm.weight"],
        "lm_head.weight": state["head.weight"],
    }
    for layer in range(network.config.layers):
        here, there = f"blocks.{layer}.", f"model.layers.{layer}."
        queries, keys, values = state[here + "qkv.weight"].chunk(3)
        gate, up = state[here + "up.weight"].chunk(2)
        out |= {
            there + "input_layernorm.weight": state[here + "norm_attention.weight"],
            there + "self_attn.q_proj.weight": halves(queries, heads),
            there + "self_attn.k_proj.weight": halves(keys, heads),
            there + "self_attn.v_proj.weight": values,
            there + "self_attn.o_proj.weight": state[here + "out.weight"],
            there + "post_attention_layernorm.weight": state[here + "norm_feed_forward.weight"],
            there + "mlp.gate_proj.weight": gate,
            there + "mlp.up_proj.weight": up,
            there + "mlp.down_proj.weight": state[here + "down.weight"],
        }
    return out


def joined(tensors: dict[str, Tensor], shape: TransformerConfig) -> dict[str, Tensor]:
    """The weights under our names, in our order."""
    out = {
        "embed.weight": tensors["model.embed_tokens.weight"],
        "final_norm.weight": tensors["model.norm.weight"],
        "head.weight": tensors["lm_head.weight"],
    }
    for layer in range(shape.layers):
        here, there = f"blocks.{layer}.", f"model.layers.{layer}."
        queries, keys = (
            neighbours(tensors[f"{there}self_attn.{part}_proj.weight"], shape.heads) for part in ("q", "k")
        )
        gate, up = (tensors[f"{there}mlp.{part}_proj.weight"] for part in ("gate", "up"))
        out |= {
            here + "norm_attention.weight": tensors[there + "input_layernorm.weight"],
            here + "qkv.weight": torch.cat((queries, keys, tensors[there + "self_attn.v_proj.weight"])),
            here + "out.weight": tensors[there + "self_attn.o_proj.weight"],
            here + "norm_feed_forward.weight": tensors[there + "post_attention_layernorm.weight"],
            here + "up.weight": torch.cat((gate, up)),
            here + "down.weight": tensors[there + "mlp.down_proj.weight"],
        }
    return out


def halves(weight: Tensor, heads: int) -> Tensor:
    """Rows of each head from pairs of neighbours to pairs half a head apart."""
    return weight.view(heads, -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def neighbours(weight: Tensor, heads: int) -> Tensor:
    """Rows of each head from pairs half a head apart to pairs of neighbours."""
    return weight.view(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
