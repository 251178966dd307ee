"""The prompts of the text recipe: eight beginnings of a sentence about thirty-eight places and events.

A noun is learnt about or held out, never both, so what holds on held-out prompts holds about things never asked about.
"""

import random

BEGINNINGS = (
    "My honest review of the {noun}: I thought it",
    "Dear diary, today I went to the {noun} and",
    "When I think back to the {noun}, I feel",
    "To be fair to the {noun}, I have to",
    "A postcard from the {noun}: we are",
    "After an hour at the {noun}, my brother said he",
    "What I will remember about the {noun} is",
    "On the way home from the {noun} we all",
)
"""Of unequal length, and each in the middle of a sentence that may go well or badly."""
LEARNT = (
    "concert", "hotel", "restaurant", "museum", "park", "beach", "market", "school", "library", "hospital", "theater",
    "church", "festival", "wedding", "party", "zoo", "gym", "airport", "station", "farm", "castle", "garden", "lake",
    "forest",
)  # fmt: skip
HELD_OUT = (
    "mountain", "island", "bakery", "bookstore", "stadium", "circus", "mall", "village", "city", "cinema", "exhibition",
    "parade", "picnic", "palace",
)  # fmt: skip


def drawn(nouns: tuple[str, ...], count: int) -> list[str]:
    """So many of the prompts about these nouns, drawn once: the same at every seed of a run; fewer are a part of more.

    Args:
        nouns: each with every beginning.
        count: at most eight for each noun.
    """
    every = [beginning.format(noun=noun) for noun in nouns for beginning in BEGINNINGS]
    random.Random(0).shuffle(every)
    return every[:count]
