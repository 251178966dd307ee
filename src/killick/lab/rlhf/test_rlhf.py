"""What your five functions have to do, by numbers that can be checked by hand: `pytest -k task1` ... `pytest -k task5`.

Where an answer is wrong and the wrong number is a known one, the message names the mistake behind it.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
import rlhf
import torch
from prefs import DigitReward, ceiling, gold, rank
from tinylm import load_sft, world
from torch import Tensor, tensor

from killick.ops.stats import pair_accuracy
from killick.recipes.arithmetic.recipe import Config

torch.set_num_threads(1)


def check(task: int, what: str, *, got: Tensor, right: object, mistakes: dict[str, object] | None = None) -> None:
    """Compare with the right answer; name the mistake where the wrong answer is a known one."""
    right = torch.as_tensor(right, dtype=torch.float32)
    assert isinstance(got, Tensor), f"Task {task}: {what} has to be a tensor, not {type(got).__name__}."
    assert got.shape == right.shape, f"Task {task}: {what} has the shape {list(got.shape)}, not {list(right.shape)}."
    if torch.allclose(got.detach().float(), right, atol=1e-4):
        return
    for mistake, wrong in (mistakes or {}).items():
        if torch.allclose(got.detach().float(), torch.as_tensor(wrong, dtype=torch.float32), atol=1e-4):
            pytest.fail(f"Task {task}: {mistake}", pytrace=False)
    found = [round(x, 4) for x in got.detach().flatten().tolist()]
    pytest.fail(f"Task {task}: {what} is {found}; by hand it is {right.flatten().tolist()}.", pytrace=False)


def after(*tests: Callable[[], None]) -> None:
    """Leave a test that builds on earlier tasks until those pass."""
    for test in tests:
        try:
            test()
        except (AssertionError, NotImplementedError, pytest.fail.Exception):
            pytest.skip(f"first make {test.__name__} pass")


# Task 1


def test_task1_three_losses_by_hand() -> None:
    """Equal scores: log 2. log 3 apart: sigma is 3/4, so -log(3/4). The same the wrong way round: -log(1/4)."""
    third = math.log(3)
    flipped = "the sign is flipped: a reward model that is right gets the larger loss. It is chosen - rejected."
    for gap, loss in ((0.0, 0.6931), (third, 0.2877), (-third, 1.3863)):
        got = rlhf.bt_loss(tensor([2.0 + gap]), tensor([2.0]))
        other = 1.6740 - loss if gap else math.nan  # .2877 + 1.3863: the loss of the opposite gap
        likely = 1 / (1 + math.exp(-gap))
        check(1, f"the loss of a pair whose scores are {gap:.3f} apart", got=got, right=loss,
              mistakes={flipped: other, "the log is missing: this is sigma itself.": likely,
                        "the minus is missing: a loss is -log sigma, which falls as the model improves.": -loss,
                        })  # fmt: skip


def test_task1_is_the_mean_over_pairs() -> None:
    """(.6931 + .2877 + 1.3863) / 3 = .7890."""
    chosen = tensor([0.0, math.log(3), 0.0])
    got = rlhf.bt_loss(chosen, tensor([0.0, 0.0, math.log(3)]))
    assert got.dim() == 0, f"Task 1: one number for the whole batch, not {list(got.shape)}: take the mean over pairs."
    summed = "this is the sum over pairs; take the mean, or the step size grows with the number of pairs."
    check(1, "the mean loss of three pairs", got=got, right=0.7890, mistakes={summed: 2.3671})


def test_task1_gradient() -> None:
    """-(1 - sigma) / N on a chosen score: -(1/2) / 2 for equal scores, -(1/4) / 2 for log 3 apart; + on rejected."""
    chosen, rejected = tensor([0.0, math.log(3)], requires_grad=True), torch.zeros(2, requires_grad=True)
    loss = rlhf.bt_loss(chosen, rejected)
    assert loss.requires_grad, "Task 1: no gradient flows through the loss; nothing in it may be detached."
    loss.backward()
    assert chosen.grad is not None, "Task 1: no gradient reaches the chosen scores."
    assert rejected.grad is not None, "Task 1: no gradient reaches the rejected scores."
    flipped = "the sign is flipped: the loss pushes chosen scores down."
    check(1, "the gradient on chosen scores", got=chosen.grad, right=[-0.25, -0.125],
          mistakes={flipped: [0.25, 0.375], "the sum over pairs was taken, not the mean.": [-0.5, -0.25]})  # fmt: skip
    check(1, "the gradient on rejected scores", got=rejected.grad, right=[0.25, 0.125])


def test_task1_sees_differences_only() -> None:
    """The same constant on both scores changes nothing."""
    chosen, rejected = tensor([0.3, -1.0, 2.0]), tensor([0.5, 0.0, -1.0])
    near, far = rlhf.bt_loss(chosen, rejected), rlhf.bt_loss(chosen + 7, rejected + 7)
    assert torch.allclose(near, far, atol=1e-5), (
        "Task 1: adding 7 to all scores changed the loss; it is about chosen - rejected."
    )


def test_task1_is_stable_far_out() -> None:
    """A gap of -100 costs 100 and has the gradient -1; so far out log(sigmoid(x)) and log(1 + exp(-x)) break."""
    for gap in (100.0, 1000.0):
        chosen = tensor([-gap], requires_grad=True)
        loss = rlhf.bt_loss(chosen, torch.zeros(1))
        words = f"Task 1: at a gap of -{gap:g} the loss is {float(loss.detach())}, not {gap:g}"
        if float(loss.detach()) < 1:
            words += ": the sign is flipped"
        else:
            words += ": sigmoid or exp left float32; use logsigmoid (or softplus), which never forms them"
        assert abs(float(loss.detach()) - gap) < 1e-3, words + "."
        loss.backward()
        assert chosen.grad is not None
        assert abs(float(chosen.grad) + 1) < 1e-3, (
            f"Task 1: at a gap of -{gap:g} the gradient is {float(chosen.grad)}, not -1."
        )


# Task 2


def test_task2_every_pair_winner_first() -> None:
    """Row 7 is best, then 2, 9 and 4: six pairs."""
    right = {(7, 2), (7, 9), (7, 4), (2, 9), (2, 4), (9, 4)}
    got = rlhf.ranking_to_pairs(tensor([7, 2, 9, 4]))
    assert isinstance(got, Tensor), f"Task 2: the pairs have to be one tensor [pairs, 2], not {type(got).__name__}."
    assert got.dim() == 2, f"Task 2: the pairs have the shape {list(got.shape)}; [pairs, 2] is asked for."
    pairs = [tuple(pair) for pair in got.tolist()]
    known = {3: "only neighbours are paired; the best also beats the last.",
             12: "each pair stands there in both directions; the loser of a pair has not won it.",
             16: "a response is paired with itself, and every pair stands there twice."}  # fmt: skip
    assert len(pairs) == 6, (
        f"Task 2: four responses make 4 x 3 / 2 = 6 pairs, not {len(pairs)}: {known.get(len(pairs), '')}"
    )
    if {frozenset(pair) for pair in pairs} == {frozenset(pair) for pair in right} and set(pairs) != right:
        wrong = [pair for pair in pairs if pair not in right]
        all_wrong = "every pair is the wrong way round: " if len(wrong) == 6 else ""
        pytest.fail(
            f"Task 2: the order is lost: {all_wrong}{wrong[0]} says that row {wrong[0][0]} won, but row {wrong[0][1]} "
            "stands earlier in the ranking. Pair by place, not by row number.", pytrace=False,
        )  # fmt: skip
    assert set(pairs) == right, (
        f"Task 2: the pairs of the ranking 7, 2, 9, 4 are {sorted(right)}, not {sorted(set(pairs))}."
    )


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_task2_k_choose_2(k: int) -> None:
    """0, 1, 3 and 21 pairs."""
    got = rlhf.ranking_to_pairs(torch.arange(k))
    assert got.shape == (k * (k - 1) // 2, 2), (
        f"Task 2: {k} responses make {k * (k - 1) // 2} pairs; the shape is {list(got.shape)}."
    )


def test_task2_the_reward_model_learns_that_even_is_good() -> None:
    """600 rankings of answers by the SFT model: every even digit scores above every odd one, and the ceiling is near."""
    after(test_task1_three_losses_by_hand, test_task1_gradient, test_task2_every_pair_winner_first)
    generator = torch.Generator().manual_seed(0)
    policy = load_sft()

    def label(count: int) -> tuple[rlhf.Rollout, Tensor]:
        rollout = policy.sample(world.prompts(count, generator), 4, generator)
        return rollout, rlhf.rankings_to_pairs(rank(gold(rollout), 4, generator))

    rollout, pairs = label(600)
    reward = DigitReward(generator)
    for _ in rlhf.train_reward_model(reward, rollout, pairs=pairs, steps=100, learning_rate=0.01):
        pass
    weights = reward.weights.detach()
    assert weights[0::2].min() > weights[1::2].max(), (
        f"Task 2: even digits should weigh more than odd ones: {reward.told()}"
    )
    rollout, pairs = label(400)
    scores = reward(rollout).detach()
    right, best = float(pair_accuracy(scores[pairs[:, 0]], scores[pairs[:, 1]])), ceiling(gold(rollout), pairs)
    assert right > best - 0.03, (
        f"Task 2: the reward model is right in {right:.3f} of new pairs; {best:.3f} are possible."
    )


# Task 3: the worked example of the README, with rubbish on the padding

MASK = tensor([[True, True, True, False], [True, False, False, False]])
LOG_RATIO = tensor([[0.1, -0.3, 0.0, 9.0], [0.2, 7.0, -7.0, 5.0]])
REFERENCE = tensor([[-1.0, -2.0, -0.5, -3.0], [-1.5, -1.0, -2.0, -4.0]])
SCORES = tensor([1.5, -2.0])


def pay(beta: float = 0.1) -> Tensor:
    """The example, paid by your function."""
    return rlhf.kl_penalized_rewards(SCORES, REFERENCE + LOG_RATIO, reference_logprobs=REFERENCE, mask=MASK, beta=beta)


def test_task3_the_worked_example() -> None:
    """Score 1.5, beta .1, log-ratios .1, -.3, 0: rewards -.01, .03, 1.5. The short row: -2 - .02 = -2.02, at once."""
    check(3, "the rewards", got=pay(), right=[[-0.01, 0.03, 1.5, 0], [-2.02, 0, 0, 0]], mistakes={
        "the sign of the fine is flipped: straying is rewarded here. It is -beta (log policy - log reference).":
            [[0.01, -0.03, 1.5, 0], [-1.98, 0, 0, 0]],
        "the score stands on the padding, where no token was written; the last real token is at mask.sum(1) - 1.":
            [[-0.01, 0.03, 0, 1.5], [-0.02, 0, 0, -2.0]],
        "the score stands on the padding, and padding is fined too.":
            [[-0.01, 0.03, 0, 0.6], [-0.02, -0.7, 0.7, -2.5]],
        "padding is fined too; a fine is for real tokens only.":
            [[-0.01, 0.03, 1.5, -0.9], [-2.02, -0.7, 0.7, -0.5]],
        "every token gets the score; only the last real one does.":
            [[1.49, 1.53, 1.5, 0], [-2.02, 0, 0, 0]],
        "the score stands on the first token; a response is judged when it is complete.":
            [[1.49, 0.03, 0, 0], [-2.02, 0, 0, 0]],
        "beta is missing.": [[-0.1, 0.3, 1.5, 0], [-2.2, 0, 0, 0]],
        "this is the score without the fine.": [[0, 0, 1.5, 0], [-2.0, 0, 0, 0]],
    })  # fmt: skip


def test_task3_without_a_leash() -> None:
    """At beta 0 the score alone is paid."""
    check(3, "the rewards at beta 0", got=pay(0.0), right=[[0, 0, 1.5, 0], [-2.0, 0, 0, 0]])


def test_task3_rewards_are_constants() -> None:
    """The policy is moved by PPO's loss alone, and the reference by nothing."""
    for name in ("reference_logprobs", "logprobs", "scores"):
        given = {"scores": SCORES, "logprobs": REFERENCE + LOG_RATIO, "reference_logprobs": REFERENCE}
        given[name] = given[name].clone().requires_grad_(True)
        got = rlhf.kl_penalized_rewards(
            given["scores"], given["logprobs"], reference_logprobs=given["reference_logprobs"], mask=MASK, beta=0.1
        )
        what = "the reference is not detached" if name == "reference_logprobs" else f"{name} are not detached"
        assert not got.requires_grad, (
            f"Task 3: {what}: a gradient could flow through the rewards into them; they are constants."
        )


