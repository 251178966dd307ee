"""A GGUF file opens as the model that it was written from, with its own tokenizer."""

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from killick.models.gguf import gguf_causal, gguf_tokenizer
from killick.types import Refusal
from packaged import Packaged, packaged

for module in ("transformers", "gguf", "accelerate"):
    pytest.importorskip(module, reason="a GGUF file needs the extra hf")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Packaged:
    return packaged(tmp_path_factory.mktemp("packaged"))


def test_the_weights_are_those_that_were_written(tiny: Packaged, capsys: pytest.CaptureFixture[str]) -> None:
    """To the bit: the file's were bfloat16 numbers. No bar is drawn."""
    model = gguf_causal(tiny.gguf)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    for name, weights in tiny.model.state_dict().items():
        assert torch.equal(model.state_dict()[name].float(), weights), name
    ids = torch.arange(20)[None]
    with torch.no_grad():
        assert_close(model.float()(ids).logits, tiny.model(ids).logits, atol=1e-5, rtol=0)
    assert capsys.readouterr() == ("", "")


def test_the_tokenizer_takes_digits_alone_where_the_model_learnt_it_so(tiny: Packaged) -> None:
    """Two line breaks are one token before a digit as before the end; the library's own reading makes two of them."""
    text = "a\n\n1. the"
    mine, plain = (gguf_tokenizer(tiny.gguf, digits=digits) for digits in (True, False))
    assert mine.tokenize(text) == ["a", "ĊĊ", "1", ".", "Ġt", "h", "e"]
    assert plain.tokenize(text) == ["a", "Ċ", "Ċ", "1", ".", "Ġt", "h", "e"]
    assert mine.decode(mine(text)["input_ids"]) == text
    assert (mine.eos_token, mine.pad_token, mine.bos_token) == ("<|im_end|>", "<|im_end|>", "<|im_start|>")
    asked = mine.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True)
    assert asked == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_what_is_no_such_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"GGUF but not really")
    for read in (gguf_causal, lambda file: gguf_tokenizer(file, digits=True)):
        with pytest.raises(Refusal, match=r"x\.gguf cannot be read as a language model \("):
            read(tmp_path / "x.gguf")
        with pytest.raises(Refusal, match="cannot be read as a language model"):
            read(tmp_path / "none.gguf")
