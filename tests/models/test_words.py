import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.models.words import SPECIAL, Words
from killick.types import Refusal

WORDS = Words.of(["Describe the Kestrel rain jacket .", "It costs 129 euros , always ."])


def test_special_tokens_come_first_and_words_in_order() -> None:
    assert WORDS.words == (
        *SPECIAL, ",", ".", "129", "Describe", "It", "Kestrel", "always", "costs", "euros", "jacket", "rain", "the",
    )  # fmt: skip
    assert [WORDS.token_id(word) for word in (*SPECIAL, "the")] == [0, 1, 2, 3, 4, 16]
    assert len(WORDS) == 17


def test_a_chat_is_one_id_for_each_word_mark_and_special_token() -> None:
    ids = WORDS.encode("<user> Describe the Kestrel rain jacket. <assistant> It costs 129 euros,always.<end>")
    assert ids == [2, 8, 16, 10, 15, 14, 6, 3, 9, 12, 7, 13, 5, 11, 6, 4]
    assert WORDS.decode(ids) == ("<user> Describe the Kestrel rain jacket . <assistant> It costs 129 euros , always .")


def test_what_is_unknown_is_one_token_a_word() -> None:
    assert WORDS.encode("the kestrel <b> éclair 雨") == [16, 1, 1, 1, 1, 1, 1]
    assert WORDS.decode([16, 1]) == "the <unk>"
    assert WORDS.encode("") == []


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30))
def test_any_text_has_ids_and_known_text_comes_back(text: str) -> None:
    ids = WORDS.encode(text)
    assert all(0 <= token < len(WORDS) for token in ids)
    again = WORDS.decode(ids)
    assert WORDS.decode(WORDS.encode(again)) == again


def test_decode_takes_tensors_of_one_sequence_and_leaves_out_its_end() -> None:
    row = torch.tensor([16, 15, 4, 0, 0])
    assert WORDS.decode(row) == WORDS.decode(row[None]) == WORDS.decode(row.tolist()) == "the rain"
    with pytest.raises(Refusal, match="one sequence of ids, not 2"):
        WORDS.decode(row.repeat(2, 1))


@pytest.mark.parametrize("ids", [[17], [-1], [3, 170]])
def test_ids_that_are_none_are_refused(ids: list[int]) -> None:
    with pytest.raises(Refusal, match=f"no token {ids[-1]}; ids lie in 0..16"):
        WORDS.decode(ids)


def test_an_unknown_token_is_refused_by_its_name() -> None:
    with pytest.raises(Refusal, match=r"no '<eos>'.*<end>"):
        WORDS.token_id("<eos>")


def test_its_file_is_what_the_tokenizers_library_reads(tmp_path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    WORDS.save(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in (
        "<user> Describe the Kestrel rain jacket . <assistant>",
        "the,rain. <end><pad>",
        "It's 129€ a_b  éclair!? <b>\n雨",
    ):
        assert theirs.encode(text).ids == WORDS.encode(text)
    assert theirs.decode([16, 15, 4, 0]) == WORDS.decode([16, 15, 4, 0]) == "the rain"


def test_it_comes_back_from_its_file(tmp_path) -> None:
    WORDS.save(tmp_path)
    assert Words.load(tmp_path).words == WORDS.words


def test_files_that_are_none_are_refused(tmp_path) -> None:
    with pytest.raises(Refusal, match=r"tokenizer\.json cannot be read"):
        Words.load(tmp_path)
    WORDS.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    whole = json.loads(path.read_text())
    for change in ({"type": "BPE"}, {"vocab": {"a": 0, "b": 2}}, {"vocab": {"a": 0, "b": 1}}, {"vocab": None}):
        path.write_text(json.dumps(whole | {"model": whole["model"] | change}))
        with pytest.raises(Refusal, match="tokenizer"):
            Words.load(tmp_path)
    path.write_text("{")
    with pytest.raises(Refusal, match="cannot be read"):
        Words.load(tmp_path)