# Task 4

REWARDS = tensor([[-0.01, 0.03, 1.5, 0.0], [0.0, 0.0, -0.5, 1.0]])
VALUES = tensor([[1.05, 1.21, 1.40, 9.0], [0.2, 0.1, 0.0, 0.4]])
REAL = tensor([[True, True, True, False], [True, True, True, True]])


def test_task4_the_worked_example() -> None:
    """At lambda 1 an advantage is what was still earned less the value. Second row: .5, .5, .5, 1.0 were earned."""
    advantages, returns = rlhf.gae_per_token(REWARDS, VALUES, mask=REAL, gae_lambda=1.0)
    past = "it bootstraps past the end: the critic's value on padding (9.0) was believed. After the last real token the value is 0."
    check(4, "the advantages", got=advantages, right=[[0.47, 0.32, 0.10, 0], [0.3, 0.4, 0.5, 0.6]], mistakes={
        past: [[9.47, 9.32, 9.10, 0], [0.3, 0.4, 0.5, 0.6]],
        "these are the returns; an advantage is what the critic had not expected.":
            [[1.52, 1.53, 1.5, 0], [0.5, 0.5, 0.5, 1.0]],
        "padding has an advantage; it is nobody's doing.": [[0.47, 0.32, 0.10, -9.0], [0.3, 0.4, 0.5, 0.6]],
        "padding enters from behind: its value was taken off as if a token stood there.":
            [[0.47, 0.32, 0.10, 0], [0.3, 0.4, 0.5, 0.6 - 0.4]],
        "the sign is flipped.": [[-0.47, -0.32, -0.10, 0], [-0.3, -0.4, -0.5, -0.6]],
        "one step only: what comes after the next token does not reach back; the recursion is missing.":
            [[0.15, 0.22, 0.10, 0], [-0.1, -0.1, -0.1, 0.6]],
    })  # fmt: skip
    check(4, "the returns", got=returns, right=[[1.52, 1.53, 1.50, 0], [0.5, 0.5, 0.5, 1.0]], mistakes={
        past: [[10.52, 10.53, 10.50, 0], [0.5, 0.5, 0.5, 1.0]],
        "padding has a return: the critic's own value there. Put 0.": [[1.52, 1.53, 1.50, 9.0], [0.5, 0.5, 0.5, 1.0]],
    })  # fmt: skip


