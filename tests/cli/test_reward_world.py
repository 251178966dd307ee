"""`killick reward fit`: from a store that simulated people filled to a reward model; one sentence for each fault."""

import json
from pathlib import Path

import pytest

from commands import Command, command
from killick.preferences.store import Judgement, Store
from killick.preferences.storing.records import Item
from killick.recipes.labelling.labels import FEWEST
from labelled import answers_items, arithmetic_items, rankings
from stores import join

killick = pytest.fixture(command, name="killick")


def filled(place: str, items: list[Item], *, annotators: int) -> None:
    """A store with samples of a world that annotators of kappa 2 labelled; the first label is a skip, the second
    one that was changed.
    """
    with Store(place) as store:
        store.add_items(items, overlap=annotators)
        for who in range(annotators):
            one = join(store, f"annotator {who}")
            for number, ranking in enumerate(rankings(items, kappa=2.0, seed=who), 1):
                first = () if (who, number) == (0, 1) else ranking if (who, number) != (0, 2) else ranking[::-1]
                store.label(one, number, judgement=Judgement(first, 1.0), key=f"{who}-{number}")
                if (who, number) == (0, 2):
                    store.revise(one, number, judgement=Judgement(ranking, 1.0), key="changed")


def test_from_a_store_to_a_reward_model(killick: Command, tmp_path: Path) -> None:
    """Two annotators say of 120 sums what they prefer; one skips one: 239 labels.

    Even digits come out above odd ones on the mean, the printed numbers are those of results.json.
    """
    filled(str(tmp_path / "labels.db"), arithmetic_items(120), annotators=2)
    said = killick("reward", "fit", "--from-store", "labels.db", "--world", "arithmetic", "--out", "rm")
    assert said.status == 0, said.err
    facts = json.loads((tmp_path / "rm" / "results.json").read_text())
    assert "239 labels by annotator 0, annotator 1; left out: 1 skipped." in said.out
    assert f"accuracy  {facts['accuracy']:.3f}  [" in said.out
    assert f"ceiling   {facts['ceiling']:.3f}  [" in said.out
    weights = list(facts["weights"].values())
    assert sum(weights[::2]) > 0.5 > -0.5 > sum(weights[1::2])
    assert (tmp_path / "rm" / "reward.safetensors").exists()
    again = killick("reward", "fit", "--from-store", "labels.db", "--world", "arithmetic", "--out", "rm")
    assert again.status == 2
    assert "is there already, and nothing is overwritten" in again.err


def test_a_world_of_four_prompts_says_that_its_items_were_split(killick: Command, tmp_path: Path) -> None:
    """Its own pairs; with a dozen of them, how many more items it takes."""
    fit = ("reward", "fit", "--world", "answers", "--from-store")
    filled(str(tmp_path / "labels.db"), answers_items(90), annotators=1)
    said = killick(*fit, "labels.db")
    assert said.status == 0, said.err
    assert "answers has fewer than 20 prompts, so its items were split" in said.out
    assert " other items (0 ties" in said.out
    assert "95 %, items resampled" in said.out
    assert "ceiling   not known" in said.out
    filled(str(tmp_path / "few.db"), answers_items(12), annotators=1)
    assert "label about 60 items." in killick(*fit, "few.db").err


def test_what_cannot_be_fitted_is_one_sentence(killick: Command, tmp_path: Path) -> None:
    """No store, an empty one, one of another world, too few labels, an unknown world; nothing is left behind."""
    fit = ("reward", "fit", "--from-store", "labels.db", "--world")
    assert "There is no store labels.db; killick label --world arithmetic begins one" in killick(*fit, "arithmetic").err
    assert not (tmp_path / "labels.db").exists()
    with Store(str(tmp_path / "labels.db")):
        pass
    assert "holds no label yet" in killick(*fit, "arithmetic").err
    filled(str(tmp_path / "labels.db"), arithmetic_items(12), annotators=1)
    assert (
        "no label of the world answers that can be learned from, only 12 of arithmetic" in killick(*fit, "answers").err
    )
    few = killick(*fit, "arithmetic", "--out", "rm")
    assert (few.status, "Too few labels" in few.err, str(FEWEST) in few.err) == (2, True, True)
    assert not (tmp_path / "rm").exists()
    assert "There is no world 'poems'" in killick(*fit, "poems").err
    (tmp_path / "no.db").write_text("hello, this is no database at all\n" * 40)
    assert "no.db" in killick("reward", "fit", "--from-store", "no.db", "--world", "arithmetic").err


def test_help_teaches_and_a_wrong_word_is_corrected(killick: Command) -> None:
    """The commands' own words."""
    assert "--from-store DB --world W" in killick("reward").out
    assert "--from-store" in killick("reward", "fit", "--help").out
    assert "(did you mean fit?)" in killick("reward", "fitt").err
