"""Text as sentences of words, by examples and by what must not matter."""

import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.worlds.copywriting import texts
from killick.worlds.wording import Phrases, content, sentences, singular, stem

modest = settings(max_examples=50, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", []),
        (" . !? \n", []),
        ("Warm, dry. Light!", [("warm", "dry"), ("light",)]),
        ("one line\nanother", [("one", "line", "another")]),
        ("a\r\nb\rc\vd\u2028e\x85f", [("a", "b", "c", "d", "e", "f")]),
        ("one\n\nand\r\n \t\r\nthen\u2029more", [("one",), ("and",), ("then",), ("more",)]),
        ("One.\nTwo\n\n", [("one",), ("two",)]),
        ("Weighs 1.5 kg. Yes", [("weigh", "1", "5", "kg"), ("yes",)]),
        ("rain-jacket", [("rain", "jacket")]),
        ("Kestrel's, Kestrel\u2019s and KESTRELS'", [("kestrel", "kestrel", "and", "kestrel")]),
        ("don't 'quote' l'eau", [("don", "quote", "leau")]),
        ("\uff26ull\u3000\uff57idth\u3002暖かい", [("full", "width"), ("暖かい",)]),
        ("Cafe\u0301 café CAFÉ", [("cafe", "cafe", "cafe")]),
        ("soft\u00adly zero\u200bwidth", [("softly", "zerowidth")]),
        ("Straße STRASSE", [("strasse", "strasse")]),
        ("गर्म कपड़े।", [("गरम", "कपड़े".replace("\u093c", ""))]),
        ("smile 😀 please", [("smile", "please")]),
        ("broken \ud800 half", [("broken", "half")]),
    ],
)
def test_what_is_read(text: str, read: list[tuple[str, ...]]) -> None:
    assert sentences(text) == read


@pytest.mark.parametrize(
    ("several", "one"),
    [
        ("jackets", "jacket"), ("batteries", "battery"), ("boxes", "box"), ("brushes", "brush"), ("glasses", "glass"),
        ("shoes", "shoe"), ("ties", "tie"), ("seams", "seam"), ("sizes", "size"), ("prizes", "prize"),
        ("caches", "cache"), ("axes", "axe"), ("lenses", "lens"), ("canvases", "canvas"), ("linens", "linen"),
        ("waltzes", "waltz"), ("matches", "match"), ("cases", "case"), ("quizzes", "quiz"),
    ],
)  # fmt: skip
def test_several_are_one(several: str, one: str) -> None:
    assert singular(several) == singular(one) == one


@pytest.mark.parametrize("word", ["glass", "canvas", "lens", "gas", "bus", "this", "is", "as", "us", "wool"])
def test_a_word_that_only_looks_like_several_stays(word: str) -> None:
    assert singular(word) == word


@pytest.mark.parametrize(
    "pair",
    [
        "sizes size", "caches cache", "headaches headache", "axes axe", "lenses lens", "boxes box", "glasses glass",
        "brushes brush", "matches match", "quizzes quiz", "fizzes fizz", "viruses virus", "atlases atlas",
        "houses house", "promises promise", "cookies cookie", "hoodies hoodie", "batteries battery", "heroes hero",
        "shoes shoe", "breezes breeze", "jackets jacket", "ties tie",
    ],
)  # fmt: skip
def test_one_and_several_have_a_stem_in_common(pair: str) -> None:
    several, one = pair.split()
    assert stem(singular(several)) == stem(singular(one))


def test_no_two_words_of_the_catalogue_are_taken_for_one_unless_they_are_its_number() -> None:
    """All words that copy, questions and shop talk are made of."""
    words = sorted({word for sentence in sentences(" . ".join(texts())) for word in sentence})
    stems = Counter(map(stem, words))
    assert [word for word in words if stems[stem(word)] > 1] == []
    assert len(words) > 250


@modest
@given(st.text(alphabet="abehiosxyz", min_size=1))
def test_a_stem_is_its_own_stem_or_one_letter_more(word: str) -> None:
    """What is cut is at most one letter, or ie becomes y; the beginning stays."""
    found = stem(word)
    assert len(word) - len(found) in (0, 1)
    assert word.startswith(found[:-1])


@modest
@given(st.text())
def test_what_unicode_calls_equal_reads_equal(text: str) -> None:
    """All four normal forms; the width and the order of marks are of no account."""
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    assert all(sentences(form) == sentences(forms[0]) for form in forms)


@modest
@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_case_is_of_no_account(text: str) -> None:
    assert sentences(text.upper()) == sentences(text.lower()) == sentences(text)


@modest
@given(st.lists(st.text()))
def test_words_have_no_space_dot_or_apostrophe_and_no_sentence_is_empty(parts: list[str]) -> None:
    for words in sentences(".".join(parts)):
        assert words
        for word in words:
            assert word
            assert not set(word) & set(" .'\n")


def test_what_says_something() -> None:
    """Function words, numbers and what is shorter than three letters do not."""
    words = ("the", "warm", "wool", "and", "is", "2024", "kg", "without", "wool")
    assert content(words) == ["warm", "wool", "wool"]


def test_the_longest_phrase_is_found_first_and_each_word_once() -> None:
    phrases = Phrases(["Cotton", "Waxed cotton", "rain jacket", "jacket cotton"])
    words = ("waxed", "cotton", "rain", "jacket", "cotton", "waxed")
    assert list(phrases.find(words)) == ["Waxed cotton", "rain jacket", "Cotton"]
    assert list(Phrases([]).find(words)) == list(Phrases(["", "?!"]).find(words)) == []


HOSTILE = {
    "words": "The Kestrel rain jacket is nylon . ",
    "marks of two classes": "\u0301\u0316",
    "letters that unfold": "\ufb03",
    "one word": "a",
    "dots": ".",
    "apostrophes": "'s",
    "digits and dots": "1.1",
    "outside the first plane": "\U00010437",
}


@pytest.mark.parametrize("part", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_megabyte_takes_a_second_at_most(part: str) -> None:
    """CPU seconds, measured .06 to .4; a cost that grows with the square would be minutes."""
    text = part * (1_000_000 // len(part.encode()))
    begun = time.process_time()
    sentences(text)
    assert time.process_time() - begun < 1.5
