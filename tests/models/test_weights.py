"""Weights: what is written comes back bit for bit, and a failed write costs nothing."""

import json
import os
import struct

import pytest
import torch
from torch import nn

from killick.models import weights
from killick.models.weights import read, write
from killick.types import Refusal


def layer(seed: int = 0) -> nn.Module:
    module = nn.Linear(3, 2)
    nn.init.normal_(module.weight, generator=torch.Generator().manual_seed(seed))
    return module


def test_tensors_and_settings_come_back_bit_equal(tmp_path) -> None:
    """Plain settings, nested, with text beyond ASCII."""
    module, settings = layer(), {"a": 1, "b": {"c": [1, 2.5, None, True]}, "name": "é"}
    write(module, tmp_path / "w", settings=settings)
    found, tensors = read(tmp_path / "w")
    assert found == settings
    assert tensors.keys() == module.state_dict().keys()
    assert all(torch.equal(tensors[name], tensor) for name, tensor in module.state_dict().items())


def test_the_file_is_safetensors_and_no_pickle(tmp_path) -> None:
    """Eight bytes of length, then a JSON header that names the tensors."""
    write(layer(), tmp_path / "w", settings={})
    raw = (tmp_path / "w").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert set(json.loads(raw[8 : 8 + length])) == {"__metadata__", "weight", "bias"}


def test_writing_again_replaces_the_file_and_leaves_nothing_beside_it(tmp_path) -> None:
    """One file, with the newer weights."""
    write(layer(0), tmp_path / "w", settings={"step": 1})
    write(layer(1), tmp_path / "w", settings={"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    settings, tensors = read(tmp_path / "w")
    assert settings == {"step": 2}
    assert torch.equal(tensors["weight"], layer(1).state_dict()["weight"])


@pytest.mark.parametrize("broken", ["save_file", "replace"])
def test_a_failed_write_leaves_the_old_file_and_no_leftover(tmp_path, monkeypatch, broken: str) -> None:
    """The disk is full half way, or the new file cannot take its place."""
    write(layer(0), tmp_path / "w", settings={"step": 1})
    before = (tmp_path / "w").read_bytes()

    def fail(_, path, *__):
        if broken == "save_file":
            path.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(*((weights, "save_file") if broken == "save_file" else (os, "replace")), fail)
    with pytest.raises(OSError, match="no space left"):
        write(layer(1), tmp_path / "w", settings={"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["w"]
    assert (tmp_path / "w").read_bytes() == before


def test_an_absent_file_is_refused_in_one_sentence(tmp_path) -> None:
    """It says which."""
    with pytest.raises(Refusal, match=r"nothing cannot be read as a weights file") as refusal:
        read(tmp_path / "nothing")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"no tensors here", b"\x80\x04K\x01.", b"\xff" * 64, b"{}"])
def test_what_is_no_safetensors_file_is_refused_in_one_sentence(tmp_path, content: bytes) -> None:
    """Empty, text, a pickle, a header longer than the file, JSON."""
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(Refusal, match="not a weights file") as refusal:
        read(tmp_path / "w")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, share: float) -> None:
    """Cut in the header or in the numbers."""
    write(layer(), tmp_path / "w", settings={"step": 1})
    raw = (tmp_path / "w").read_bytes()
    (tmp_path / "w").write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(Refusal, match="damaged"):
        read(tmp_path / "w")


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path) -> None:
    """Without our settings nobody knows its shape."""
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(2)}, tmp_path / "w")
    with pytest.raises(Refusal, match="killick wrote"):
        read(tmp_path / "w")


def test_a_folder_is_refused(tmp_path) -> None:
    """One sentence, as for any other file that is none."""
    with pytest.raises(Refusal, match=tmp_path.name):
        read(tmp_path)
