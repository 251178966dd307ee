"""Each rule on numbers at its threshold: intervals decide, not estimates."""

from typing import Any

import pytest

from killick.recipes.exam import rules


def share(value: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"accuracy": value, "low": low, "high": high, "pairs": 100, "score_ties": 0, **more}


def weights(found: Any) -> list[tuple[str, str]]:
    return [(each.id, each.weight) for each in found]


@pytest.mark.parametrize(
    ("accuracy", "expected"),
    [
        (share(0.6, 0.51, 0.7), ("chance", "good")),
        (share(0.6, 0.5, 0.7), ("chance", "stop")),
        (share(0.4, 0.3, 0.49), ("inverted", "stop")),
        (share(0.5, 0.4, 0.6, score_ties=100), ("constant", "stop")),
    ],
)
def test_chance_is_outside_the_interval_or_it_is_not(accuracy: dict[str, Any], expected: tuple[str, str]) -> None:
    assert weights(rules.chance({"accuracy": accuracy})) == [expected]


@pytest.mark.parametrize(
    ("top", "accuracy", "expected"),
    [
        (0.8, share(0.64, 0.6, 0.7), [("weak", "limit")]),  # .14 of .3
        (0.8, share(0.66, 0.6, 0.7), [("ceiling", "good")]),  # .16 of .3
        (0.8, share(0.6, 0.5, 0.7), []),
        (None, share(0.7, 0.64, 0.75), [("weak", "limit")]),
        (None, share(0.7, 0.66, 0.75), []),
    ],
)
def test_half_of_what_labels_teach_is_enough(top: float | None, accuracy: dict[str, Any], expected: list[Any]) -> None:
    assert weights(rules.ceiling({"ceiling": {"ceiling": top}, "accuracy": accuracy})) == expected


def lengths(balanced: tuple[float, float] | None, lean: tuple[float, float, float]) -> dict[str, Any]:
    return {
        "accuracy": share(0.7, 0.6, 0.8),
        "length": {
            "balanced": balanced and balanced[0], "balanced_low": balanced and balanced[1], "balanced_high": 0.9,
            "longer_chosen": share(0.9, 0.8, 1), "shorter_chosen": share(0.2, 0.1, 0.3), "lean": lean[0],
            "lean_low": lean[1], "lean_high": lean[2], "model_longer": 0.5 + lean[0], "people_longer": 0.5,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (lengths((0.55, 0.49), (0.3, 0.2, 0.4)), [("length", "stop")]),
        (lengths((0.55, 0.51), (0.3, 0.11, 0.4)), [("lean", "limit")]),
        (lengths((0.55, 0.51), (0.3, 0.09, 0.4)), []),
        (lengths(None, (-0.3, -0.4, -0.11)), [("lean", "limit")]),
        (lengths(None, (0.0, -0.1, 0.1)), []),
    ],
)
def test_length_is_held_against_a_model_where_nothing_is_left_without_it(
    given: dict[str, Any], expected: list[Any]
) -> None:
    assert weights(rules.length(given)) == expected


def test_a_model_that_is_no_better_than_chance_is_not_asked_about_length() -> None:
    given = lengths((0.55, 0.49), (0.3, 0.2, 0.4)) | {"accuracy": share(0.5, 0.4, 0.6)}
    assert weights(rules.length(given)) == []


def probe(low: float, best: float | None = None) -> dict[str, Any]:
    beats = {"share": low, "low": low, "high": 1.0, "prompts": 50}
    return {"what": "nothing", "beats_chosen": beats, "beats_best": best and beats | {"low": best}}


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("empty", probe(0.51), ("probe empty", "stop")),
        ("empty", probe(0.5), ("probe empty", "limit")),
        ("empty", probe(0.25), ("probes", "good")),
        ("empty", probe(0.1, best=0.6), ("probe empty", "limit")),
        ("padded", probe(0.76), ("probe padded", "stop")),
        ("padded", probe(0.51), ("probe padded", "limit")),
        ("padded", probe(0.5, best=0.9), ("probes", "good")),
    ],
)
def test_a_spoilt_answer_may_win_more_often_than_none_at_all(
    name: str, found: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert weights(rules.probes({"probes": {name: found}})) == [expected]


def test_a_probe_that_was_not_scored_clears_nothing() -> None:
    assert weights(rules.probes({"probes": {"empty": {"beats_chosen": None}}})) == []


def test_members_part_where_their_whole_interval_lies_below() -> None:
    found = {"members": 3, "pairs": 40, "agreement": 0.75, "low": 0.7, "high": 0.79}
    assert weights(rules.members({"members": found})) == [("members", "limit")]
    assert weights(rules.members({"members_sampled": found | {"high": 0.81}})) == [("members_sampled", "good")]
    assert weights(rules.members({"members": None})) == []


def test_scores_of_prompts_are_no_scores_of_answers() -> None:
    assert weights(rules.spread({"spread": {"within": 0.0, "share_within": 0.0}})) == [("flat", "stop")]
    assert weights(rules.spread({"spread": {"within": 1.0, "share_within": 0.09}})) == [("prompts", "limit")]
    assert weights(rules.spread({"spread": {"within": 1.0, "share_within": 0.11}})) == []
    assert weights(rules.spread({"spread": {"within": 1.0, "share_within": None}})) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"gold_gain": 1.0, "gold_gain_low": 0.1, "gold_gain_high": 2.0}, [("gold", "good")]),
        ({"gold_gain": 1.0, "gold_gain_low": 0.1, "gold_gain_high": 2.0, "turns": True, "top": 4}, [("gold", "note")]),
        ({"gold_gain": 0.1, "gold_gain_low": -0.1, "gold_gain_high": 2.0}, [("gold", "stop")]),
        ({"gold_gain": -1.0, "gold_gain_low": -2.0, "gold_gain_high": -0.1}, [("gold", "stop")]),
        ({"gold_gain": 0.0, "gold_gain_low": 0.0, "gold_gain_high": 0.0}, [("gold", "note")]),
        ({"covered": {"n": 1, "score": 0.0}}, [("reach", "stop")]),
        ({"covered": {"n": 4, "score": 0.0}}, [("reach", "note")]),
        ({"covered": {"n": 8, "score": 0.0}}, []),
        ({}, []),
    ],
)
def test_choosing_has_to_help_gold_or_to_stay_where_labels_are(more: dict[str, Any], expected: list[Any]) -> None:
    found = {"points": [{"n": 1}, {"n": 8}], "turns": False, "covered": None} | more
    assert weights(rules.slope({"slope": found, "spread": {"within": 1.0}})) == expected
    assert weights(rules.slope({"slope": found, "spread": {"within": 0.0}})) == []


def test_the_best_have_to_be_told_apart() -> None:
    facts: dict[str, Any] = {"accuracy": share(0.7, 0.65, 0.75), "level": [share(0.8, 0.7, 0.9), share(0.5, 0.4, 0.6)]}
    assert weights(rules.top(facts)) == [("top", "limit")]
    facts["level"][-1] = share(0.5, 0.4, 0.66)
    assert weights(rules.top(facts)) == []


def test_calibration_is_told_where_it_is_worse_than_chance_would_make_it() -> None:
    found = {"temperature": 2.0, "ece": 0.1, "ece_by_chance": 0.05, "ece_by_chance_high": 0.09}
    (told,) = rules.temperature({"calibration": found})
    assert "claim too much" in told.text
    assert weights(rules.temperature({"calibration": found | {"ece": 0.08}})) == []
    assert weights(rules.temperature({"calibration": found | {"temperature": None}})) == []
