"""What `killick best-of` tells, in words; its tables are tested through the command."""

import pytest
import torch

from killick.algorithms.best_of_n import Curve, CurvePoint
from killick.cli.best_of_words import printable, prompt_line, shortened, tell_winners, turn_words
from killick.recipes.best_of.candidates import Pool
from killick.recipes.best_of.recipe import Choice


def test_texts_cannot_steer_a_terminal_and_prompts_fit_a_line() -> None:
    assert printable("a\x1b[2J\nb") == "a [2J\nb"
    assert shortened("one two " * 20).endswith(" …")
    assert shortened("x" * 50) == "x" * 34
    assert prompt_line([{"role": "user", "content": "Why?"}]) == prompt_line("Why?") == "Why?"
    assert prompt_line([{"role": "system", "content": "Be."}, {"role": "user", "content": "Why?"}]).startswith("system")


def test_gold_turns_only_where_the_interval_ends_before_the_last_n() -> None:
    points = [CurvePoint(n, 0.0, 0.0, (0.0, 0.0)) for n in (1, 2, 4)]
    assert turn_words(Curve(points, 9, 2, (1, 2))).startswith("Gold turns: it is highest at n = 2")
    assert "not sure: the interval reaches n = 4" in turn_words(Curve(points, 9, 2, (1, 4)))
    assert "does not turn up to n = 4" in turn_words(Curve(points, 9, 4, (2, 4)))
    assert "only --gold or your own eyes" in turn_words(Curve(points, 9))
    level = [CurvePoint(n, 0.0, 0.0, (0.0, 0.0), 0.5, (0.5, 0.5)) for n in (1, 2, 4)]
    told = turn_words(Curve(level, 9, 1, (1, 1)))  # the first of equals is on top in every resample
    assert told.startswith("Gold is the same at every n")


def test_winners_are_told_highest_first(capsys: pytest.CaptureFixture[str]) -> None:
    low = Choice(Pool("p", ("a", "b"), (1, 1)), torch.tensor([0.0, 1.0]), None)
    high = Choice(Pool((("user", "q"),), ("c", "d"), (2, 2)), torch.tensor([2.0, 2.0]), torch.tensor([5.0, 6.0]))
    tell_winners([low, high], 2)
    told = capsys.readouterr().out
    assert told.index("2.000, gold 5.000, tied with 1 more, line 2  q\n    c\n") < told.index("1.000, line 1  p\n    b")