def test_task4_lambda_and_gamma() -> None:
    """The deltas are .15, .22, .10; at lambda 1/2: .10, .22 + .05 = .27, .15 + .135 = .285. And at gamma 1/2 likewise."""
    row = slice(0, 1)
    advantages, returns = rlhf.gae_per_token(REWARDS[row], VALUES[row], mask=REAL[row], gae_lambda=0.5)
    check(4, "the advantages at lambda 1/2", got=advantages, right=[[0.285, 0.27, 0.10, 0]],
          mistakes={"gae_lambda is not used.": [[0.47, 0.32, 0.10, 0]],
                    "past the end: the value on padding was believed.": [[2.535, 4.77, 9.10, 0]]})  # fmt: skip
    check(4, "the returns at lambda 1/2", got=returns, right=[[1.335, 1.48, 1.5, 0]],
          mistakes={"returns are advantages + values at every lambda, or the critic chases its own noise.":
                    [[1.52, 1.53, 1.5, 0]]})  # fmt: skip
    advantages, _ = rlhf.gae_per_token(REWARDS[row], VALUES[row], mask=REAL[row], gamma=0.5, gae_lambda=1.0)
    check(4, "the advantages at gamma 1/2", got=advantages, right=[[-0.67, -0.43, 0.10, 0]],
          mistakes={"gamma is not used.": [[0.47, 0.32, 0.10, 0]],
                    "gamma discounts the next value, and the next advantage too.": [[-0.835, -0.38, 0.10, 0]]})  # fmt: skip


