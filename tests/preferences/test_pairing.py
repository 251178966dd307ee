"""Pairing: how many pairs a ranking holds, which of two neighbours is first, and a split that no new row can move."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.preferences.pairing import extremes, neighbours, pairs, part
from killick.types import Ranking, Refusal, Rollout

modest = settings(max_examples=30, deadline=None, derandomize=True)


def rows(prompts: list[int]) -> Rollout:
    """One response of one token for each of these one-token prompts."""
    ids = torch.tensor(prompts)[:, None]
    seen = torch.ones_like(ids, dtype=torch.bool)
    return Rollout(ids, seen, torch.zeros_like(ids), seen, torch.zeros(ids.shape), seen[:, 0])


def ranked(places: list[list[int]]) -> Ranking:
    """Rankings of rows 0, 1, 2, ... with these places."""
    place = torch.tensor(places)
    return Ranking(rows([0] * place.numel()), torch.arange(place.numel()).view(place.shape), place)


# Closed forms


@pytest.mark.parametrize(("k", "count"), [(1, 0), (2, 1), (4, 6), (9, 36)])
def test_k_responses_give_k_times_k_minus_1_over_2_pairs(k: int, count: int) -> None:
    """A ranking of one gives none and is no error here."""
    assert len(pairs(ranked([list(range(k))]))) == count


def test_tied_responses_give_no_pair_between_them() -> None:
    """[[a], [b, c], [d]]: five strict pairs out of six."""
    preference = pairs(ranked([[0, 1, 1, 2]]))
    found = list(zip(preference.chosen.tolist(), preference.rejected.tolist(), strict=True))
    assert sorted(found) == [(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)]


def test_the_better_place_is_chosen_wherever_it_stands() -> None:
    """Places (2, 0, 1) of rows 0, 1, 2: 1 beats 2 beats 0."""
    preference = pairs(ranked([[2, 0, 1]]))
    found = set(zip(preference.chosen.tolist(), preference.rejected.tolist(), strict=True))
    assert found == {(1, 0), (1, 2), (2, 0)}


def test_a_ranking_of_ties_only_gives_no_pair_and_leaves_its_neighbour_alone() -> None:
    """The second ranking keeps its own number as its group."""
    preference = pairs(ranked([[0, 0], [0, 1]]))
    assert (preference.chosen.tolist(), preference.rejected.tolist(), preference.group.tolist()) == ([2], [3], [1])


def test_neighbours_are_rows_0_and_1_then_2_and_3() -> None:
    """Two responses to each prompt, sampled together."""
    comparison = neighbours(rows([5, 5, 7, 7]))
    assert (comparison.first.tolist(), comparison.second.tolist()) == ([0, 2], [1, 3])


# Invariants


@modest
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_the_pairs_are_exactly_the_strict_ones_grouped_by_ranking(places: list[list[int]]) -> None:
    """Against a loop in plain Python."""
    expected = set()
    for number, place in enumerate(places):
        for i, j in itertools.permutations(range(4), 2):
            if place[i] < place[j]:
                expected.add((4 * number + i, 4 * number + j, number))
    p = pairs(ranked(places))
    found = list(zip(p.chosen.tolist(), p.rejected.tolist(), p.group.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert (p.label.tolist(), p.margin.tolist()) == ([1.0] * len(found), [0.0] * len(found))


@modest
@given(st.text("aAzZßéÉİ \t.", min_size=1), st.integers(0, 5))
def test_a_prompt_stays_on_its_side_whatever_its_case_and_outer_spaces(text: str, seed: int) -> None:
    """Case folding, so that German sharp s and ss fall together too."""
    shares = (0.5, 0.3, 0.2)
    side = part(text, seed, shares=shares)
    assert side == part(f" \t{text}\n", seed, shares=shares)
    assert side == part(text.casefold(), seed, shares=shares)


def test_upper_case_and_lower_case_fall_together() -> None:
    """For 200 texts, which a case-sensitive hash would tear apart about 96 times."""
    for number in range(200):
        assert part(f"Prompt {number}", 0, shares=(0.6, 0.4)) == part(f"PROMPT {number} ", 0, shares=(0.6, 0.4))


def test_adding_rows_never_moves_a_prompt() -> None:
    """10 prompts with 4 rows each: one side per prompt, and the same among 40, 80 or shuffled rows."""
    texts = [f"prompt {number}" for number in range(10) for _ in range(4)]
    sides = {text: {part(t, 3, shares=(0.8, 0.2)) for t in texts if t == text} for text in texts}
    assert all(len(found) == 1 for found in sides.values())
    assert {side for found in sides.values() for side in found} == {0, 1}
    more = [f"new {number}" for number in range(40)] + texts[::-1]
    assert {text: part(text, 3, shares=(0.8, 0.2)) for text in more if text in sides} == {
        t: s.copy().pop() for t, s in sides.items()
    }


def test_shares_are_met_and_the_seed_makes_another_split() -> None:
    """10,000 texts in parts of .7, .2 and .1, each within 4 standard errors; another seed agrees by chance (.54)."""
    shares = (0.7, 0.2, 0.1)
    first, other = ([part(f"text {i}", seed, shares=shares) for i in range(10_000)] for seed in (0, 1))
    for index, share in enumerate(shares):
        assert abs(first.count(index) / 10_000 - share) < 4 * (share * (1 - share) / 10_000) ** 0.5
    agree = sum(a == b for a, b in zip(first, other, strict=True)) / 10_000
    chance = sum(share**2 for share in shares)
    assert abs(agree - chance) < 4 * (chance * (1 - chance) / 10_000) ** 0.5


def test_a_share_of_nothing_gets_nothing() -> None:
    """The last part takes what rounding leaves; an empty part in front stays empty."""
    assert {part(f"text {i}", 0, shares=(0.0, 1.0)) for i in range(100)} == {1}


# Refusals


@pytest.mark.parametrize("shares", [(0.5, 0.4), (0.8, 0.3), (1.5, -0.5), ()])
def test_shares_that_do_not_sum_to_one_are_refused(shares: tuple[float, ...]) -> None:
    """The sentence shows them."""
    with pytest.raises(Refusal, match="sum to 1"):
        part("text", 0, shares=shares)


def test_odd_rows_and_neighbours_of_different_prompts_are_refused() -> None:
    """Pairs are only judged within one prompt."""
    with pytest.raises(Refusal, match="3 responses do not fall into pairs"):
        neighbours(rows([1, 1, 1]))
    with pytest.raises(Refusal, match="different prompts"):
        neighbours(rows([1, 1, 1, 2]))


# The best against the worst


def test_the_best_of_each_prompt_stands_against_its_worst_and_equals_give_no_pair() -> None:
    """Golds (-1, 0, 0, -2), (-1, -1, -1, -1), (0, -3, -3, 0): the first best is row 1, the first worst row 3; the
    second prompt has no pair; the third pairs its rows 0 and 1, which are 8 and 9. The group is the prompt's number."""
    gold = torch.tensor([-1.0, 0, 0, -2, -1, -1, -1, -1, 0, -3, -3, 0])
    found = extremes(rows([5] * 4 + [6] * 4 + [7] * 4), gold, k=4)
    assert (found.chosen.tolist(), found.rejected.tolist()) == ([1, 8], [3, 9])
    assert found.group.tolist() == [0, 2]
    assert found.label.tolist() == [1.0, 1.0]


@modest
@given(st.lists(st.lists(st.integers(-4, 0), min_size=3, max_size=3), min_size=1, max_size=6))
def test_no_answer_of_a_prompt_is_better_than_the_chosen_or_worse_than_the_rejected(golds: list[list[int]]) -> None:
    gold = torch.tensor(golds).flatten().float()
    found = extremes(rows([n for n in range(len(golds)) for _ in range(3)]), gold, k=3)
    assert len(found) == sum(len(set(each)) > 1 for each in golds)
    for chosen, rejected, prompt in zip(found.chosen, found.rejected, found.group, strict=True):
        assert gold[chosen] == max(golds[prompt])
        assert gold[rejected] == min(golds[prompt])


@pytest.mark.parametrize(
    ("prompts", "k", "word"),
    [([1, 1, 1], 2, "do not fall into groups of 2"), ([1, 2], 1, "at least 2"), ([1, 2], 2, "must answer one prompt")],
)
def test_extremes_need_whole_groups_of_one_prompt(prompts: list[int], k: int, word: str) -> None:
    with pytest.raises(Refusal, match=word):
        extremes(rows(prompts), torch.zeros(len(prompts)), k=k)
