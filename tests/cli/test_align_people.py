"""`killick align --gold people`: asked on the labelling page, read by the same command or by `killick report`."""

from pathlib import Path

import pytest

from aligning import setting, words
from commands import Command, command
from killick.preferences.store import Store
from stores import join, said

run = pytest.fixture(command)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return setting(tmp_path_factory.mktemp("setting"))


def test_gold_from_people_is_asked_on_the_labelling_page_and_read_when_the_command_is_run_again(
    place: Path, run: Command, tmp_path: Path
) -> None:
    given = words(place, "--beta", "0", "--gold", "people", "--out", "run")
    told = run(*given)
    assert told.status == 0, told.err
    assert "gold was not measured" in told.out
    assert "beta=0, step 2: people judged 0 of" in told.out
    assert "killick label --store run/labels.db" in told.out
    with Store("run/labels.db") as store:
        who = join(store, "me")
        card = store.next_card(who)
        assert card is not None
        assert card.item.id is not None
        store.label(who, card.item.id, judgement=said(((0,), (1,))), key="1")
    for again in (given, ["report", "run"]):
        told = run(*again)
        assert "people judged 1 of" in told.out
        assert "the policy won 1, lost 0" in told.out
        assert "0 questions are new" in told.out
