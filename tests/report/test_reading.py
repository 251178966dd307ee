import json

import numpy as np
import pytest

from folders import ARMS, ledger_rows, lines, run_folder
from killick.report.reading import order, read_ledger, read_run, slug, split
from killick.types import Refusal


def test_a_finished_run_is_read_whole(tmp_path):
    shown = read_run(run_folder(tmp_path, seeds=(0, 1), steps=12))
    assert [arm.name for arm in shown.arms] == ["beta=0", "beta=0.1", "beta=0.1+ptx", "beta=1"]
    assert all(arm.seeds == [0, 1] and arm.columns["gold"].shape == (2, 12) for arm in shown.arms)
    assert shown.recipe == "arithmetic"
    assert shown.problems == []
    assert set(shown.stages) == {"0", "1"}


def test_an_unfinished_run_is_read_from_its_cells_without_the_line_that_is_being_written(tmp_path):
    shown = read_run(run_folder(tmp_path, steps=12, finished=False))
    assert [len(arm.steps) for arm in shown.arms] == [11] * len(ARMS)
    assert len(shown.samples) == 4 * 2 * 3
    assert shown.stages["0"]["sft_steps"] == 375
    assert shown.results == {}


def test_a_cut_ledger_is_refused_by_file_and_line(tmp_path):
    metrics = run_folder(tmp_path, steps=12) / "metrics.jsonl"
    text = metrics.read_text(encoding="utf-8").splitlines()
    metrics.write_text("\n".join([*text[:6], text[6][:40], *text[7:]]) + "\n", encoding="utf-8")
    with pytest.raises(Refusal, match=r"metrics\.jsonl, line 7"):
        read_run(tmp_path)


def test_a_row_of_something_else_is_refused_by_file_and_line(tmp_path):
    metrics = run_folder(tmp_path, steps=3, arms=("beta=0",)) / "metrics.jsonl"
    metrics.write_text(metrics.read_text(encoding="utf-8") + '{"arm": 1}\n', encoding="utf-8")
    with pytest.raises(Refusal, match=r"metrics\.jsonl, line 4.*arm, seed and step"):
        read_ledger(tmp_path)


def test_a_folder_without_a_ledger_is_refused(tmp_path):
    with pytest.raises(Refusal, match="holds no ledger"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["results.json", "stages.json", "config.json", "environment.json", "samples.jsonl", "timing.jsonl"]
)
def test_any_other_damaged_file_is_told_and_left_out(tmp_path, name):
    (run_folder(tmp_path, steps=3) / name).write_text('{"half', encoding="utf-8")
    shown = read_run(tmp_path)
    assert name in " ".join(shown.problems)
    assert len(shown.arms) == 4


def test_mean_deviation_and_smoothing_by_hand():
    rows = [
        {"arm": "a", "seed": seed, "step": step, "gold": gold}
        for seed, golds in enumerate([[1.0, 2.0, 6.0], [3.0, None, 8.0]])
        for step, gold in enumerate(golds)
    ]
    (arm,) = split(rows)
    assert arm.mean("gold").tolist() == [2, 2, 7]
    np.testing.assert_allclose(arm.deviation("gold"), [2**0.5, np.nan, 2**0.5])
    np.testing.assert_allclose(arm.smooth("gold"), [11 / 3] * 3)  # the window of five covers all three
    assert arm.final("gold") == pytest.approx((7, 2**0.5))


def test_null_text_and_infinity_are_no_numbers(tmp_path):
    rows = [{"arm": "a", "seed": 0, "step": 0, "gold": None, "kl": "far", "proxy": 1, "beta": float("inf")}]
    (tmp_path / "metrics.jsonl").write_text(lines(json.loads(json.dumps(rows))), encoding="utf-8")
    (arm,) = read_run(tmp_path).arms
    assert [arm.has(column) for column in ("gold", "kl", "proxy", "beta", "nothing")] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert np.isnan(arm.final("gold")[0])


def test_arms_stand_in_the_order_of_their_numbers():
    names = ["other", "beta=10", "beta=0.5", "beta=0.5+ptx", "beta=1e-05", "beta=..."]
    assert sorted(names, key=order) == ["beta=1e-05", "beta=0.5", "beta=0.5+ptx", "beta=10", "beta=...", "other"]


@pytest.mark.parametrize(
    ("name", "part"), [("beta=0.1+ptx", "beta-0.1-ptx"), ("../../etc", "etc"), ("", "unnamed"), ("<é>" * 90, "unnamed")]
)
def test_a_name_becomes_a_harmless_part_of_a_file_name(name, part):
    assert slug(name) == part


def test_seeds_of_different_length_leave_gaps():
    (arm,) = split(ledger_rows("beta=0", 0, steps=3) + ledger_rows("beta=0", 1, steps=2))
    assert np.isnan(arm.columns["gold"][1, 2])
    assert np.isfinite(arm.mean("gold")).all()
