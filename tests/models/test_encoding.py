import pytest
import torch

from killick.models.encoding import encode_answers, encode_prompts, encode_texts, shortened
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


# Texts of a language model


def plain_texts(**settings):
    from killick.models.texts import Texts
    from llamas import tokenizer

    return Texts(tokenizer(template=False, **settings))


def encoded(prompts, answers, *, limit=16, time=8):
    return encode_texts(prompts, answers, texts=plain_texts(), limit=limit, time=time)


def test_prompt_and_answer_are_joined_as_ids() -> None:
    """O-18: "the" is one token, yet a prompt that ends in "t" and an answer "he" stay two texts; the mask covers the
    answer's tokens and its end."""
    texts = plain_texts()
    found = encoded(["a t"], ["he"])
    assert found.rollout.prompts[0].tolist() == texts.answer("a t")
    assert found.rollout.responses[0].tolist() == [*texts.answer("he"), 2]
    assert bool(found.rollout.mask.all())
    assert texts.read(found.rollout.prompts[0].tolist()) == "a t"


def test_a_long_prompt_is_cut_on_its_left_and_leaves_each_answer_its_room() -> None:
    """O-19, limit 16 and 8 kept free: 14 tokens of prompt keep their last 8, on both sides of a pair; answers of 9 and
    3 keep 8 and 3 + end."""
    found = encoded(["q" * 14, "q" * 14], ["z" * 9, "z" * 3])
    assert found.rollout.prompts.shape == (2, 8)
    assert torch.equal(found.rollout.prompts[0], found.rollout.prompts[1])
    assert found.rollout.lengths.tolist() == [8, 4]
    assert found.rollout.finished.tolist() == [False, True]
    assert found.cut_prompts.tolist() == [True, True]
    assert found.cut_answers.tolist() == [True, False]


def test_a_short_prompt_leaves_its_room_to_the_answer() -> None:
    """3 tokens of prompt leave 13 of 16."""
    found = encoded(["qqq", "qqq"], ["z" * 12, "z" * 13])
    assert found.rollout.lengths.tolist() == [13, 13]
    assert found.cut_answers.tolist() == [False, True]


def test_what_is_read_of_a_text_does_not_depend_on_its_neighbours() -> None:
    together = encoded(["q" * 20, "a"], ["z" * 30, ""])
    for row, (prompt, answer) in enumerate([("q" * 20, "z" * 30), ("a", "")]):
        alone = encoded([prompt], [answer]).rollout
        kept = together.rollout
        assert kept.prompts[row][kept.prompt_mask[row]].tolist() == alone.prompts[0].tolist()
        assert kept.responses[row][kept.mask[row]].tolist() == alone.responses[0].tolist()


def test_a_cut_prompt_keeps_its_start_token() -> None:
    assert shortened([1, 5, 6, 7, 8], 3, start=[1]) == [1, 7, 8]
    assert shortened([4, 5, 6, 7, 8], 3, start=[1]) == [6, 7, 8]
    assert shortened([1, 5, 6], 3, start=[1]) == [1, 5, 6]


@pytest.mark.parametrize(
    ("prompts", "answers", "sizes", "words"),
    [
        (["a"], ["b", "c"], {}, "1 prompts and 2 answers"),
        ([], [], {}, "0 prompts"),
        (["a"], ["b"], {"limit": 8, "time": 8}, "needs room"),
    ],
)
def test_texts_that_do_not_go_together_are_refused(prompts, answers, sizes, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        encoded(prompts, answers, **sizes)


def test_what_closes_an_answer_may_be_more_than_its_end_or_nothing() -> None:
    """Two tokens, none, and none behind an answer of no token, which keeps its end."""
    texts = plain_texts()
    for closing, last in (([2, 201], [[2, 201], [2, 201]]), ([], [texts.answer("he"), [2]])):
        found = encode_texts(["a", "a"], ["he", ""], texts=texts, limit=16, time=8, closing=closing)
        rows = [row[:stop] for row, stop in zip(found.rollout.responses, found.rollout.lengths, strict=True)]
        assert [row.tolist()[-len(end) :] for row, end in zip(rows, last, strict=True)] == last
        assert found.rollout.finished.all()
