"""What scores text, in words."""

from killick.recipes.scores.text_score import Unscored, as_text, one_line


def test_a_prompt_is_read_as_one_text() -> None:
    assert as_text("Say it.") == "Say it."
    assert as_text([("user", "Say it.")]) == "Say it."
    assert as_text([("system", "Be kind."), ("user", "Say it.")]) == "system: Be kind.\n\nuser: Say it."


def test_an_answer_without_a_score_is_named_with_the_score() -> None:
    error = Unscored(2, "the judge is away", name="--gold m:f")
    assert str(error) == "--gold m:f, answer 3: the judge is away."
    assert (error.row, error.reason, error.name) == (2, "the judge is away", "--gold m:f")


def test_an_error_is_told_on_one_line() -> None:
    assert one_line(KeyError("no such\n  word.")) == r"KeyError: 'no such\n word.'"
    assert one_line(ValueError("a\n b.")) == "ValueError: a b"
    assert one_line(MemoryError()) == "MemoryError"
