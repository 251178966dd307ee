"""What your four functions have to do, by numbers that can be checked by hand: `pytest -k task1` ... `pytest -k task4`.

Where an answer is wrong and the wrong number is a known one, the message names the mistake behind it.
"""

import leash
import pytest
import torch
from leash import FIVE, TWO
from torch import Tensor, tensor

torch.set_num_threads(1)


def check(task: int, what: str, *, got: Tensor, right: object, mistakes: dict[str, object] | None = None) -> None:
    """Compare with the right answer to three digits; name the mistake where the wrong one is known."""
    right = torch.as_tensor(right, dtype=torch.float32)
    assert isinstance(got, Tensor), f"Task {task}: {what} has to be a tensor, not {type(got).__name__}."
    assert got.shape == right.shape, f"Task {task}: {what} has the shape {list(got.shape)}, not {list(right.shape)}."
    if torch.allclose(got.float(), right, atol=6e-4):
        return
    for mistake, wrong in (mistakes or {}).items():
        if torch.allclose(got.float(), torch.as_tensor(wrong, dtype=torch.float32), atol=6e-4):
            pytest.fail(f"Task {task}: {mistake}", pytrace=False)
    found = [round(x, 4) for x in got.flatten().tolist()]
    pytest.fail(f"Task {task}: {what} is {found}; by hand it is {right.flatten().tolist()}.", pytrace=False)


# Task 1


@pytest.mark.parametrize(("beta", "right"), [(10, [0.784, 0.216]), (1, [0.595, 0.405]), (0.25, [0.068, 0.932])])
def test_task1_two_answers(beta: float, right: list[float]) -> None:
    """.8 and .2 exp(1 / beta), divided by their sum."""
    check(1, f"the policy at beta {beta}", got=leash.tilted(TWO["reference"], TWO["reward"], beta=beta), right=right)


def test_task1_two_answers_at_a_half() -> None:
    """.8 and .2 e^2 = 1.4778, so .351 and .649."""
    check(1, "the policy at beta 1/2", got=leash.tilted(TWO["reference"], TWO["reward"], beta=0.5), right=[0.351, 0.649], mistakes={
        "the reward is multiplied by beta; it is divided by it: a large beta is a short leash.": [0.708, 0.292],
        "the reference is missing: this is softmax of reward / beta alone.": [0.119, 0.881],
        "the sum is not 1: divide by it.": [0.8, 1.4778],
        "the sign is flipped: a higher reward makes an answer likelier.": [0.967, 0.033],
        "this is softmax of reference + reward / beta; it is the logarithm of the reference that is added.": [0.1978, 0.8022],
    })  # fmt: skip


def test_task1_a_very_long_leash() -> None:
    """At beta .001 all the weight is on the best answer; exp(1600) is not needed for that."""
    got = leash.tilted(FIVE["reference"], FIVE["reward"], beta=0.001)
    assert bool(torch.isfinite(got).all()), (
        "Task 1: exp left float32; take the largest reward off first, or use softmax."
    )
    check(1, "the policy at beta .001", got=got, right=[0, 0, 0, 0, 1])


# Task 2


def test_task2_by_hand() -> None:
    """Two answers at beta 1: log(.8 + .2 e) = .2953. Five: .65562 at beta 1."""
    check(2, "log Z of two answers at beta 1", got=leash.log_z(TWO["reference"], TWO["reward"], beta=1.0), right=0.2953, mistakes={
        "this is Z itself; take its logarithm.": 1.3437,
        "the sign is flipped.": -0.2953,
        "the reference is missing.": 1.3133,
    })  # fmt: skip
    check(2, "log Z of two answers at beta 1/2", got=leash.log_z(TWO["reference"], TWO["reward"], beta=0.5), right=0.8230, mistakes={
        "this is beta log Z; log Z is asked for.": 0.4115,
        "the reward is multiplied by beta; it is divided by it.": 0.1219,
    })  # fmt: skip
    check(
        2, "log Z of five answers at beta 1", got=leash.log_z(FIVE["reference"], FIVE["reward"], beta=1.0), right=0.6556
    )


