"""Noise: kappas that are known come out, their intervals hold them as often as they say, and the unknown is None."""

import math

import pytest
import torch

from killick.ops.noise import ceiling_of
from killick.preferences.noise import SIGNAL, batches, blocks, choices, correlation, kappa_of, noise, told
from killick.preferences.verdicts import Verdict

KAPPAS = {"ada": 0.7, "bob": 1.5, "cy": 2.5, "di": 4.0}


def judged(
    items: int, seed: int, *, kappas: dict[str, float] = KAPPAS, k: int = 2, each: int = 0, tied: float = 0.0
) -> list[Verdict]:
    """Rankings of k responses with strengths from N(0, 1) by labelers of known noise; `each` annotators an item.

    In a share `tied` of the items the second response is as good as the first, and everybody ties the two.
    """
    draws = torch.Generator().manual_seed(seed)
    strengths = torch.randn(items, k, generator=draws, dtype=torch.double)
    same = torch.rand(items, generator=torch.Generator().manual_seed(seed)) < tied
    strengths[same, 1] = strengths[same, 0]
    table, names = [], list(kappas)
    for item, own in enumerate(strengths):
        for who in torch.randperm(len(names), generator=draws)[: each or len(names)].tolist():
            uniform = torch.rand(k, generator=draws, dtype=torch.double)
            uniform[1] = uniform[0] if same[item] else uniform[1]
            opinion = kappas[names[who]] * own - (-uniform.log()).log()
            _, place = (-opinion).unique(return_inverse=True)
            table.append(Verdict(names[who], str(item), tuple(place.tolist())))
    return table


def tournament(labels: int, seed: int, *, kappas: dict[str, float], responses: int = 8) -> list[Verdict]:
    """Eight responses, and so many pairs of them judged by each annotator."""
    draws = torch.Generator().manual_seed(seed)
    strengths = torch.randn(responses, generator=draws, dtype=torch.double)
    table = []
    for name, kappa in kappas.items():
        for number in range(labels):
            i, j = torch.randperm(responses, generator=draws)[:2].tolist()
            wins = bool(torch.rand(1, generator=draws) < torch.sigmoid(kappa * (strengths[i] - strengths[j])))
            table.append(Verdict(name, f"{name} {number}", (0, 1) if wins else (1, 0), responses=(f"r{i}", f"r{j}")))
    return table


def fewest(trials: int, chance: float, *, error: float = 1e-3) -> int:
    """The least number of hits that is not stranger than `error` at this chance."""
    total = 0.0
    for hits in range(trials + 1):
        total += math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)
        if total > error:
            return hits
    raise AssertionError


# Ties and rankings as choices


def test_a_ranking_is_read_as_the_choices_that_lead_to_it() -> None:
    """A winner is one choice; a tie none; three in order are two choices."""
    assert choices(Verdict("ada", "1", (0, 1))) == [(0, (0, 1))]
    assert choices(Verdict("ada", "1", (0, 0))) == []
    assert choices(Verdict("ada", "1", (1, 2, 0))) == [(2, (2, 0, 1)), (0, (0, 1))]


def test_one_of_those_that_tie_within_a_ranking_stands_for_all_against_the_worse() -> None:
    """[[a], [b, c], [d]]: a of four; then b of b and d. Ties at the end are no choice: [[c], [a, b]] is c of three."""
    assert choices(Verdict("ada", "1", (0, 1, 1, 2))) == [(0, (0, 1, 2, 3)), (1, (1, 3))]
    assert choices(Verdict("ada", "1", (1, 1, 0))) == [(2, (2, 0, 1))]


def test_responses_that_meet_stand_in_one_block() -> None:
    """x-y, z-w and then y-z join; u-v stay alone. Blocks of one size are one batch."""
    pairs = [("x", "y"), ("z", "w"), ("u", "v"), ("y", "z")]
    table = [Verdict("ada", str(n), (0, 1), responses=names) for n, names in enumerate(pairs)]
    assert sorted(sorted(int(v.item) for v in block) for block in blocks(table)) == [[0, 1, 3], [2]]
    small, large = batches(table, {"ada": 0})
    assert (small.blocks, small.among.shape, large.blocks, large.among.shape) == (1, (1, 2), 1, (3, 4))