def test_task4_what_stands_on_padding_does_not_matter() -> None:
    """Other rubbish there, the same answer."""
    kept = rlhf.gae_per_token(REWARDS, VALUES, mask=REAL)
    other = rlhf.gae_per_token(REWARDS.where(REAL, 3.0), VALUES.where(REAL, -70.0), mask=REAL)
    for one, two in zip(kept, other, strict=True):
        assert torch.allclose(one, two, atol=1e-5), "Task 4: padding leaks in: other rubbish on it changed the answer."


# Task 5: five real tokens; ratios 1.1, 1.5, .4, 1.5 and .4, advantages 1, 2, -2, -3 and 1; rubbish on the padding

TOKENS = tensor([[True, True, True, True], [True, False, False, False]])
RATIO = tensor([[1.1, 1.5, 0.5, 1.5], [0.4, 2.0, 3.0, 0.2]])
ADVANTAGES = tensor([[1.0, 2.0, -2.0, -3.0], [1.0, 4.0, -4.0, 2.0]])
NOW = tensor([[1.0, 2.0, 0.0, 0.0], [1.0, 50.0, -50.0, 9.0]])
EARNED = tensor([[2.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0]])


def losses(logprobs: Tensor | None = None, values: Tensor = NOW) -> tuple[Tensor, Tensor, Tensor]:
    """The example, by your function."""
    old = torch.full_like(RATIO, -2.0)
    found = rlhf.ppo_rlhf_loss(
        old + RATIO.log() if logprobs is None else logprobs, values, old_logprobs=old, advantages=ADVANTAGES,
        returns=EARNED, mask=TOKENS, clip_range=0.2,
    )  # fmt: skip
    assert len(found) == 3, (
        f"Task 5: three tensors are asked for, policy loss, value loss and clip fraction, not {len(found)}."
    )
    return found


