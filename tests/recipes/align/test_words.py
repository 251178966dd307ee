"""The verdict of a run in words, from rows made by hand: kept, lost, hacked, unmoved, unmeasured."""

from typing import Any

import pytest

from killick.recipes.align.config import Config
from killick.recipes.align.words import points, tables, verdict
from killick.recipes.ledger import Row

ERROR = 0.02


def config(**settings: Any) -> Config:
    return Config(**({"model": "m", "reward": ("r",), "prompts": "p", "beta": (0.0,), "gold": "g"} | settings))


def look(step: int, proxy: float, gold: float | None, kl: float, arm: str = "beta=0") -> Row:
    measured = None if gold is None else ERROR
    found = {
        "proxy": proxy, "gold": gold, "gold_error": measured, "gain_error": measured, "proxy_error": ERROR, "win": 0.5,
        "kl": kl, "entropy": 1.0, "length": 5.0, "finished": None,
    }  # fmt: skip
    plain = {"arm": arm, "seed": 0, "step": step, "proxy": proxy, "gold": gold, "kl": kl, "kl_k1": kl}
    return plain | {f"held_{name}": value for name, value in found.items()}


def run(*golds: float | None, arm: str = "beta=0") -> list[Row]:
    """Looks five steps and four nats apart, the proxy rising by .5 between them."""
    return [look(5 * place, place / 2, gold, 4.0 * place, arm) for place, gold in enumerate(golds)]


@pytest.mark.parametrize(
    ("golds", "words"),
    [
        (
            (0.1, 0.3, 0.5),
            "gold went from +0.10 to +0.50, its best: the gain is kept, and up to 8.0 nats was safe here",
        ),
        ((0.1, 0.5, 0.49), "(at its best +0.50, 4.0 nats, step 5): the gain is kept within its noise, so up to 8.0"),
        ((0.1, 0.5, 0.4), "after +0.50 at 4.0 nats, step 5: it lost some of its gain; safe was about 4.0 nats"),
        ((0.1, 0.5, 0.3), "it lost at least half of its gain while the proxy climbed on. This is over-optimisation"),
        ((0.1, 0.5, -0.3), "people would like the answers less than before. This is over-optimisation"),
        ((0.1, 0.12, 0.11), "gold went from +0.10 to +0.11, no further than the noise of these held-out prompts"),
    ],
)
def test_whether_gold_kept_its_gain_is_told(golds: tuple[float, ...], words: str) -> None:
    said = verdict(config(), run(*golds))
    assert said.startswith("On held-out prompts the proxy went from +0.00 to +1.00 at 8.0 nats, and gold went")
    assert words in said
    assert said.endswith("Saved is the last policy.")


@pytest.mark.parametrize(
    ("gold", "words"),
    [
        (0.9, " Gold went from +0.10 to +0.90, further than its noise (0.04), so something moves"),
        (0.13, " Gold went from +0.10 to +0.13, no further than its noise (0.04). Saved is"),
        (None, " Saved is the last policy."),
    ],
)
def test_a_proxy_that_did_not_move_is_told_first_and_then_gold(gold: float | None, words: str) -> None:
    said = verdict(config(), [look(0, 0.5, None if gold is None else 0.1, 0.0), look(5, 0.52, gold, 0.1)])
    assert f"no further than its noise: more --steps or a higher --learning-rate would move it.{words}" in said


def test_the_noise_of_a_gold_that_was_best_at_first_is_that_of_its_last_look() -> None:
    """The first look is the reference itself: its gain has no error, and .00 would be no noise at all."""
    first = look(0, 0.0, 0.11, 0.0) | {"held_gain_error": 0.0}
    said = verdict(config(), [first, look(5, 0.5, 0.1, 4.0)])
    assert "gold went from +0.11 to +0.10, no further than the noise of these held-out prompts (0.04)" in said


def test_without_gold_nobody_knows() -> None:
    assert "no gold was measured, so whether that is a gain only eyes can tell" in verdict(config(), run(None, None))
    assert "people are asked on the labelling page" in verdict(config(gold="people"), run(None, None))


def test_the_policy_that_was_saved_is_named() -> None:
    rows = run(0.1, 0.5, 0.3)
    assert "Saved is the policy of step 5, the best by held-out gold." in verdict(config(choose="held-out-gold"), rows)
    assert "Saved is the policy of step 10, the best by held-out reward." in verdict(
        config(choose="held-out-reward"), rows
    )


def test_arms_are_told_apart_and_the_best_by_gold_is_named() -> None:
    rows = run(0.1, 0.5, 0.0) + run(0.1, 0.3, 0.4, arm="beta=0.1")
    said = verdict(config(beta=(0.0, 0.1)), rows)
    assert said.index("beta=0: on held-out") < said.index("beta=0.1: on held-out")
    assert said.endswith("beta=0.1 ended with the highest held-out gold (+0.40).")
    rows = run(0.1, 0.5, 0.4) + run(0.1, 0.3, 0.4, arm="beta=0.1")
    assert verdict(config(beta=(0.0, 0.1)), rows).endswith("All ended with the same held-out gold (+0.40).")


def test_without_held_out_prompts_the_training_prompts_are_all_there_is() -> None:
    rows = [{name: value for name, value in row.items() if "held" not in name} for row in run(0.1, 0.5)]
    said = verdict(config(held_out=0.0), rows)
    assert "gold from +0.10 to +0.50, at 4.0 nats, on the very prompts that were learned from" in said
    assert tables(rows) == []


def test_a_table_holds_every_look_of_an_arm_and_no_column_without_a_number() -> None:
    made = tables(run(0.1, 0.5, 0.3))
    assert [table.title for table in made] == ["Held-out prompts, beta=0"]
    assert made[0].columns[:3] == ["step", "proxy", "gold"]
    assert "finished" not in made[0].columns
    assert [row[:3] for row in made[0].rows] == [[0, 0.0, 0.1], [5, 0.5, 0.5], [10, 1.0, 0.3]]
    assert "gold" not in tables(run(None, None))[0].columns
    assert [point.kl for point in points(run(0.1, 0.5), "beta=0")] == [0.0, 4.0]
