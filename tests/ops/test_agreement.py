"""Agreement: published worked examples, closed forms by hand, and invariants."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.ops.agreement import (
    cohen_kappa,
    krippendorff_alpha,
    squared_distance,
)

modest = settings(max_examples=50, deadline=None, derandomize=True)

FOUR_OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Krippendorff 2011, part C: twelve units, four observers, values missing."""


def table(rows: tuple[str, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Observers' lines as items and values, dots left out; letters count from a = 1."""
    found = [
        (item, float(word) if word.isdigit() else float(ord(word) - 96))
        for row in rows for item, word in enumerate(row.split()) if word != "."
    ]  # fmt: skip
    return torch.tensor([item for item, _ in found]), torch.tensor([value for _, value in found])


# Published examples


def test_two_observers_binary() -> None:
    """Krippendorff 2011, A: coincidences 0-0: 10, 0-1: 4, 1-1: 2, n 20: 1 - 19 * 4 / (14 * 6) = .095."""
    found = krippendorff_alpha(*table(("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")), level="nominal")
    assert found == pytest.approx(1 - 19 * 4 / (14 * 6)) == pytest.approx(0.095, abs=5e-4)


def test_two_observers_five_names() -> None:
    """Krippendorff 2011, B: alpha .692.

    By hand: 3 of 12 units differ (a-b, d-b, a-d), so 6 of 24 values are off the diagonal. Counts: a 4, b 6, c 6, d 6,
    e 2, whose agreeing pairs number 4*3 + 6*5*3 + 2*1 = 104 of 24*23 = 552: 1 - 23 * 6 / (552 - 104).
    """
    found = krippendorff_alpha(*table(("a a b b d c c c e d d a", "b a b b b c c c e d d d")), level="nominal")
    assert found == pytest.approx(1 - 23 * 6 / (552 - 104)) == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize(("level", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_four_observers_with_missing_values(level, alpha: float) -> None:
    """Krippendorff 2011, C and its other metrics: .743, .815, .849.

    Nominal by hand: units 1 to 11 hold 40 values (unit 12 has one and is left out); their counts are 9, 13, 10, 5, 3
    with sum n(n - 1) = 72 + 156 + 90 + 20 + 6 = 344 of 1,560. Off the diagonal: unit 2 (three 2, one 3): 2 * 3 * 1 / 3
    = 2; unit 6 (1, 2, 3, 4): 12 / 3 = 4; unit 8 (1 1 2 1): 2. So 1 - 39 * 8 / (1560 - 344) = .743.
    """
    found = krippendorff_alpha(*table(FOUR_OBSERVERS), level=level)
    assert found == pytest.approx(alpha, abs=5e-4)
    if level == "nominal":
        assert found == pytest.approx(1 - 39 * 8 / (1560 - 344))


@pytest.mark.parametrize(
    ("both", "only_first", "only_second", "neither", "kappa"),
    [(20, 5, 10, 15, 0.4), (45, 15, 25, 15, 0.130435), (25, 35, 5, 35, 0.259259)],
)
def test_cohens_kappa_of_two_by_two_tables(both, only_first, only_second, neither, kappa: float) -> None:
    """Textbook tables. By hand for the first: agreed 35 / 50 = .7; chance .5 * .6 + .5 * .4 = .5; .2 / .5 = .4.

    Second: (.60 - .54) / .46; third: agreed .60, chance .6 * .3 + .4 * .7 = .46: .14 / .54.
    """
    first = torch.tensor([1.0] * (both + only_first) + [0.0] * (only_second + neither))
    second = torch.tensor([1.0] * both + [0.0] * only_first + [1.0] * only_second + [0.0] * neither)
    assert cohen_kappa(first, second) == pytest.approx(kappa, abs=1e-6)


# Closed forms


def test_ordinal_distances_count_the_values_between() -> None:
    """Counts 2, 4, 6: from 1 to 2: 2/2 + 4/2 = 3, squared 9; from 1 to 3: 1 + 4 + 3 = 8, squared 64; 2 to 3: 25."""
    found = squared_distance(torch.tensor([1.0, 2, 3]), torch.tensor([2.0, 4, 6]), level="ordinal")
    assert found.tolist() == [[0, 9, 64], [9, 0, 25], [64, 25, 0]]


def test_where_nothing_varies_agreement_is_no_number() -> None:
    """One value throughout leaves no chance to disagree; nor do single labels, nor none at all."""
    same, items = torch.ones(4), torch.tensor([0, 0, 1, 1])
    assert math.isnan(krippendorff_alpha(items, same, level="nominal"))
    assert math.isnan(krippendorff_alpha(torch.arange(4), torch.arange(4.0), level="ordinal"))
    assert math.isnan(krippendorff_alpha(items[:0], same[:0], level="nominal"))
    assert math.isnan(cohen_kappa(same, same))
    assert math.isnan(cohen_kappa(same[:0], same[:0]))


# Invariants


@modest
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=4, max_size=40))
def test_alpha_knows_no_order_of_labels_and_nominal_alpha_no_names(labels: list[tuple[int, int]]) -> None:
    """Shuffled labels give the same number; so does another name for each value; full agreement gives 1."""
    items, values = torch.tensor([i for i, _ in labels]), torch.tensor([float(v) for _, v in labels])
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    for level in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(items, values, level=level)
        assert found == pytest.approx(krippendorff_alpha(items[order], values[order], level=level), nan_ok=True)
    renamed = torch.tensor([7.0, -1, 3, 100])[values.long()]
    found = krippendorff_alpha(items, values, level="nominal")
    assert found == pytest.approx(krippendorff_alpha(items, renamed, level="nominal"), nan_ok=True)
    agreed = krippendorff_alpha(items, items.double(), level="ordinal")
    assert math.isnan(agreed) or agreed == pytest.approx(1)
