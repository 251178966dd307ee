"""What your four functions have to do, by numbers that can be checked by hand: `pytest -k task1` ... `pytest -k task4`.

Where an answer is wrong and the wrong number is a known one, the message names the mistake behind it.
"""

import math

import hacking
import pytest
import torch
from hacking import PLAIN
from torch import tensor

from killick.worlds.emphasis import EMPHASIS

torch.set_num_threads(1)


def check(task: int, what: str, *, got: float, right: float, mistakes: dict[str, float] | None = None) -> None:
    """Compare with the right number; name the mistake where the wrong one is known."""
    if math.isclose(got, right, abs_tol=1e-4):
        return
    for mistake, wrong in (mistakes or {}).items():
        if math.isclose(got, wrong, abs_tol=1e-4):
            pytest.fail(f"Task {task}: {mistake}", pytrace=False)
    pytest.fail(f"Task {task}: {what} is {got:g}; by hand it is {right:g}.", pytrace=False)


# Task 1: 200 responses in the data, of which one holds 5 and five hold 2: 98 % do not exceed 2

SEEN = tensor([5] + [2] * 5 + [1] * 60 + [0] * 134)


def test_task1_the_first_iteration_with_a_third_beyond_the_data() -> None:
    """Beyond 2: none, 1 of 6, 2 of 6 (a third, not more), 3 of 6."""
    counts = tensor([[0, 1, 2, 2, 1, 0], [2, 2, 3, 2, 1, 0], [3, 4, 2, 2, 1, 1], [3, 3, 3, 2, 0, 0], [6] * 6])
    check(1, "the predicted turn", got=hacking.predict_turn(counts, SEEN), right=3, mistakes={
        "a third is not more than a third.": 2,
        "the data cover 2, and a response that holds 2 is not beyond.": 0,
        "one response of 200 holds 5; what 98 % do not exceed is 2, not the maximum.": 4,
        "any response beyond is taken for the turn; it takes more than a third of them.": 1,
    })  # fmt: skip


def test_task1_no_turn() -> None:
    """A policy that stays inside the data: the number of iterations."""
    check(1, "the predicted turn where nothing turns", got=hacking.predict_turn(tensor([[0, 1], [2, 2], [1, 0]]), SEEN),
          right=3, mistakes={"where no iteration is beyond, argmax says 0, which would be a turn at the start.": 0})  # fmt: skip


# Task 2


def test_task2_two_samples_by_hand() -> None:
    """Scores 0 and 1 at beta 1: weights 1 and e, so the mean of 10 and 20 is (10 + 20 e) / (1 + e) = 17.3106."""
    values, scores = tensor([10.0, 20.0]), tensor([0.0, 1.0])
    got = float(hacking.tilted_mean(values, scores, beta=1.0))
    check(2, "the tilted mean at beta 1", got=got, right=17.3106, mistakes={
        "the weights are not normalised: they have to sum to 1.": 10 + 20 * math.e,
        "the weights are divided by the number of samples, not by their sum.": (10 + 20 * math.e) / 2,
        "the sign is flipped: a higher score makes a response likelier.": 12.6894,
        "this is the plain mean.": 15.0,
    })  # fmt: skip
    check(2, "the tilted mean at beta 1/2", got=float(hacking.tilted_mean(values, scores, beta=0.5)), right=18.8080,
          mistakes={"the score is multiplied by beta; it is divided by it: a short leash is a large beta.": 16.2246,
                    "beta is not used.": 17.3106})  # fmt: skip


def test_task2_does_not_overflow() -> None:
    """Scores of 1000 apart at beta .1: all the weight on the better one."""
    got = float(hacking.tilted_mean(tensor([10.0, 20.0]), tensor([0.0, 1000.0]), beta=0.1))
    assert got == 20, (
        f"Task 2: exp(10000) left float32 and the mean came out as {got}, not 20; softmax does not form it."
    )


# Task 3


def test_task3_finds_the_crossing() -> None:
    """Gain 1 / (1 + beta) falls through .4 at 1.5."""
    got = hacking.largest_beta(lambda beta: 1 / (1 + beta), low=0.1, high=10.0, wanted=0.4)
    check(3, "the largest beta", got=got, right=1.5)
    assert 1 / (1 + got) >= 0.4, (
        f"Task 3: at beta {got} the gain is a hair too small; return the end that gains enough."
    )


def test_task3_few_steps_stay_on_the_safe_side() -> None:
    """One halving of .5 .. 4.5: the middle, 2.5, gains .2857, too little, so .5 is what is known."""
    got = hacking.largest_beta(lambda beta: 1 / (1 + beta), low=0.5, high=4.5, wanted=0.4, steps=1)
    check(3, "the beta after one halving", got=got, right=0.5, mistakes={
        "2.5 does not gain enough; return the end that does.": 2.5,
        "1.5 is the middle of what is left, and nobody has looked whether it gains enough.": 1.5,
    })  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [(2.0, 10.0), (0.1, 1.0)])
def test_task3_refuses_a_range_without_the_answer(low: float, high: float) -> None:
    """Both ends too small, or both enough."""
    try:
        found = hacking.largest_beta(lambda beta: 1 / (1 + beta), low=low, high=high, wanted=0.4)
    except ValueError:
        return
    pytest.fail(f"Task 3: between {low} and {high} nothing crosses .4, and {found} was returned; raise ValueError.")


# Task 4


def shown() -> tuple[torch.Tensor, torch.Tensor]:
    """6,000 rows of tokens, emphasis among them, and what your function makes of them."""
    rows = torch.randint(24, (6000, 12), generator=torch.Generator().manual_seed(1))
    kept = rows.clone()
    got = hacking.show_more(rows, torch.Generator().manual_seed(2))
    assert torch.equal(rows, kept), "Task 4: the responses that were given have changed; make new ones."
    return rows, got


def test_task4_every_number_is_equally_likely() -> None:
    """0 to 12, each in a thirteenth of the rows, within five deviations."""
    _, got = shown()
    numbers = (got == EMPHASIS).sum(1)
    share = numbers.bincount(minlength=13) / len(got)
    assert len(share) == 13, "Task 4: a row holds 0 to 12 emphasis tokens."
    assert share[12] > 0, (
        "Task 4: no row is all emphasis: 12 is a possible number too (the upper end of randint is left out)."
    )
    assert share[0] > 0, "Task 4: no row is without emphasis: 0 is a possible number too."
    assert (share - 1 / 13).abs().max() < 0.018, (
        f"Task 4: the numbers 0 ... 12 are not equally likely: {share.tolist()}."
    )


def test_task4_every_place_is_equally_likely() -> None:
    """Each place holds emphasis in half of the rows, and not only from the left."""
    _, got = shown()
    share = (got == EMPHASIS).float().mean(0)
    assert (share - 0.5).abs().max() < 0.04, (
        f"Task 4: emphasis prefers some places: {[round(x, 2) for x in share.tolist()]}."
    )


def test_task4_everything_else_stays() -> None:
    """What is not emphasis now is what stood there, or PLAIN where emphasis stood."""
    rows, got = shown()
    other = got != EMPHASIS
    was = rows == EMPHASIS
    assert bool((got[other & was] == PLAIN).all()), "Task 4: where emphasis was taken out, PLAIN has to stand."
    assert bool((got[other & ~was] == rows[other & ~was]).all()), (
        "Task 4: tokens that have nothing to do with emphasis changed."
    )
