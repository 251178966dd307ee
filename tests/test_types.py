"""The floor: what may be a vocabulary, rows of a rollout, pairs of a preference, and numbers that are none."""

import math
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.types import Comparison, NonFinite, Preference, Ranking, Refusal, Rollout, Step, Vocabulary, check_finite

modest = settings(max_examples=30, deadline=None, derandomize=True)


def rollout(count: int = 4) -> Rollout:
    """Rows that can be told apart: row i answers prompt i with i + 1 real tokens out of `count`."""
    ids = torch.arange(count)[:, None]
    tokens = 10 * ids + torch.arange(count)
    mask = torch.arange(count) <= ids
    return Rollout(ids, torch.ones_like(ids, dtype=torch.bool), tokens, mask, -tokens.float(), mask[:, -1])


def test_a_rollout_is_trimmed_to_its_longest_response() -> None:
    """Rows 0 and 1 of 4 columns have 1 and 2 real tokens: two columns stay, with what stood in them; prompts stay."""
    whole = rollout()
    short = whole[:2].trimmed()
    assert short.responses.tolist() == [[0, 1], [10, 11]]
    assert short.mask.tolist() == [[True, False], [True, True]]
    assert (short.logprobs.shape, short.prompts.tolist()) == ((2, 2), [[0], [1]])
    assert torch.equal(whole.trimmed().responses, whole.responses)
    assert whole[:0].trimmed().responses.shape == (0, 1)


# Numbers that are none


def test_finite_numbers_pass_in_silence() -> None:
    """Of any shape with the batch first, and none at all; also where their sum overflows (4 x 3e38 in float32)."""
    for values in (torch.zeros(3), torch.full((2, 3, 4), -1e30), torch.zeros(0), torch.full((4,), 3e38)):
        check_finite("scores are", values)


def test_infinities_that_cancel_are_still_seen() -> None:
    """Their sum is NaN, not 0."""
    with pytest.raises(NonFinite, match="row 0, 1"):
        check_finite("scores are", torch.tensor([math.inf, -math.inf]))


@pytest.mark.parametrize("poison", [math.nan, math.inf, -math.inf])
def test_the_complaint_names_the_quantity_the_step_and_the_rows(poison: float) -> None:
    """Rows 1 and 3 of 4, at step 7; without a step none is named."""
    values = torch.zeros(4, 2)
    values[1, 0] = values[3, 1] = poison
    with pytest.raises(NonFinite) as caught:
        check_finite("scores are", values, step=7)
    assert str(caught.value) == "scores are not finite at step 7 in 2 of 4 rows (row 1, 3)."
    with pytest.raises(NonFinite) as caught:
        check_finite("scores are", values)
    assert "step" not in str(caught.value)


def test_step_zero_is_a_step() -> None:
    """0 is not nothing."""
    with pytest.raises(NonFinite, match="at step 0"):
        check_finite("scores are", torch.tensor([math.nan]), step=0)


@modest
@given(st.sets(st.integers(0, 19), min_size=1))
def test_at_most_five_rows_are_named_and_all_are_counted(rows: set[int]) -> None:
    """In order."""
    values = torch.zeros(20)
    values[sorted(rows)] = math.nan
    with pytest.raises(NonFinite) as caught:
        check_finite("scores are", values)
    first = ", ".join(map(str, sorted(rows)[:5])) + (", ..." if len(rows) > 5 else "")
    assert str(caught.value).endswith(f"in {len(rows)} of 20 rows (row {first}).")


def test_a_refusal_is_a_value_error_and_a_number_that_is_none_an_arithmetic_error() -> None:
    """So that users of the library can catch them without knowing ours."""
    assert issubclass(Refusal, ValueError)
    assert issubclass(NonFinite, ArithmeticError)


# Vocabularies


def test_a_vocabulary_may_pad_with_its_end_token_or_with_an_id_outside() -> None:
    """The mask decides; padding is never read."""
    assert Vocabulary(size=5, time=2, eos=4, pad=4).pad == 4
    assert Vocabulary(size=5, time=2, pad=5).pad == 5


@pytest.mark.parametrize(
    ("settings_", "sentence"),
    [
        ({"size": 0, "time": 1}, "size 0 and time 1"),
        ({"size": 3, "time": 0}, "size 3 and time 0"),
        ({"size": 3, "time": 1, "eos": 3}, "end token 3 is outside the vocabulary 0..2"),
        ({"size": 3, "time": 1, "eos": -1}, "end token -1"),
        ({"size": 3, "time": 1, "forbidden": (3,)}, r"Forbidden tokens \(3,\)"),
        ({"size": 3, "time": 1, "forbidden": (-1,)}, "Forbidden tokens"),
        ({"size": 2, "time": 1, "forbidden": (0, 1)}, "leave one allowed"),
        ({"size": 3, "time": 1, "eos": 1, "forbidden": (1,)}, "end token 1 is forbidden"),
    ],
)
def test_a_vocabulary_that_cannot_speak_is_refused(settings_: dict[str, Any], sentence: str) -> None:
    """The sentence shows what was given."""
    with pytest.raises(Refusal, match=sentence):
        Vocabulary(**settings_)


