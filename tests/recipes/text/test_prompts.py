"""Beginnings about nouns that are learnt about or held out, never both."""

from killick.recipes.text.prompts import BEGINNINGS, HELD_OUT, LEARNT, drawn


def test_thirty_eight_nouns_are_on_one_side_or_the_other() -> None:
    assert (len(LEARNT), len(HELD_OUT), len(BEGINNINGS)) == (24, 14, 8)
    assert len({*LEARNT, *HELD_OUT}) == 38


def test_prompts_are_drawn_once_and_fewer_are_a_part_of_more() -> None:
    """Of 192, each once; the same at every call."""
    every = drawn(LEARNT, 192)
    assert len(set(every)) == 192
    assert drawn(LEARNT, 96) == every[:96]
    assert len(drawn(LEARNT, 500)) == 192
    assert all(any(f" {noun}" in prompt for noun in LEARNT) for prompt in every)