def test_the_same_choice_made_twice_is_one_row_of_weight_two() -> None:
    """By one annotator, over two items that show the same two responses."""
    (batch,) = batches([Verdict("ada", n, (0, 1), responses=("x", "y")) for n in "12"], {"ada": 0})
    assert (batch.rows.tolist(), batch.weight.tolist()) == ([[0, 0, 0]], [2.0])


# What labels do not tell


def test_without_overlap_nothing_is_known() -> None:
    """One annotator; two who never meet; no label at all."""
    alone = judged(50, 1, kappas={"ada": 2.0})
    assert noise(alone) == ({"ada": None}, None)
    apart = alone + [Verdict("bob", f"other {n}", (0, 1)) for n in range(50)]
    assert noise(apart) == ({"ada": None, "bob": None}, None)
    assert noise([]) == ({}, None)


def test_ties_tell_nothing_of_noise() -> None:
    """One annotator who ties half of the pairs, or two of three; one who ties everything among two who never do."""
    assert noise(judged(80, 1, kappas={"ada": 2.0}, tied=0.5)) == ({"ada": None}, None)
    assert noise(judged(80, 1, kappas={"ada": 2.0}, k=3, tied=1.0)) == ({"ada": None}, None)
    two = judged(60, 2, kappas={"ada": 2.0, "bob": 2.0})
    with_ties = [*two, *(Verdict("cy", str(n), (0, 0)) for n in range(60))]
    assert noise(with_ties)[0] == {"ada": None, "bob": None, "cy": None}
    assert noise(with_ties)[1] == noise(two)[1]


def test_annotators_who_agree_throughout_and_tie_half_have_a_ceiling_near_one() -> None:
    """Nobody errs: two and three who say the same of 80 pairs, 40 of them ties."""
    for names in (("ada", "bob"), ("ada", "bob", "cy")):
        place = [(0, 0), (0, 1), (0, 0), (1, 0)]
        _, pooled = noise([Verdict(name, str(n), place[n % 4]) for n in range(80) for name in names])
        assert pooled is not None
        assert pooled.ceiling_interval[0] > 0.9
        assert pooled.ceiling > 0.97


def test_two_annotators_tell_the_noise_of_both_together_only() -> None:
    """On single pairs the agreement of two fixes a product: neither is known alone, as one they are."""
    each, pooled = noise(judged(200, 2, kappas={"ada": 2.0, "bob": 2.0}))
    assert each == {"ada": None, "bob": None}
    assert pooled is not None
    assert pooled.interval[0] < 2.0 < pooled.interval[1]


def test_annotators_who_never_err_get_a_finite_kappa() -> None:
    """Sixty pairs, three who always agree: separable labels, for which the plain likelihood has no maximum."""
    each, _ = noise([Verdict(name, str(n), (n % 2, 1 - n % 2)) for n in range(60) for name in ("ada", "bob", "cy")])
    for found in each.values():
        assert found is None or (math.isfinite(found.kappa) and found.ceiling > 0.9)


# Recovery


def test_a_coin_thrower_is_found_out() -> None:
    """Kappa 0 among four who know: its interval holds 0 and stays below theirs; so does a contrary one's below 0."""
    kappas = {"ada": 2.0, "bob": 2.0, "cy": 2.0, "coin": 0.0, "contrary": -2.0}
    each, _ = noise(judged(200, 3, kappas=kappas))
    coin, contrary, ada = each["coin"], each["contrary"], each["ada"]
    assert coin is not None
    assert contrary is not None
    assert ada is not None
    assert coin.interval[0] < 0 < coin.interval[1] < 0.6
    assert contrary.interval[1] < 0
    assert coin.ceiling < 0.6 < ada.ceiling


