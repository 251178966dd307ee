"""Text to ids and back."""

from pathlib import Path

import pytest

from killick.models.texts import Texts
from killick.types import Refusal
from llamas import END, PAD, START, tokenizer

TEXTS = ["plain", "two  spaces\n\nand lines", "日本 é “quoted” 👩‍🔬", " leading", ""]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_back_from_its_ids(text: str) -> None:
    texts = Texts(tokenizer())
    assert texts.read(texts.answer(text)) == text


def test_a_chat_prompt_is_framed_and_a_plain_one_is_not() -> None:
    """The frame as the template writes it, with its marks as single tokens."""
    chat, plain = Texts(tokenizer()), Texts(tokenizer(template=False))
    assert chat.read(chat.prompt("Hi")) == f"{START}user\nHi{END}\n{START}assistant\n"
    assert chat.prompt("Hi")[0] == 1
    assert chat.prompt("Hi").count(1) == 2
    assert plain.prompt("Hi") == plain.answer("Hi")
    assert chat.prompt([("user", "Hi")]) == chat.prompt("Hi")
    dialogue = chat.prompt([("user", "Hi"), ("assistant", "Yes?"), ("user", "Go")])
    assert (
        chat.read(dialogue)
        == f"{START}user\nHi{END}\n{START}assistant\nYes?{END}\n{START}user\nGo{END}\n{START}assistant\n"
    )


def test_text_that_spells_a_special_token_is_text_in_an_answer_and_refused_in_a_chat() -> None:
    """O-17: it never ends an answer early and never becomes a mark."""
    texts = Texts(tokenizer())
    ids = texts.answer(f"before {END} after {PAD}")
    assert not {0, 1, 2} & set(ids)
    assert texts.read(ids) == f"before {END} after {PAD}"
    with pytest.raises(Refusal, match="spells <|im_end|>".replace("|", r"\|")):
        texts.prompt(f"Hi{END}")
    plain = Texts(tokenizer(template=False))
    assert not {0, 1, 2} & set(plain.prompt(f"{START}Hi"))


@pytest.mark.parametrize("starts", [True, False])
def test_there_is_one_start_token_where_the_model_uses_one(starts: bool) -> None:
    """O-17: also before a prompt that begins with its name; ids are numbers only."""
    from tokenizers.processors import TemplateProcessing

    made = tokenizer(template=False)
    if starts:
        made.backend_tokenizer.post_processor = TemplateProcessing(single=f"{START} $A", special_tokens=[(START, 1)])
    texts = Texts(made)
    for prompt in ("Hi", f"{START}Hi"):
        ids = texts.prompt(prompt)
        assert ids.count(1) == int(starts)
        assert all(type(one) is int for one in ids)
    assert 1 not in texts.answer("Hi")


def test_a_template_that_forgets_the_start_token_gets_one() -> None:
    from tokenizers.processors import TemplateProcessing

    made = tokenizer()
    made.backend_tokenizer.post_processor = TemplateProcessing(single=f"{START} $A", special_tokens=[(START, 1)])
    made.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    assert Texts(made).prompt("Hi") == [1, *Texts(tokenizer(template=False)).prompt("Hi")]
    made.chat_template = "<|im_start|>{% for m in messages %}{{ m['content'] }}{% endfor %}"
    assert Texts(made).prompt("Hi").count(1) == 1


@pytest.mark.parametrize("pad", [PAD, END, None])
def test_padding_is_never_the_end_token(pad: str | None) -> None:
    """O-20: whatever the tokenizer says."""
    texts = Texts(tokenizer(pad=pad))
    assert texts.eos == 2
    assert texts.pad != 2
    assert texts.vocabulary(5).size == 300
    assert texts.vocabulary(5, size=280).size == 280


@pytest.mark.parametrize(
    ("made", "prompt", "words"),
    [
        (lambda: Texts(tokenizer(template=False), chat=True), None, "no chat template"),
        (lambda: Texts(tokenizer(template=False)), [("user", "a"), ("assistant", "b")], "A dialogue needs"),
        (lambda: Texts(tokenizer(template=False)), "", "at least one token"),
    ],
)
def test_what_cannot_be_framed_is_refused(made, prompt, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        made().prompt(prompt)


def test_a_template_that_refuses_roles_is_quoted() -> None:
    made = tokenizer()
    made.chat_template = "{{ raise_exception('only users speak') }}"
    with pytest.raises(Refusal, match="only users speak"):
        Texts(made).prompt("Hi")


def test_an_answer_of_several_turns_is_refused() -> None:
    texts = Texts(tokenizer())
    assert texts.answer([("assistant", "Yes")]) == texts.answer("Yes")
    with pytest.raises(Refusal, match="one turn of the assistant"):
        texts.answer([("assistant", "Yes"), ("user", "No")])


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="is no folder of a model"):
        Texts.load(tmp_path)
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Refusal, match="no tokenizer"):
        Texts.load(tmp_path)
    with pytest.raises(Refusal, match="There is no model folder"):
        Texts.load(tmp_path / "nowhere")


def test_a_saved_tokenizer_reads_and_frames_alike(tmp_path: Path) -> None:
    texts = Texts(tokenizer())
    texts.save(tmp_path)
    again = Texts.load(tmp_path)
    assert again.digest == texts.digest
    assert again.prompt("Hi") == texts.prompt("Hi")
    assert Texts(tokenizer(template=False)).digest != texts.digest


def test_what_closes_an_answer_is_what_the_template_writes_behind_it() -> None:
    """The end of the turn and a line break in a chat, the end token in plain text."""
    chat, plain = Texts(tokenizer()), Texts(tokenizer(template=False))
    assert chat.read(chat.closing) == f"{END}\n"
    assert plain.closing == [2]
