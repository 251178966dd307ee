"""What a label would tell: closed forms, and that a batch is D-optimal where every batch can be tried."""

from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from killick.ops.information import disagreement, most_informative, precision


def test_members_disagree_by_the_variance_of_their_probabilities() -> None:
    """Margins 0 and log 3: probabilities 1/2 and 3/4, variance (1/8)^2; equal margins none."""
    margins = torch.tensor([[0.0, 1.0], [3.0, 1.0]])
    margins[1, 0] = torch.tensor(3.0).log()
    assert_close(disagreement(margins), torch.tensor([1 / 64, 0.0]))


def test_precision_sums_what_each_label_tells() -> None:
    """At margin 0 a label tells x x^T / 4; the prior adds to the diagonal."""
    differences = torch.tensor([[1.0, 2.0], [0.0, 2.0]])
    found = precision(differences, torch.zeros(2), prior=0.5)
    assert_close(found, torch.tensor([[0.25 + 0.5, 0.5], [0.5, 2.0 + 0.5]]))


def test_the_first_pick_is_the_largest_gain_and_the_second_looks_elsewhere() -> None:
    """Two copies of (2, 0) and one of (0, 1.5): after the first copy its twin tells less than the other direction.

    Gains at H = I, margin 0: 1, 1, .5625. After (2, 0): H = diag(2, 1), gains .5 and .5625.
    """
    differences = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 1.5]])
    assert most_informative(differences, torch.zeros(3), known=torch.eye(2), count=3).tolist() == [0, 2, 1]


def test_a_sure_pair_tells_nothing() -> None:
    """At margin 20 the outcome is known."""
    differences, margins = torch.tensor([[5.0], [1.0]]), torch.tensor([20.0, 0.0])
    assert most_informative(differences, margins, known=torch.eye(1), count=1).tolist() == [1]


@pytest.mark.parametrize("seed", range(5))
def test_the_greedy_batch_is_close_to_the_best_of_all_batches(seed: int) -> None:
    """Of all 220 batches of three from twelve: the log-determinant gained is at least 1 - 1/e of the best, a bound of
    submodular functions, and each step is the exact best next one.
    """
    draws = torch.Generator().manual_seed(seed)
    differences = torch.randn(12, 4, generator=draws, dtype=torch.double)
    margins, known = torch.randn(12, generator=draws, dtype=torch.double), torch.eye(4, dtype=torch.double)
    chance = torch.sigmoid(margins)
    scaled = differences * (chance * (1 - chance)).sqrt()[:, None]

    def gained(rows: list[int]) -> float:
        return float(torch.logdet(known + scaled[rows].T @ scaled[rows]))

    picked = most_informative(differences, margins, known=known, count=3).tolist()
    assert gained(picked) >= (1 - 1 / torch.e) * max(gained(list(rows)) for rows in combinations(range(12), 3))
    for place in range(3):
        nexts = {row: gained([*picked[:place], row]) for row in range(12) if row not in picked[:place]}
        assert picked[place] == max(nexts, key=nexts.__getitem__)