def test_intervals_are_symmetric_where_little_is_told_of_an_annotator_and_end_nowhere_where_none_errs() -> None:
    """On the correlation's scale: kappa 0 with deviation .2 gives +-r of 1.96 * .2 * SIGNAL; 5 with 3 has no end."""
    coin, sure = told(0.0, 0.2), told(5.0, 3.0)
    assert coin is not None
    assert sure is not None
    r = 1.96 * 0.2 * SIGNAL
    assert coin.interval == pytest.approx((-r / SIGNAL / (1 - r * r) ** 0.5, r / SIGNAL / (1 - r * r) ** 0.5))
    assert coin.ceiling_interval[0] == 0.5
    assert sure.interval[1] == math.inf
    assert sure.ceiling_interval[1] == pytest.approx(1)
    assert told(1.8, 4.0) is None


def test_a_correlation_and_its_kappa_are_inverse() -> None:
    """The share of variance that is no noise: kappa 1 gives sqrt(2 / (2 + pi^2 / 3)); the slope is its derivative."""
    assert correlation(1.0)[0] == pytest.approx(math.sqrt(2 / (2 + math.pi**2 / 3)))
    for kappa in (-3.0, 0.0, 0.4, 7.0):
        middle, slope = correlation(kappa)
        assert kappa_of(middle) == pytest.approx(kappa)
        assert slope == pytest.approx((correlation(kappa + 1e-5)[0] - correlation(kappa - 1e-5)[0]) / 2e-5, rel=1e-6)


def test_the_ceiling_comes_from_the_kappa() -> None:
    """And its interval from the ends of kappa's."""
    each, _ = noise(judged(150, 4))
    for found in each.values():
        assert found is not None
        points = torch.tensor([found.kappa, *found.interval], dtype=torch.double)
        assert ceiling_of(points).tolist() == pytest.approx([found.ceiling, *found.ceiling_interval])


def covered(make, kappas: dict[str, float], *, datasets: int) -> dict[str, int]:
    """In how many datasets each annotator's interval holds the truth."""
    hits = dict.fromkeys(kappas, 0)
    for seed in range(datasets):
        for name, found in noise(make(seed))[0].items():
            hits[name] += found is not None and found.interval[0] < kappas[name] < found.interval[1]
    return hits


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """12 datasets of 100 pairs and four annotators: no fewer hits than 95 % allow (1 in 1,000). More: under `slow`."""
    hits = covered(lambda seed: judged(100, seed), KAPPAS, datasets=12)
    assert min(hits.values()) >= fewest(12, 0.95) == 8


def test_intervals_hold_the_truth_where_equal_responses_are_tied() -> None:
    """8 datasets of 120 pairs of which half are ties: kappas come from the others as if the ties were not there."""
    hits = covered(lambda seed: judged(120, seed, tied=0.5), KAPPAS, datasets=8)
    assert min(hits.values()) >= fewest(8, 0.95) == 5


@pytest.mark.slow
@pytest.mark.parametrize("design", ["pairs", "overlap", "ties", "rankings", "tournament"])
def test_intervals_hold_the_truth_as_often_as_they_say_in_full(design: str) -> None:
    """100 datasets a design, each annotator by itself (1 in 1,000): pairs that all four read, or three of four;
    pairs half of which tie; rankings of three; a tournament of 16.
    """
    three = {name: KAPPAS[name] for name in ("ada", "bob", "cy")}
    make, kappas = {
        "pairs": (lambda seed: judged(200, seed), KAPPAS),
        "overlap": (lambda seed: judged(300, seed, each=3), KAPPAS),
        "ties": (lambda seed: judged(300, seed, tied=0.5), KAPPAS),
        "rankings": (lambda seed: judged(100, seed, kappas=three, k=3), three),
        "tournament": (lambda seed: tournament(100, seed, kappas=three, responses=16), three),
    }[design]
    hits = covered(make, kappas, datasets=100)
    assert min(hits.values()) >= fewest(100, 0.95) == 87, hits


@pytest.mark.slow
def test_the_noise_of_all_as_one_is_recovered_from_two_labels_an_item() -> None:
    """100 datasets of 300 pairs read by two of kappa 2."""
    hits = 0
    for seed in range(100):
        _, pooled = noise(judged(300, seed, kappas={"ada": 2.0, "bob": 2.0}))
        hits += pooled is not None and pooled.interval[0] < 2.0 < pooled.interval[1]
    assert hits >= fewest(100, 0.95)
