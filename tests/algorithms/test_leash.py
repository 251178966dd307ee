import math

import pytest

from killick.algorithms.leash import Leash
from killick.types import Refusal


@pytest.mark.parametrize(("kl", "beta"), [(12.0, 0.151536), (6.0, 0.15), (3.0, 0.148464)])
def test_zieglers_controller_gives_his_numbers(kl: float, beta: float) -> None:
    # beta .15, target 6, 512 responses, horizon 10,000: the gain is 512 / 10,000.
    assert Leash(0.15, target=6, gain=512 / 10_000).adapt(0.15, kl) == pytest.approx(beta, abs=1e-9)


@pytest.mark.parametrize(("kl", "beta"), [(12.0, 0.100512), (1.0, 0.099488), (6.3, 0.100128)])
def test_the_error_is_clipped_at_a_fifth_in_the_horizon_form(kl: float, beta: float) -> None:
    # O-36, form A: target 6, 256 responses, horizon 10,000. 6.3 lies inside the clip: 0.1 (1 + 0.05 x 0.0256).
    assert Leash(0.1, target=6, gain=256 / 10_000).adapt(0.1, kl) == pytest.approx(beta, abs=1e-9)


@pytest.mark.parametrize(("kl", "beta"), [(2.0, 0.102), (0.5, 0.098), (1.05, 0.1005), (-0.5, 0.098)])
def test_the_error_is_clipped_at_a_fifth_in_the_constant_form(kl: float, beta: float) -> None:
    # O-36, form B: target 1, gain 0.1.
    assert Leash(0.1, target=1).adapt(0.1, kl) == pytest.approx(beta, abs=1e-12)


@pytest.mark.parametrize(("updates", "beta"), [(10, 0.121899), (100, 0.724465)])
def test_many_updates_compound(updates: int, beta: float) -> None:
    leash, now = Leash(0.1, target=1), 0.1
    for _ in range(updates):
        now = leash.adapt(now, 5.0)
    assert now == pytest.approx(beta, abs=1e-6)


def test_a_fixed_leash_never_moves() -> None:
    assert Leash(0.3).adapt(0.3, 1e9) == 0.3


@pytest.mark.parametrize("kl", [math.nan, math.inf])
def test_a_kl_that_is_no_number_leaves_beta_and_warns(kl: float) -> None:
    with pytest.warns(RuntimeWarning, match="beta stays at 0.1"):
        assert Leash(0.1, target=1).adapt(0.1, kl) == 0.1


@pytest.mark.parametrize(
    "settings",
    [
        {"beta": -0.1},
        {"beta": math.nan},
        {"beta": math.inf},
        {"target": 0.0},
        {"target": -1.0},
        {"target": math.nan},
        {"target": 1.0, "gain": 0.0},
        {"target": 1.0, "gain": math.inf},
        {"target": 1.0, "beta": 0.0},
    ],
)
def test_settings_that_cannot_steer_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(Refusal):
        Leash(**settings).validate()
