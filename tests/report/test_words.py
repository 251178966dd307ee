import numpy as np
import pytest

from folders import claim, ledger_rows, put, run_folder
from killick.report.reading import read_run, split
from killick.report.words import arm_words, best, counted, number, parted, verdict


def arm(golds, proxies):
    rows = [
        {"arm": "a", "seed": 0, "step": step, "gold": gold, "proxy": proxy, "kl": 0.1 * step}
        for step, (gold, proxy) in enumerate(zip(golds, proxies, strict=True))
    ]
    return split(rows)[0]


def test_gold_that_falls_while_the_proxy_climbs_has_parted():
    (hacked,) = split(ledger_rows("beta=0", 0, steps=120))
    (held,) = split(ledger_rows("beta=1", 0, steps=120))
    assert parted(hacked)
    assert not parted(held)
    assert "the two part" in arm_words(hacked, "kl")
    assert "do not part" in arm_words(held, "kl")


def test_noise_is_no_parting():
    draws = np.random.default_rng(0)
    assert sum(parted(arm(draws.normal(0, 1, 100), np.arange(100.0))) for _ in range(50)) <= 2


def test_a_proxy_that_falls_with_gold_has_not_parted():
    falling = [1.0, 2.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0]
    assert not parted(arm(falling, falling))


def test_the_best_gold_is_the_largest_mean_over_five_iterations():
    assert best(arm([0.0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 5, 0, 0, 0], [0.0] * 14)) == (8, pytest.approx(8 / 5))


def test_an_arm_without_gold_still_has_words():
    (silent,) = split([{"arm": "a", "seed": 0, "step": 0, "proxy": 1.0, "kl": 0.5, "gold": None}])
    assert arm_words(silent, "kl") == "Proxy ends at 1.00, 0.50 nats from the reference; no gold was measured."


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (float("nan"), "-"), (3, "3"), (0.0, "0.00"), (0.004, "0.004"), (1e-9, "1e-09"), (-1.0, "-1.00"),
     ("about 30", "about 30"), (True, "True")],
)  # fmt: skip
def test_numbers_as_a_person_reads_them(value, text):
    assert number(value) == text


def test_without_a_proxy_nothing_can_part():
    (silent,) = split([{"arm": "a", "seed": 0, "step": step, "gold": -1.0 * step} for step in range(9)])
    assert not parted(silent)


def test_claims_are_counted_and_those_that_do_not_hold_are_named():
    setting, good = claim(kind="setting", holds=None), claim(holds=True)
    assert counted([setting]) == "No claim was checked in this run"
    assert counted([good]) == "The one claim holds"
    assert counted([good, good, setting]) == "All 2 claims hold"
    assert counted([claim(), good]) == "1 of 2 claims hold; what does not: final KL (beta=0), measured 38.20"
    assert counted([claim(arm=None)]) == "0 of 1 claim holds; what does not: final KL, measured 38.20"


def test_the_verdict_is_two_sentences_for_any_run(tmp_path):
    whole = verdict(read_run(run_folder(tmp_path / "whole")), "kl")
    assert whole.startswith("1 of 2 claims hold")
    assert "The policy ended 38.00 nats from its reference with gold at -1.00 in arm beta=0, and 0.30 nats" in whole
    started = verdict(read_run(run_folder(tmp_path / "started", finished=False)), "kl")
    assert started.startswith("This run is not finished. The policy ended")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metrics.jsonl").write_text("", encoding="utf-8")
    assert verdict(read_run(empty), "kl").endswith("How far the policy went was not measured.")
    put(empty / "results.json", {"recipe": "brand", "claims": [claim(holds=True)]})
    assert verdict(read_run(empty), "kl") == "The one claim holds. No policy was optimised."