def test_task5_policy_loss_by_hand() -> None:
    """-1.1, -2 x 1.2 (held), 2 x .8 (held), 3 x 1.5 (not held: it has to come back), -.4: the mean is 2.2 / 5 = .44."""
    pads = "the mean is over pads too: divide by mask.sum(), the number of real tokens, not by batch x time."
    check(5, "the policy loss", got=losses()[0], right=0.44, mistakes={
        "the sign is flipped: minimising this makes good tokens rarer.": -0.44,
        "min for max: of two losses take the larger, or the clip holds nothing. (In the paper it is a min, of gains.)": -0.06,
        "the sign is flipped: with gains instead of losses, the worse of two is the min.": 0.06,
        "a one-sided clip: the ratio has to be held from above (1 + clip_range) and from below (1 - clip_range).": 0.32,
        "there is no clip.": 0.20,
        "only the clipped branch is there: a token that went the wrong way could never come back. Take the larger loss.": 0.18,
        pads: 0.275,
        "padding is averaged in: rubbish on padding enters the mean.": 1.125,
        "each row is averaged by itself first, so that tokens of short responses weigh more.": 0.125,
        "a ratio of sums: the log-ratios of a row were added up first. Each token has a ratio of its own.": 0.4375,
        "a ratio of sums, and a mean advantage for each row: each token has its own ratio and advantage.": 0.1094,
        "a ratio of sums: log-probs were added up and divided. Each token's ratio is exp(logprobs - old_logprobs).": 0.1493,
        "a ratio of sums: probabilities were added up and divided. Each token's ratio is exp(logprobs - old_logprobs).": 0.38,
        "the ratio lacks its exp: logprobs - old_logprobs is its logarithm.": 0.8020,
    })  # fmt: skip


