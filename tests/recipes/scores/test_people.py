"""Gold from people: asked on the labelling page, read back as win rates."""

import sys
from pathlib import Path

import pytest

from killick.preferences.asking import labelled_row
from killick.preferences.store import Annotator, Store
from killick.recipes.scores.people import Asked, queue, read_asked, win_rates, write_asked
from killick.types import Refusal
from stores import SKIP, TIE, join, said

ASKED = [
    Asked("Say it.", "yes", "no", "step 0"),
    Asked("Say it.", "maybe", "no", "step 0"),
    Asked("Say more.", "so", "so", "step 0"),
    Asked((("system", "Be kind."), ("user", "Say it.")), "dear", "what", "step 6"),
    Asked("Say it.", "yes", "no", "step 6"),
]


def says(store: Store, who: Annotator, verdicts: dict[str, tuple[tuple[int, ...], ...]]) -> None:
    """Label the cards that come, by the policy's answer; what is not named is skipped."""
    while (card := store.next_card(who)) is not None:
        assert card.item.id is not None
        text = card.item.candidates[0]
        store.label(who, card.item.id, judgement=said(verdicts.get(text, SKIP)), key=f"{who.name}-{text}")


def test_questions_are_queued_once_and_answers_come_back_as_win_rates(tmp_path: Path) -> None:
    """Two people: "yes" wins with both, "maybe" with one of them (a tie), "dear" ties, "so" was not asked."""
    place = str(tmp_path / "labels.db")
    assert queue(ASKED, place, overlap=2) == 3
    assert queue(ASKED, place) == 0
    first, second = ((0,), (1,)), ((1,), (0,))
    before = win_rates(ASKED, place)
    assert [(rate.group, rate.pairs, rate.same, rate.judged, rate.rate) for rate in before] == [
        ("step 0", 3, 1, 0, 0.5), ("step 6", 2, 0, 0, None),
    ]  # fmt: skip
    assert before[0].words() == "step 0: people judged 0 of 2 pairs, and 1 are the same text."
    assert before[1].words() == "step 6: people judged 0 of 2 pairs."
    with Store(place) as store:
        says(store, join(store, "ada"), {"yes": first, "maybe": first, "dear": TIE})
        says(store, join(store, "bob"), {"yes": first, "maybe": second})
        dialogue = next(pair for pair in store.export() if pair[0].candidates[0] == "dear")
        assert [turn.role for turn in labelled_row(*dialogue).prompt] == ["system", "user"]
    zero, six = win_rates(ASKED, place)
    # (1 + .5 + .5)/3 over "yes", "maybe" and the equal pair; (.5 + 1)/2 over "dear" and "yes".
    assert (zero.judged, zero.wins, zero.losses) == (2, 1, 0)
    assert zero.rate == pytest.approx(2 / 3)
    assert (six.judged, six.wins, six.losses, six.rate) == (2, 1, 0, 0.75)
    assert 0 < zero.low < 2 / 3 < zero.high < 1
    assert zero.words().startswith(
        "step 0: people judged 2 of 2 pairs, and 1 are the same text; the policy won 1, lost 0 and tied 1: a win rate "
        "of 0.67 ["
    )


def test_a_lost_pair_counts_against_the_policy(tmp_path: Path) -> None:
    place = str(tmp_path / "labels.db")
    queue(ASKED[:1], place)
    with Store(place) as store:
        says(store, join(store, "ada"), {"yes": ((1,), (0,))})
    (rate,) = win_rates(ASKED[:1], place)
    assert (rate.judged, rate.wins, rate.losses, rate.rate, rate.low) == (1, 0, 1, 0, 0)
    assert rate.high == pytest.approx(0.7935, abs=1e-4)  # z^2 / (1 + z^2)


def test_what_was_asked_is_kept_for_a_later_command(tmp_path: Path) -> None:
    write_asked(tmp_path / "asked.jsonl", ASKED)
    assert read_asked(tmp_path / "asked.jsonl") == ASKED


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "killick.preferences.store", None)
    with pytest.raises(Refusal, match=r"pip install 'killick.prefs.'"):
        win_rates(ASKED, str(tmp_path / "labels.db"))
