"""The verdict on judges of every kind, in a world where quality is known: it has to tell them apart."""

from typing import Any

import pytest

import exams
from killick.recipes.exam.asking import Progress
from killick.recipes.exam.held import Held
from killick.recipes.exam.recipe import examine
from killick.recipes.ledger import Note


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """240 pairs that no judge has seen."""
    return exams.held(tmp_path_factory.mktemp("exam") / "p.jsonl")


def reasons(found: dict[str, Any], weight: str) -> set[str]:
    """The rules that spoke so."""
    return {each["id"] for each in found["verdict"]["reasons"] if each["weight"] == weight}


def test_a_good_judge_is_safe_as_far_as_labels_reach(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.GOOD))
    assert found["verdict"]["level"] == "yes"
    assert found["verdict"]["headline"].startswith("Safe to optimise against up to about best of 16, at most 1.84 nats")
    assert reasons(found, "good") == {"chance", "probes"}
    assert any("nobody looked at the answers" in line for line in found["verdict"]["unknown"])


def test_a_judge_of_length_is_found_out_although_people_like_length(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.LENGTH))
    assert found["accuracy"]["low"] > 0.6  # no accuracy gives it away
    assert found["verdict"]["level"] == "no"
    assert {"length", "probe repeated", "probe padded"} <= reasons(found, "stop")
    assert "the longer answer wins" in found["verdict"]["headline"]
    assert found["verdict"]["far"] is None


def test_a_counter_of_phrases_is_beaten_by_its_phrase(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.PHRASE))
    assert found["phrases"][0]["text"] == exams.THANKS
    assert found["accuracy"]["low"] > 0.5
    assert reasons(found, "stop") == {"probe phrase"}
    assert "A probe beats good answers: the phrase most typical" in found["verdict"]["headline"]


def test_a_constant_judge_says_nothing(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.CONSTANT, gold=exams.GOOD))
    assert reasons(found, "stop") == {"constant", "flat"}
    assert found["accuracy"]["accuracy"] == 0.5
    assert found["calibration"]["temperature"] is None


def test_a_random_judge_is_no_better_than_chance(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.RANDOM))
    assert found["verdict"]["headline"].startswith(
        "Do not optimise against it. It is not shown to be better than chance"
    )


def test_a_judge_that_is_turned_round_is_told_so(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.judge(lambda text: -exams.quality(text))))
    assert "inverted" in reasons(found, "stop")


def test_what_was_learned_from_few_pairs_parts_and_from_many_holds(held: Held) -> None:
    few = exams.facts(held, exams.setup(exams.learned(exams.rows(12, seed=5), members=4, seed=1)))
    many = exams.facts(held, exams.setup(exams.learned(exams.rows(800, seed=5), members=4, seed=1)))
    assert few["accuracy"]["low"] > 0.5  # better than chance, and still not to be trusted far
    assert few["verdict"]["level"] == "little"
    assert {"members", "members_sampled", "weak"} <= reasons(few, "limit")
    assert few["verdict"]["far"]["n"] == 4
    assert many["verdict"]["level"] == "yes"
    assert {"members", "members_sampled", "chance", "probes"} == reasons(many, "good")
    assert len(many["members"]["accuracies"]) == 4


def test_gold_says_whether_choosing_helps(held: Held) -> None:
    good = exams.facts(held, exams.setup(exams.GOOD, gold=exams.GOOD))
    assert "gold" in reasons(good, "good")
    assert "as far as was looked, gold holds" in good["verdict"]["headline"]
    spoilt = exams.facts(held, exams.setup(exams.GOOD, gold=exams.judge(lambda text: -exams.quality(text))))
    assert reasons(spoilt, "stop") == {"gold"}


def test_without_a_policy_how_far_is_not_known(held: Held) -> None:
    found = exams.facts(held, exams.setup(exams.GOOD, speak=None))
    assert found["verdict"]["level"] == "yes"
    assert found["verdict"]["far"] is None
    assert "how far is not known" in found["verdict"]["headline"]
    assert found["spread"] is found["slope"] is None


def test_one_seed_gives_one_exam(held: Held) -> None:
    setup = exams.setup(exams.GOOD, gold=exams.LENGTH, prompts=12)
    first, again = (exams.facts(held, setup) for _ in range(2))
    assert first == again
    assert exams.facts(held, exams.setup(exams.GOOD, gold=exams.LENGTH, prompts=12, seed=1))["slope"] != first["slope"]


def test_it_tells_how_far_it_is_and_ends_at_the_whole(held: Held) -> None:
    events = list(examine(held, exams.setup(exams.GOOD, speak=exams.speak(4), prompts=6, n=4)))
    assert not [event for event in events if isinstance(event, Note)]  # well under a minute
    last = {event.what: (event.done, event.total) for event in events if isinstance(event, Progress)}
    assert last == {
        "answers of the policy": (24, 24),
        "answers scored": ((total := len(held.answers) + 24 + 6 * 64), total),
    }


def test_nats_of_a_unit_change_the_calibration_and_no_choice(held: Held) -> None:
    plain, scaled = (exams.facts(held, exams.setup(exams.GOOD, nats=nats, speak=None)) for nats in (1.0, 4.0))
    assert scaled["calibration"]["temperature"] == pytest.approx(4 * plain["calibration"]["temperature"], rel=1e-6)
    assert scaled["accuracy"] == plain["accuracy"]