def test_task5_value_loss_by_hand() -> None:
    """Errors 1, 0, 0, 1, 2: (1 + 0 + 0 + 1 + 4) / 2 / 5 = .6."""
    pads = "the mean of the value loss is over pads too: divide by the number of real tokens."
    check(5, "the value loss", got=losses()[1], right=0.6, mistakes={
        "the value loss lacks its 1/2.": 1.2, pads: 0.375, "padding is averaged in, in the value loss.": 317.9375,
    })  # fmt: skip


def test_task5_clip_fraction_by_hand() -> None:
    """Tokens 2 and 3 of the first row: 2 / 5. Tokens 4 and 5 are out of range too, but on the way back in."""
    check(5, "the clip fraction", got=losses()[2], right=0.4, mistakes={
        "the clip fraction counts every ratio out of range; the clip holds only those that A pushes further out.": 0.8,
        "the mean of the clip fraction is over pads too.": 0.25, "padding is averaged in, in the clip fraction.": 0.375,
        "the clip fraction sees one side only; it is above the range for A > 0 and below it for A < 0.": 0.2,
    })  # fmt: skip


def test_task5_gradients_by_hand() -> None:
    """-A r / 5 where the token is free (-.22, .9, -.08), and exactly 0 where the clip holds it and on padding."""
    logprobs = (RATIO.log() - 2.0).requires_grad_(True)
    values = NOW.clone().requires_grad_(True)
    policy_loss, value_loss, _ = losses(logprobs, values)
    assert policy_loss.requires_grad, "Task 5: no gradient flows from the policy loss to logprobs."
    assert value_loss.requires_grad, "Task 5: no gradient flows from the value loss to values."
    (policy_loss + value_loss).backward()
    grad, value_grad = logprobs.grad, values.grad
    assert grad is not None, "Task 5: the policy loss does not depend on logprobs."
    assert value_grad is not None, "Task 5: the value loss does not depend on values."
    held = [float(grad[0, 1]), float(grad[0, 2])]
    assert held == [0, 0], (
        f"Task 5: tokens 2 and 3 are held by the clip; their gradient has to be exactly 0, not {held}."
    )
    pads = grad[~TOKENS].abs().max() + value_grad[~TOKENS].abs().max()
    assert float(pads) == 0, "Task 5: padding is averaged in: it has a gradient, and it has to be exactly 0."
    check(5, "the gradient of the policy loss", got=grad, right=[[-0.22, 0, 0, 0.9], [-0.08, 0, 0, 0]])
    check(5, "the gradient of the value loss", got=value_grad, right=[[-0.2, 0, 0, -0.2], [-0.4, 0, 0, 0]])


def test_task5_twelve_iterations_of_ppo_raise_the_reward() -> None:
    """All five functions at work: without a leash, the reward model's score goes up."""
    after(
        test_task1_three_losses_by_hand, test_task2_every_pair_winner_first, test_task3_the_worked_example,
        test_task4_the_worked_example, test_task5_policy_loss_by_hand, test_task5_value_loss_by_hand,
    )  # fmt: skip
    reference = load_sft().requires_grad_(False)
    reward = DigitReward(torch.Generator().manual_seed(0)).requires_grad_(False)
    reward.weights.copy_(tensor([0.4, -0.5] * 5))  # what yours learn, about
    config = replace(Config().ppo, iterations=12, warmup=0)
    rows = [*rlhf.train_ppo(
        deepcopy(reference).requires_grad_(True), reward, reference=reference, beta=0.0, config=config,
        generator=torch.Generator().manual_seed(0),
    )]  # fmt: skip
    first, last = (sum(row["proxy"] for row in part) / 3 for part in (rows[:3], rows[-3:]))
    assert last > first + 0.2, (
        f"Task 5: in twelve iterations the score went from {first:+.2f} to {last:+.2f}; it should rise by .2."
    )
