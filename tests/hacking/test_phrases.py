"""Phrases counted by hand, and what holds for any texts."""

from hypothesis import given
from hypothesis import strategies as st

from killick.hacking.phrases import Phrase, commonest, distinct, longest_shared, runs, share_with, words

TEXTS = [
    "He smiled, his eyes shining with pride.",
    "and then he smiled; his eyes shining, so proud",
    "He smiled. His eyes shining with joy",
    "We don't talk about it.",
]
MANY = st.lists(st.text(alphabet="ab .,'", max_size=12), min_size=1, max_size=5)


def test_words_are_small_and_keep_their_apostrophes() -> None:
    assert words("He DON\u2019T -- say_it, 'twice'!") == ["he", "don\u2019t", "say", "it", "twice"]
    assert runs("a, b c", 2) == [("a", "b"), ("b", "c")]
    assert runs("a b", 3) == []


def test_distinct_is_the_share_of_different_runs() -> None:
    """a b c | b c d and a b c: three runs, two different ones."""
    assert distinct(["a b c d", "A b, c"]) == 2 / 3
    assert distinct(["a b", ""]) == 1.0


def test_the_commonest_run_is_the_longest_among_those_in_most_texts() -> None:
    """`he smiled his eyes shining` stands in three of four; no run of six stands in more than one."""
    assert commonest(TEXTS) == Phrase("he smiled his eyes shining", 0.75)
    assert commonest(["a b a b a b", "b a b x"], sizes=[3]) == Phrase("b a b", 1.0)
    assert commonest(["one two"]) is None


def test_of_equals_the_first_by_letter_is_told() -> None:
    assert commonest(["c d e f", "b c d e"], sizes=[3]) == Phrase("c d e", 1.0)
    assert commonest(["x y z", "a b c"]) == Phrase("a b c", 0.5)


def test_the_longest_shared_run_grows_until_too_few_texts_hold_it() -> None:
    """Two of four say `with` after it; at three of four it ends before."""
    assert longest_shared(TEXTS) == Phrase("he smiled his eyes shining with", 0.5)
    assert longest_shared(TEXTS, least=0.75) == Phrase("he smiled his eyes shining", 0.75)
    assert longest_shared(TEXTS, least=0.9) is None


def test_share_with_looks_for_whole_words_across_punctuation() -> None:
    assert share_with(TEXTS, "He smiled, his") == 0.75
    assert share_with(TEXTS, "he smile") == 0.0
    assert share_with([], "any") == 0.0


@given(MANY)
def test_whatever_the_texts(texts: list[str]) -> None:
    """Shares lie in (0, 1], and what is told to be shared is found again."""
    assert 0 < distinct(texts) <= 1
    for found in (commonest(texts), longest_shared(texts)):
        if found is not None:
            assert 0 < found.share <= 1
            assert share_with(texts, found.words) == found.share
