"""The exact leash: four functions, which are yours to write, on a world so small that nothing is trained or sampled.

pytest -k task1      (then task2 ... task4) says what is wrong with a function
python run.py        the tables and the picture with your code, once all four pass

README.md says what the world is and in which order to go. A policy is a list of probabilities, one an answer.
"""

import os

import torch
from torch import Tensor, tensor

# ------------------------------------------------------------------------------------------------ yours to write


def tilted(reference: Tensor, reward: Tensor, *, beta: float) -> Tensor:
    """Task 1. The policy that maximises E[reward] - beta KL: in proportion to reference x exp(reward / beta).

    Args:
        reference: [answers] probabilities.
        reward: [answers] what the optimiser sees.
        beta: reward units per nat, positive.

    Returns:
        [answers] probabilities, which sum to 1.

    Hint: exp(1.6 / 0.01) is infinite in float32; take the largest reward off first (it cancels), or use softmax.
    """
    raise NotImplementedError("Task 1: tilted in leash.py is yours to write; its docstring has the formula.")


def log_z(reference: Tensor, reward: Tensor, *, beta: float) -> Tensor:
    """Task 2. The logarithm of what makes task 1 sum to 1: log sum_y reference(y) exp(reward(y) / beta), nats.

    beta log Z is what the best policy reaches: E[reward] - beta KL, exactly. A test holds you to that.

    Args:
        reference: [answers] probabilities.
        reward: [answers] what the optimiser sees.
        beta: reward units per nat, positive.

    Returns:
        [] nats.

    Hint: torch.logsumexp takes logarithms in and does not overflow.
    """
    raise NotImplementedError("Task 2: log_z in leash.py is yours to write; its docstring has the formula.")


def kl(policy: Tensor, reference: Tensor) -> Tensor:
    """Task 3. How far a policy is from the reference: KL(policy || reference) = sum_y policy(y) log(policy / reference).

    Args:
        policy: [answers] probabilities; some may be 0, and such an answer adds nothing.
        reference: [answers] probabilities, all positive.

    Returns:
        [] nats.

    Hint: 0 log 0 is NaN in floating point and 0 here; torch.special.xlogy knows.
    """
    raise NotImplementedError("Task 3: kl in leash.py is yours to write; its docstring has the formula.")


def best_of_n(reference: Tensor, reward: Tensor, *, n: int) -> Tensor:
    """Task 4. Draw n answers from the reference and keep the one with the highest reward: how likely is each to be kept?

    All n rewards are at most r with probability F(r)^n, where F(r) is the reference's probability of a reward of at
    most r. So an answer is kept with probability F(its reward)^n - F(just below it)^n.

    Args:
        reference: [answers] probabilities.
        reward: [answers] all different.
        n: answers drawn, 1 or more.

    Returns:
        [answers] probabilities, in the order in which the answers were given.

    Hint: reward[:, None] >= reward compares every answer with every other one.
    """
    raise NotImplementedError("Task 4: best_of_n in leash.py is yours to write; its docstring has the formula.")


if os.environ.get("KILLICK_SOLUTIONS") == "1":  # what a teacher sets to see that everything else works
    from killick.lab.solutions import best_of_n, kl, log_z, tilted

# ------------------------------------------------------------------------------------------------ the two worlds

TWO = {"reference": tensor([0.8, 0.2]), "reward": tensor([0.0, 1.0])}
"""Two answers; the rarer one is better."""
ANSWERS = ("on brand, clean", "on brand, plain", "repeats a word", "wrong material", "repair promise three times")
FIVE = {
    "reference": tensor([0.30, 0.35, 0.15, 0.15, 0.05]),
    "reward": tensor([1.0, 0.7, -0.5, -0.8, 1.6]),
    "gold": tensor([1.0, 0.7, -0.5, -0.8, -1.0]),
}
"""Five answers to a question about a product. The reward model likes the last one best; people hate it."""


def told(policy: Tensor) -> dict[str, float]:
    """What a policy over the five answers amounts to."""
    return {
        "reward": float(policy @ FIVE["reward"]), "gold": float(policy @ FIVE["gold"]),
        "kl": float(kl(policy, FIVE["reference"])), "gaming": float(policy[4]),
    }  # fmt: skip


def tilts(betas: Tensor) -> list[dict[str, float]]:
    """What each beta amounts to."""
    return [told(tilted(FIVE["reference"], FIVE["reward"], beta=float(beta))) | {"beta": float(beta)} for beta in betas]


def bests(numbers: tuple[int, ...]) -> list[dict[str, float]]:
    """What each n amounts to."""
    return [told(best_of_n(FIVE["reference"], FIVE["reward"], n=n)) | {"n": n} for n in numbers]


EVERY_BETA = torch.logspace(-1.3, 1.5, 2000, dtype=torch.float64)
"""From .05 to 32, finely enough to find the best one to three digits."""
