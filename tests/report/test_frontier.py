"""The exact frontier: closed forms on two answers, and a picture from the folder alone."""

import json
import math

import pytest

from folders import lines, put, run_folder
from killick.report.drawing import draw
from killick.report.frontier import BETAS, Listed, best_of, curve_words, frontier, listed, table, tilted
from killick.report.reading import read_run

# One prompt, two answers: the reference gives .8 and .2; the proxy likes the second, gold the first.
REFERENCE, SCORES, GOLD = [[math.log(0.8), math.log(0.2)]], [[0.0, 1.0]], [[1.0, -1.0]]
WORLD = Listed(table(REFERENCE), table(GOLD), {"one": table(SCORES)}, {})


def folder_with_a_listed_world(path, arms=("beta=0", "beta=1")):
    folder = run_folder(path, arms=arms, steps=6)
    exact = {"reference": REFERENCE, "gold": GOLD, "scores": {"one": SCORES, "gold": GOLD},
             "arms": dict.fromkeys(arms, "one")}  # fmt: skip
    put(folder / "stages.json", {"0": {"exact": exact}})
    return folder


def test_a_frontier_goes_from_the_reference_to_the_best_answer():
    """Tight: KL 0 and gold .8 - .2 = .6. None: the second answer alone, KL log 5, gold -1. At beta 1 the second answer
    has .2 e / (.8 + .2 e) = .4046."""
    kl, gold = tilted(WORLD, WORLD.scores["one"])
    assert (kl[0], gold[0]) == pytest.approx((0, 0.6), abs=5e-3)
    assert (kl[-1], gold[-1]) == pytest.approx((math.log(5), -1))
    at_one = min(range(len(BETAS)), key=lambda place: abs(BETAS[place] - 1))
    assert gold[at_one] == pytest.approx(1 - 2 * 0.4046, abs=0.02)
    assert kl == sorted(kl)


def test_best_of_two_by_hand():
    """Both answers the first: .64; so the second has .36, gold .28, KL .64 log(.64/.8) + .36 log(.36/.2)."""
    kl, gold = best_of(WORLD, WORLD.scores["one"])
    assert gold[0] == pytest.approx(0.28)
    assert kl[0] == pytest.approx(0.64 * math.log(0.8) + 0.36 * math.log(1.8))


def test_no_policy_passes_golds_own_frontier():
    own, proxy = tilted(WORLD, WORLD.gold), tilted(WORLD, WORLD.scores["one"])
    assert max(proxy[1]) <= max(own[1]) + 1e-12


def test_it_is_drawn_where_two_arms_climb_one_table_and_only_there(tmp_path):
    shown = read_run(folder_with_a_listed_world(tmp_path / "two"))
    picture = frontier(shown)
    assert picture is not None
    assert "With the one reward model gold is best" in picture.caption
    assert frontier(read_run(folder_with_a_listed_world(tmp_path / "one", arms=("beta=0",)))) is None
    plain = read_run(run_folder(tmp_path / "none", steps=3))
    assert listed(plain) is None
    assert frontier(plain) is None


def test_it_lands_in_the_folder_and_on_the_page(tmp_path):
    folder = folder_with_a_listed_world(tmp_path)
    assert draw(folder) == []
    assert (folder / "figures" / "frontier.pdf").exists()
    assert "The exact frontier" in (folder / "report.html").read_text(encoding="utf-8")


def test_an_unfinished_run_has_it_too(tmp_path):
    folder = folder_with_a_listed_world(tmp_path)
    exact = json.loads((folder / "stages.json").read_text())["0"]
    for name in ("results.json", "stages.json"):
        (folder / name).unlink()
    (folder / "cells").mkdir()
    put(folder / "cells" / "stages,seed=0.json", exact)
    (folder / "metrics.jsonl").write_text(
        lines(
            [{"arm": arm, "seed": 0, "step": 0, "proxy": 0.0, "gold": 0.6, "kl": 0.0} for arm in ("beta=0", "beta=1")]
        )
    )
    assert frontier(read_run(folder)) is not None


def test_a_curve_in_words():
    """Gold is best at the second of three points."""
    told = curve_words("thin", ([0.0, 0.5, 1.0], [1.0, 2.0, 0.25]))
    assert (
        told
        == f"With the thin reward model gold is best (2.00) at 0.50 nats, beta {BETAS[1]:.2f}, and 0.25 at the end."
    )