# Rollouts, pairs, rankings


@modest
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_rows_of_a_rollout_are_picked_in_every_field_and_in_order(rows: list[int]) -> None:
    """Repeats allowed."""
    whole, picked = rollout(), rollout()[torch.tensor(rows)]
    assert len(picked) == len(rows)
    for name in ("prompts", "prompt_mask", "responses", "mask", "logprobs", "finished"):
        assert torch.equal(getattr(picked, name), torch.stack([getattr(whole, name)[row] for row in rows]))


def test_a_slice_and_a_mask_pick_rows_too() -> None:
    """Rows 1 and 2."""
    assert rollout()[1:3].prompts[:, 0].tolist() == [1, 2]
    assert rollout()[torch.tensor([False, True, True, False])].prompts[:, 0].tolist() == [1, 2]


def test_lengths_count_real_tokens() -> None:
    """Row i has i + 1."""
    assert rollout().lengths.tolist() == [1, 2, 3, 4]
    assert len(rollout()) == 4


def test_hard_pairs_are_sure_without_margin_and_each_its_own_group() -> None:
    """Unless the groups are given."""
    first, second = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 3])
    alone = Preference.hard(rollout(), first, second)
    assert (alone.label.tolist(), alone.margin.tolist(), alone.group.tolist()) == ([1.0] * 3, [0.0] * 3, [0, 1, 2])
    assert Preference.hard(rollout(), first, second, torch.tensor([4, 4, 5])).group.tolist() == [4, 4, 5]


def test_picking_pairs_leaves_the_rollout_whole() -> None:
    """Row numbers keep their meaning."""
    preference = Preference.hard(rollout(), torch.tensor([0, 1, 2]), torch.tensor([1, 2, 3]))
    picked = preference.pairs(torch.tensor([2, 0]))
    assert (picked.chosen.tolist(), picked.rejected.tolist(), picked.group.tolist()) == ([2, 0], [3, 1], [2, 0])
    assert picked.rollout is preference.rollout
    assert (len(preference), len(picked)) == (3, 2)


def test_flipped_pairs_change_sides_and_nothing_else() -> None:
    """Twice is the same as never."""
    hard = Preference.hard(rollout(), torch.tensor([0, 2]), torch.tensor([1, 3]), group=torch.tensor([4, 4]))
    flipped = hard.flipped()
    assert (flipped.chosen.tolist(), flipped.rejected.tolist()) == ([1, 3], [0, 2])
    assert (flipped.label.tolist(), flipped.margin.tolist(), flipped.group.tolist()) == ([1, 1], [0, 0], [4, 4])
    assert flipped.flipped().chosen.tolist() == [0, 2]
    assert flipped.rollout is hard.rollout


def test_comparisons_and_rankings_count_their_own_units() -> None:
    """Pairs, and rankings."""
    assert len(Comparison(rollout(), torch.tensor([0, 2, 1]), torch.tensor([1, 3, 2]))) == 3
    assert len(Ranking(rollout(), torch.tensor([[0, 1], [3, 2]]), torch.tensor([[0, 1], [0, 1]]))) == 2


def test_records_are_frozen() -> None:
    """What walks through the house is not changed on its way."""
    found = rollout()
    step = Step(0, found, torch.zeros(4), None, torch.zeros(4), 0.1, None)
    for record, name in ((found, "mask"), (step, "beta"), (Vocabulary(size=3, time=1), "size")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, name, None)
    assert step.stats == {}


def test_a_policy_with_fewer_tokens_than_the_world_is_refused() -> None:
    """The words name both numbers; another end token is refused too; more tokens are fine."""
    from killick.models.tabular import TabularPolicy
    from killick.types import check_speaks
    from killick.worlds.answers import Answers
    from killick.worlds.arithmetic import Arithmetic

    def table(size: int) -> TabularPolicy:
        return TabularPolicy(torch.zeros(4, 1, size), Vocabulary(size, time=1))

    check_speaks(table(8), Answers())
    check_speaks(table(9), Answers())
    with pytest.raises(Refusal, match="has 5 tokens, fewer than the 8 of Answers"):
        check_speaks(table(5), Answers())
    with pytest.raises(Refusal, match="ends responses with token None, Arithmetic with 12"):
        check_speaks(table(20), Arithmetic())
