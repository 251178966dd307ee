import pytest
import torch

from killick.models.encoding import encode_answers, encode_prompts
from killick.types import Refusal, Vocabulary

WORDS = Vocabulary(size=100, time=4, eos=9, pad=7)


def encode(text: str) -> list[int]:
    """Each letter's place in the alphabet, from 11."""
    return [ord(letter) - 86 for letter in text]


def test_prompts_are_padded_on_the_left() -> None:
    ids, mask = encode_prompts(["ab", "cdef", "g"], encode, pad=7)
    assert ids.tolist() == [[7, 7, 11, 12], [13, 14, 15, 16], [7, 7, 7, 17]]
    assert mask.tolist() == [[False, False, True, True], [True] * 4, [False, False, False, True]]


def test_answers_end_and_are_padded_on_the_right() -> None:
    """Budget 4: three letters and the end just fit; of four the end is lost, and the answer is not finished."""
    rollout = encode_answers(["a", "ab", "a"], ["d", "efg", "ghij"], encode=encode, vocabulary=WORDS)
    assert rollout.responses.tolist() == [[14, 9, 7, 7], [15, 16, 17, 9], [17, 18, 19, 20]]
    assert rollout.lengths.tolist() == [2, 4, 4]
    assert rollout.finished.tolist() == [True, True, False]
    assert rollout.prompts.tolist() == [[7, 11], [11, 12], [7, 11]]
    assert rollout.prompt_mask.sum(1).tolist() == [1, 2, 1]
    assert not rollout.logprobs.any()


def test_without_an_end_token_nothing_is_finished() -> None:
    rollout = encode_answers(["a"], ["bc"], encode=encode, vocabulary=Vocabulary(100, 4))
    assert (rollout.responses.tolist(), rollout.finished.tolist()) == ([[12, 13]], [False])


def test_padding_that_equals_a_real_token_hides_nothing() -> None:
    """O-20: the mask decides."""
    ids, mask = encode_prompts(["ab", "b"], encode, pad=12)
    assert ids.tolist() == [[11, 12], [12, 12]]
    assert mask.tolist() == [[True, True], [False, True]]


def test_an_empty_answer_is_its_end() -> None:
    rollout = encode_answers(["a", "a"], ["", "bc"], encode=encode, vocabulary=WORDS)
    assert rollout.responses.tolist() == [[9, 7, 7], [12, 13, 9]]
    assert torch.equal(rollout.lengths, torch.tensor([1, 3]))


def test_what_holds_no_token_is_refused() -> None:
    with pytest.raises(Refusal, match="at least one prompt"):
        encode_prompts([], encode)
    with pytest.raises(Refusal, match="at least one token"):
        encode_prompts(["a", ""], encode)
    with pytest.raises(Refusal, match="2 prompts and 1 answers"):
        encode_answers(["a", "b"], ["c"], encode=encode, vocabulary=WORDS)
    with pytest.raises(Refusal, match="An answer must hold"):
        encode_answers(["a"], [""], encode=encode, vocabulary=Vocabulary(100, 4))
