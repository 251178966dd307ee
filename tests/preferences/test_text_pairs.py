"""From rows to labels, margins and groups: closed forms of ties and rankings, and what is left out and counted."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from killick.ops.losses import bradley_terry, group_weights
from killick.ops.stats import pair_accuracy
from killick.preferences.formats.reading import read
from killick.preferences.rows import PreferenceRow, Turns
from killick.preferences.text_pairs import TextPairs, text_pairs


def ranking(groups: list[Any], count: int, **more: Any) -> PreferenceRow:
    """A ranking of the responses "0", "1", ..."""
    responses = [str(i) for i in range(count)]
    return read({"prompt": "p", "responses": responses, "ranking": groups, **more}, "ranking")


def comparison(preference: str, first: str = "a", second: str = "b", **more: Any) -> PreferenceRow:
    """Two responses to the prompt p."""
    return read({"prompt": "p", "first": first, "second": second, "preference": preference, **more}, "comparison")


def loss(found: TextPairs, scores: list[float]) -> torch.Tensor:
    """Bradley-Terry of the pairs, each entry with its score, averaged inside each group first."""
    score = torch.tensor(scores, requires_grad=True)
    chosen, rejected = score[torch.tensor(found.chosen)], score[torch.tensor(found.rejected)]
    each = bradley_terry(chosen, rejected, label=torch.tensor(found.label), margin=torch.tensor(found.margin))
    group = torch.tensor(found.group)
    mean = (each * group_weights(group, torch.ones(int(group.max()) + 1, dtype=torch.long))).sum()
    mean.backward()
    assert score.grad is not None
    return torch.stack([mean.detach(), score.grad.abs().max()])


# Ties (O-05)


@pytest.mark.parametrize(("margin", "expected"), [(0, 0.693147), (1, 0.813262), (-1, 0.813262), (2, 1.126928)])
def test_a_tie_costs_the_mean_of_both_directions(margin: float, expected: float) -> None:
    """softplus(-m) + m / 2; at equal scores there is no gradient."""
    value, gradient = loss(text_pairs([comparison("tie")]), [float(margin), 0.0]).tolist()
    assert value == pytest.approx(expected, abs=1e-5)
    assert (gradient == 0) == (margin == 0)


def test_ties_may_be_left_out_and_are_counted() -> None:
    found = text_pairs([comparison("tie"), comparison("first")], ties="out")
    assert (len(found), found.counts) == (1, {"ties": 1})


def test_an_equal_score_earns_half_a_point_and_never_a_whole_one() -> None:
    """Ten pairs: 5 right, 2 wrong, 3 equal: .65, or .50 strictly; never .80 (O-05)."""
    found = text_pairs([comparison("first", f"a{i}", f"b{i}") for i in range(10)])
    scores = torch.zeros(20)
    scores[torch.tensor(found.chosen)[:5]] = 1
    scores[torch.tensor(found.chosen)[5:7]] = -1
    sides = scores[torch.tensor(found.chosen)], scores[torch.tensor(found.rejected)]
    assert pair_accuracy(*sides).item() == pytest.approx(0.65)
    assert pair_accuracy(*sides, tie_credit=0).item() == pytest.approx(0.50)


# Rankings (O-06)


@pytest.mark.parametrize(("k", "count"), [(1, 0), (2, 1), (4, 6), (9, 36)])
def test_k_responses_give_all_pairs_in_one_group(k: int, count: int) -> None:
    """A ranking of one gives none, and is counted."""
    found = text_pairs([ranking(list(range(k)), k)])
    assert (len(found), set(found.group)) == (count, {0} if count else set())
    assert found.counts["rows with one response"] == (k == 1)
    assert len(found.responses) == (k if count else 0)


def test_ties_inside_a_ranking_give_no_strict_pair() -> None:
    """[[a], [b, c], [d]]: five strict pairs."""
    found = text_pairs([ranking([[0], [1, 2], [3]], 4)], ties="out")
    said = [response[0].content for response in found.responses]
    pairs = sorted(said[i] + said[j] for i, j in zip(found.chosen, found.rejected, strict=True))
    assert pairs == ["01", "02", "03", "13", "23"]


def test_a_long_ranking_weighs_no_more_than_a_short_one() -> None:
    """Scores in rank order (0, 1) and (3, 2, 1, 0): .760150 averaged inside each first; pooled it would be .365070."""
    found = text_pairs([ranking([0, 1], 2), ranking([0, 1, 2, 3], 4, prompt="q")])
    assert len(found) == 7
    assert loss(found, [0.0, 1.0, 3.0, 2.0, 1.0, 0.0])[0].item() == pytest.approx(0.760150, abs=1e-5)


def test_scores_in_rank_order_two_one_zero() -> None:
    """Mean of softplus(-1), softplus(-2), softplus(-1): .251150."""
    assert loss(text_pairs([ranking([0, 1, 2], 3)]), [2.0, 1.0, 0.0])[0].item() == pytest.approx(0.251150, abs=1e-5)


def test_the_best_of_k_is_compared_with_each_other_and_they_with_nobody() -> None:
    row = read({"prompt": "p", "responses": list("abcd"), "choice": 2}, "choice")
    found = text_pairs([row])
    assert [found.responses[i][0].content for i in found.chosen] == ["c", "c", "c"]
    assert [found.responses[i][0].content for i in found.rejected] == ["a", "b", "d"]
    assert (found.label, found.group) == ([1.0] * 3, [0] * 3)


def test_pairs_of_one_group_stay_together_and_others_apart() -> None:
    """By prompt and group: two prompts may use one number."""
    rows = [
        read({"prompt": prompt, "chosen": chosen, "rejected": "z", "group": group}, "pairs")
        for prompt, chosen, group in (("p", "a", 1), ("p", "b", 1), ("q", "a", 1), ("p", "c", 2), ("p", "d", None))
    ]
    assert text_pairs(rows).group == [0, 0, 1, 2, 3]


# Labels and margins


def test_a_probability_below_a_half_turns_the_pair() -> None:
    """P(first) = .2: the second is chosen with label .8."""
    row = read({"prompt": "p", "first": "a", "second": "b", "probability": 0.2}, "soft")
    found = text_pairs([row])
    assert found.responses[found.chosen[0]][0].content == "b"
    assert found.label == [pytest.approx(0.8)]


def test_a_margin_goes_along() -> None:
    row = read({"prompt": "p", "chosen": "a", "rejected": "b", "margin": 1.5}, "pairs")
    assert text_pairs([row]).margin == [1.5]
    assert text_pairs([comparison("first")]).margin == [0.0]


# What is left out


def first_words(count: int) -> Any:
    """A reader that sees the first words of prompt and response."""

    def seen(prompt: Turns, response: Turns) -> tuple[str, ...]:
        return tuple(" ".join(turn.content for turn in prompt + response).split()[:count])

    return seen


def test_pairs_that_are_one_after_truncation_are_left_out_and_counted() -> None:
    """Nine words that differ in the last, after a prompt of none of them: eight words tell nothing apart (O-04)."""
    row = comparison("first", "1 2 3 4 5 6 7 8 9", "1 2 3 4 5 6 7 8 10")
    assert len(text_pairs([row])) == 1
    cut = text_pairs([row, comparison("first")], seen=first_words(8))
    assert (len(cut), cut.counts) == (1, {"equal responses": 1})
    assert len(text_pairs([row], seen=first_words(10))) == 1


def test_equal_responses_that_are_kept_cost_log_2_and_teach_nothing() -> None:
    """The scores of one text are one score (O-04)."""
    row = read({"prompt": "p", "responses": ["a", "a", "b"], "ranking": [0, 1, 2]}, "ranking")
    assert text_pairs([row]).counts == {"equal responses": 1}
    found = text_pairs([row], equal="keep")
    assert found.chosen[0] == found.rejected[0]
    columns = ("chosen", "rejected", "label", "margin", "group")
    only = replace(found, **{name: getattr(found, name)[:1] for name in columns})
    value, gradient = loss(only, [3.0, 1.0]).tolist()
    assert value == pytest.approx(0.693147, abs=1e-5)
    assert gradient == 0


def test_the_same_row_counts_once_unless_another_annotator_wrote_it() -> None:
    """O-12."""
    rows = [comparison("first", annotator=name) for name in ("ann", "ann", "bob")]
    found = text_pairs(rows)
    assert (len(found), found.counts) == (2, {"duplicate rows": 1})


def test_how_much_better_a_response_is_goes_along_in_the_rows_own_word() -> None:
    """Steps of a strength, else a difference of scores, else a margin, else nothing."""
    rows = [
        read({"prompt": "p", "first": "a", "second": "b", "strength": 3}, "strength"),
        read({"prompt": "q", "responses": ["a", "b"], "scores": [1.0, 3.5]}, "scores"),
        read({"prompt": "r", "chosen": "a", "rejected": "b", "margin": 1.5}, "pairs"),
        comparison("first"),
    ]
    assert text_pairs(rows).strength == [3.0, 2.5, 1.5, None]
