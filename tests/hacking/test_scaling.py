import math

import pytest
import torch
from scipy.optimize import curve_fit, minimize_scalar

from killick.hacking.scaling import Scaling, fit_scaling
from killick.types import Refusal

FORMS = {"rl": lambda d, alpha, b: d * (alpha - b * torch.log(d)), "best-of-n": lambda d, alpha, b: d * (alpha - b * d)}


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("form", FORMS)
def test_exact_points_give_back_their_coefficients(form):
    distance = torch.linspace(0.1, 6, 40, dtype=torch.float64)
    fitted = fit_scaling(distance, FORMS[form](distance, 0.9, 0.3), generator=draws(), form=form)
    assert (fitted.alpha, fitted.b, fitted.miss) == pytest.approx((0.9, 0.3, 0.0), abs=1e-9)
    for low, high in fitted.intervals():
        assert high - low < 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_scipy_finds_the_same_coefficients_in_noise(form):
    distance = torch.linspace(0.2, 5, 60, dtype=torch.float64)
    gold = FORMS[form](distance, 0.5, 0.4) + 0.2 * torch.randn(60, generator=draws(1), dtype=torch.float64)
    fitted = fit_scaling(distance, gold, generator=draws(), form=form)

    def curve(d, alpha, b):
        return FORMS[form](torch.as_tensor(d), alpha, b).numpy()

    expected, _ = curve_fit(curve, distance.numpy(), gold.numpy(), (1.0, 1.0))
    assert (fitted.alpha, fitted.b) == pytest.approx(tuple(expected), rel=1e-6)


@pytest.mark.parametrize(
    ("form", "alpha", "b", "peak"),
    [
        ("rl", 1.0, 0.5, (math.e, 0.5 * math.e)),  # exp(1 / .5 - 1) = e
        ("rl", 0.2, 0.2, (1.0, 0.2)),
        ("best-of-n", 1.2, 0.3, (2.0, 1.2)),  # 1.2 / .6; 1.44 / 1.2
        ("rl", 1.0, -0.5, None),
        ("best-of-n", -1.0, 0.5, None),
        ("rl", 1.0, 1e-4, None),  # past the largest float
    ],
)
def test_the_peak_is_its_closed_form(form, alpha, b, peak):
    found = Scaling(form, alpha, b, torch.zeros(1, 2, dtype=torch.float64), 0.0)
    if peak is None:
        assert found.peak is None
        return
    assert found.peak == pytest.approx(peak)
    search = minimize_scalar(lambda d: -float(found.gold(torch.tensor([d]))), bounds=(0.01, 20), method="bounded")
    assert found.peak == pytest.approx((search.x, -search.fun), rel=1e-4)


def test_gold_is_nothing_at_the_reference_and_the_band_holds_the_curve():
    distance = torch.linspace(0, 5, 50, dtype=torch.float64)
    noise = 0.1 * torch.randn(50, generator=draws(2), dtype=torch.float64)
    fitted = fit_scaling(distance, FORMS["rl"](distance.clamp(min=1e-9), 0.5, 0.4) + noise, generator=draws())
    low, high = fitted.band(distance)
    assert fitted.gold(distance)[0] == low[0] == high[0] == 0
    assert bool((low[1:] < fitted.gold(distance)[1:]).all())
    assert bool((fitted.gold(distance)[1:] < high[1:]).all())


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    distance, held = torch.linspace(0.2, 5, 40, dtype=torch.float64), 0
    for seed in range(200):
        gold = FORMS["rl"](distance, 0.5, 0.4) + 0.3 * torch.randn(40, generator=draws(seed), dtype=torch.float64)
        (low, high), _ = fit_scaling(distance, gold, generator=draws(seed), draws=200).intervals()
        held += low < 0.5 < high
    assert 0.88 <= held / 200 <= 0.99  # 95 % nominal; the bootstrap is a little narrow at 40 points


def test_seeds_drawn_whole_give_a_wider_interval_than_points():
    distance = torch.linspace(0.2, 5, 40, dtype=torch.float64).repeat(4)
    seed = torch.arange(4).repeat_interleave(40)
    shift = torch.tensor([-0.3, -0.1, 0.1, 0.3], dtype=torch.float64)[seed]  # a whole seed lies high or low
    gold = FORMS["rl"](distance, 0.5, 0.4) + shift * distance
    points = fit_scaling(distance, gold, generator=draws()).intervals()[0]
    seeds = fit_scaling(distance, gold, generator=draws(), group=seed * 7).intervals()[0]
    assert seeds[1] - seeds[0] > 1.5 * (points[1] - points[0])


def test_points_at_the_reference_carry_no_weight():
    distance = torch.tensor([0.0, 0.0, 1.0, 2.0, 3.0])
    with_origin = fit_scaling(distance, torch.tensor([9.0, -9.0, 1.0, 1.5, 1.2]), generator=draws())
    without = fit_scaling(distance[2:], torch.tensor([1.0, 1.5, 1.2]), generator=draws())
    assert (with_origin.alpha, with_origin.b) == (without.alpha, without.b)


@pytest.mark.parametrize("distance", [[], [0.0, 0.0, 0.0], [1.0, 1.0, 2.0]])
def test_too_few_distances_are_refused(distance):
    with pytest.raises(Refusal, match=f"needs 3 different distances above 0, and {len({*distance} - {0})} were given"):
        fit_scaling(torch.tensor(distance), torch.zeros(len(distance)), generator=draws())
