"""Preference rows of every form, drawn by hypothesis."""

from typing import Any

from hypothesis import strategies as st

from killick.preferences.rows import PreferenceRow, Turn, places

LETTERS = st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from('\u2028\u2029\u0085\r\n",[{')
SAID = st.text(LETTERS, min_size=1, max_size=12).filter(str.strip)
NAMES = st.none() | st.sampled_from(["ann", "bob", "日本", "7"])


@st.composite
def fields(draw: Any, form: str, long: bool = False) -> dict[str, Any]:
    """What `judged` makes a row of, which the form can hold without loss; `long` gives dialogues of several turns."""
    said = st.lists(SAID, min_size=3 if long else 1, max_size=3 if long else 1)
    count = draw(st.integers(1, 4)) if form in ("choice", "ranking", "scores") else 2
    found: dict[str, Any] = {name: draw(NAMES) for name in ("annotator", "group")}
    found |= {
        "prompt": draw(said),
        "responses": draw(st.lists(said, min_size=count, max_size=count, unique_by=tuple)),
        "margin": draw(st.none() | st.floats(-9, 9)),
        "shown": draw(st.booleans()) if form not in ("pairs", "implicit", "hh") else False,
    }
    worth: list[Any] = [1, 0]
    if form == "scores":
        worth = draw(st.lists(st.floats(-9, 9), min_size=count, max_size=count))
        found["scores"] = tuple(worth)
    elif form == "choice":
        best = draw(st.integers(0, count - 1))
        worth = [int(index == best) for index in range(count)]
        found["best_only"] = count > 2
    elif form == "ranking":
        worth = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    elif form == "soft":
        found["probability"] = draw(st.floats(0, 1))
        worth = [found["probability"], 0.5]
    elif form in ("strength", "comparison"):
        strength = draw(st.integers(-3, 3))
        found["strength"] = strength if form == "strength" else draw(st.sampled_from([None, strength]))
        worth = [-strength, 0]
    return found | {"worth": worth}


def judged(drawn: dict[str, Any]) -> PreferenceRow:
    """The row (made outside of the strategy: checked signatures draw random numbers of their own)."""
    rest = dict(drawn)
    prompt, responses, worth = (rest.pop(name) for name in ("prompt", "responses", "worth"))

    def turns(said: list[str], first: str) -> tuple[Turn, ...]:
        other = {"user": "assistant", "assistant": "user"}[first]
        return tuple(Turn((first, other)[index % 2], content) for index, content in enumerate(said))

    answers = tuple(turns(said, "assistant") for said in responses)
    return PreferenceRow(turns(prompt, "user"), answers, places(worth), **rest)
