import re
from itertools import combinations

import pytest

from killick.worlds.catalogue import HELD_OUT, KINDS, MATERIALS, NAMES, PRODUCTS, PROMISES

LISTS = ("features", "uses", "care")
PHRASES = [phrase for kind in KINDS.values() for name in LISTS for phrase in getattr(kind, name)] + list(PROMISES)


def words(text: str) -> set[str]:
    """Words of a text, without case and plural s."""
    return {word.rstrip("s") for word in re.findall(r"\w+", text.lower())}


def test_there_are_thirty_names_of_twelve_kinds() -> None:
    assert len(set(NAMES)) == 30
    assert len(KINDS) == 12
    assert len(set(PRODUCTS)) == 360
    assert (PRODUCTS[0], PRODUCTS[-1]) == ("Alder rain jacket", "Yarrow picnic blanket")
    assert "Kestrel rain jacket" in PRODUCTS


def test_names_are_single_words_in_order_and_six_are_held_out() -> None:
    assert list(NAMES) == sorted(NAMES)
    assert all(re.fullmatch("[A-Z][a-z]+", name) for name in NAMES)
    assert len(HELD_OUT) == 6
    assert set(HELD_OUT) < set(NAMES)


def test_every_kind_has_right_materials_and_wrong_ones() -> None:
    assert all(re.fullmatch("[a-z]+", material) for material in MATERIALS)
    for name, kind in KINDS.items():
        assert 2 <= len(kind.materials) < len(MATERIALS), name


def test_names_and_materials_stand_nowhere_else() -> None:
    """A reader who looks for them in copy finds nothing by chance."""
    taken = words(" ".join((*NAMES, *MATERIALS)))
    for phrase in (*PHRASES, *KINDS):
        assert not words(phrase) & taken, phrase


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_may_hold_the_kind_and_any_two_features_or_uses(kind: str) -> None:
    for name in ("features", "uses"):
        for one, other in combinations((kind, *getattr(KINDS[kind], name)), 2):
            assert not words(one) & words(other), (one, other)


def test_every_promise_has_its_word_and_no_phrase_has_it_by_chance() -> None:
    assert all("repair" in words(promise) for promise in PROMISES)
    assert not any("repair" in words(phrase) for phrase in PHRASES if phrase not in PROMISES)
