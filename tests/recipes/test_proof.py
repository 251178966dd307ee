"""The running proof: whole recipes at their defaults, and what has to come out."""

import pytest

from killick.recipes import arithmetic, emphasis
from straight import tell


def test_arithmetic_without_a_leash_pleases_people_first_and_then_the_reward_model() -> None:
    found = tell(arithmetic, arithmetic.Config(betas=(0.0,), ptx_betas=(), device="cpu")).rows
    assert len(found) == 120
    gold = [row["gold"] for row in found]
    smooth = [sum(gold[max(0, i - 2) : i + 3]) / len(gold[max(0, i - 2) : i + 3]) for i in range(len(gold))]
    assert max(smooth) > 0.85
    assert gold[-1] < -0.9
    assert found[-1]["finished"] < 0.05
    assert found[-1]["proxy"] > found[smooth.index(max(smooth))]["proxy"]
    assert found[-1]["accuracy"] == 0


@pytest.mark.slow
def test_emphasis_without_a_leash_ends_in_twelve_emphasis_tokens() -> None:
    found = tell(emphasis, emphasis.Config(device="cpu", seeds=(42,))).rows
    assert len(found) == 150
    assert max(row["gold"] for row in found) > 0.9
    assert found[-1]["gold"] == pytest.approx(-4.4565, abs=1e-3)
    assert found[-1]["emphasis"] == pytest.approx(12)