def test_task2_a_very_long_leash() -> None:
    """At beta .001: log .05 + 1600."""
    got = leash.log_z(FIVE["reference"], FIVE["reward"], beta=0.001)
    assert bool(torch.isfinite(got)), "Task 2: exp left float32; torch.logsumexp takes log(reference) + reward / beta."
    assert abs(float(got) - 1597.004) < 0.01, f"Task 2: at beta .001 log Z is {float(got):.3f}; by hand it is 1597.004."


# Task 3


def test_task3_by_hand() -> None:
    """(1/2, 1/2) from (.8, .2): .5 log(.625) + .5 log 2.5 = .2231. All on the second answer: log 5 = 1.6094."""
    reference = TWO["reference"]
    check(3, "the KL", got=leash.kl(tensor([0.5, 0.5]), reference), right=0.2231, mistakes={
        "this is KL(reference || policy): the mean is over the policy's answers.": 0.1927,
        "the sign is flipped; a KL is never negative.": -0.2231,
        "the logarithm is of base 2; nats are natural.": 0.3219,
        "the probabilities are missing before the logarithms.": 0.4463,
    })  # fmt: skip
    got = leash.kl(tensor([0.0, 1.0]), reference)
    assert not bool(torch.isnan(got)), "Task 3: 0 log 0 came out as NaN; an answer that is never given adds 0."
    check(3, "the KL of a sure answer", got=got, right=1.6094)


def test_task3_what_a_leash_maximises_is_beta_log_z() -> None:
    """Tasks 1, 2 and 3 together: E[reward] - beta KL = beta log Z, at every beta."""
    for beta in (10.0, 1.0, 0.1):
        policy = leash.tilted(FIVE["reference"], FIVE["reward"], beta=beta)
        reached = policy @ FIVE["reward"] - beta * leash.kl(policy, FIVE["reference"])
        promised = beta * leash.log_z(FIVE["reference"], FIVE["reward"], beta=beta)
        assert abs(float(reached - promised)) < 1e-4, (
            f"Task 3: at beta {beta:g} the best policy reaches {float(reached):.4f} and beta log Z is {float(promised):.4f}; "
            "they are equal. One of tasks 1, 2 and 3 is not right yet."
        )


# Task 4


def test_task4_two_draws_from_two() -> None:
    """The worse answer is kept only if it comes twice: .64."""
    check(4, "best of two", got=leash.best_of_n(TWO["reference"], TWO["reward"], n=2), right=[0.64, 0.36], mistakes={
        "this is one draw.": [0.8, 0.2],
        "the worst is kept, not the best.": [0.96, 0.04],
        "these are p^n: that all draws are this answer. The better answer is kept too when it comes once.": [0.64, 0.04],
        "these are F^n: that nothing better comes. Take off what is kept below.": [0.64, 1.0],
    })  # fmt: skip


def test_task4_five_answers_in_the_order_given() -> None:
    """F sorted by reward: .15, .30, .65, .95, 1; at n = 4: .0005, .0076, .1704, .6360, .1855."""
    got = leash.best_of_n(FIVE["reference"], FIVE["reward"], n=4)
    check(4, "best of four", got=got, right=[0.6360, 0.1704, 0.0076, 0.0005, 0.1855], mistakes={
        "the answers are in the order of their rewards; they have to stay in the order given.":
            [0.0005, 0.0076, 0.1704, 0.6360, 0.1855],
    })  # fmt: skip
    check(4, "best of one", got=leash.best_of_n(FIVE["reference"], FIVE["reward"], n=1), right=FIVE["reference"])
    assert abs(float(got.sum()) - 1) < 1e-5, "Task 4: the probabilities do not sum to 1."


def test_task4_best_of_two_and_of_four_beat_every_beta() -> None:
    """The point of it all: .5635 and .5656 of gold, and no beta gives more than .4997."""
    best = max(row["gold"] for row in leash.tilts(leash.EVERY_BETA))
    assert abs(best - 0.49965) < 1e-4, (
        f"Task 4: the best beta gives {best:.5f} of gold; by hand it is .49965. See tasks 1 and 3."
    )
    two, four = (row["gold"] for row in leash.bests((2, 4)))
    assert min(two, four) > best, (
        f"Task 4: best of 2 gives {two:.4f} and best of 4 {four:.4f}; both should beat {best:.4f}."
    )
