"""Probes asked: what beats what, and a judge that cannot read one."""

import pytest
import torch

from killick.hacking.probes import WHAT
from killick.ops.shares import share_interval
from killick.recipes.exam.probes import LEARNED, beaten, phrases_of, probe_facts
from killick.types import Refusal


def longest(places, texts):
    """A judge of length."""
    assert len(places) == len(texts)
    return torch.tensor([float(len(text)) for text in texts])


def test_a_probe_is_held_against_the_chosen_answer_and_those_of_a_policy() -> None:
    sampled = [[1.0, 90.0], None]
    found = dict(
        probe_facts(
            longest, ["p", "q"], answers=["one two", "three four"], chosen=[7.0, 10.0], phrase="so", sampled=sampled
        )
    )
    assert list(found) == list(WHAT)
    assert found["repeated"]["beats_chosen"]["share"] == 1
    assert found["empty"]["beats_chosen"]["share"] == 0
    assert found["empty"]["beats_sampled"]["prompts"] == 1
    assert found["padded"]["beats_sampled"]["share"] == 1  # 46 against a mean of 45.5
    assert found["padded"]["beats_best"]["share"] == 0
    assert found["truncated"]["example"] == "one"


def test_no_policy_nothing_to_beat() -> None:
    found = dict(probe_facts(longest, ["p"], answers=["one"], chosen=[3.0], phrase=None, sampled=[None]))
    assert "phrase" not in found
    assert found["empty"]["beats_sampled"] is None


def test_equal_scores_beat_nothing_and_are_counted() -> None:
    found = dict(
        probe_facts(lambda _, texts: torch.zeros(len(texts)), ["p", "q"], answers=["a", "b"], chosen=[0.0, 0.0],
                    phrase=None, sampled=[None, None])
    )  # fmt: skip
    assert found["repeated"]["beats_chosen"]["share"] == 0
    assert found["repeated"]["ties"] == 2


def test_a_judge_that_cannot_read_an_empty_answer_loses_that_probe_only() -> None:
    """O-43: what has no score is told, and the exam goes on."""

    def picky(places, texts):
        if "" in texts:
            raise Refusal("REWARD my:judge, answer 1: the function failed with ValueError: empty.")
        return torch.ones(len(texts))

    found = dict(probe_facts(picky, ["p"], answers=["one"], chosen=[0.0], phrase=None, sampled=[None]))
    assert found["empty"]["beats_chosen"] is None
    assert "ValueError: empty" in found["empty"]["reason"]
    assert found["echoed"]["beats_chosen"]["share"] == 1


def test_the_interval_of_a_share_is_over_prompts() -> None:
    found = beaten([2.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    assert found is not None
    assert (found["low"], found["high"]) == pytest.approx(share_interval(1, 3))
    assert beaten([], []) is None


def test_phrases_are_taken_from_pairs_all_over_the_file() -> None:
    """Twice as many pairs as are looked at: every second one, so that a phrase of the last ones is found too."""
    pairs = [("so it is", "no")] * LEARNED + [("thank you", "no")] * LEARNED
    found = {each.text: each.chosen for each in phrases_of(pairs)}
    assert found["so it is"] == found["thank you"] == LEARNED // 2
