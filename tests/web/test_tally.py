"""Progress without counting every time: never behind by more than it says."""

from pathlib import Path

import pytest

from killick.preferences.store import Annotator, Progress, Store
from killick.web import tally as module
from killick.web.tally import FEW, Tally
from stores import SKIP, join, pairs, said


def test_it_keeps_step_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Store] = []
    with Store(tmp_path / "labels.db") as store:
        store.add_items(pairs(60))
        ada, tally = join(store, "ada"), Tally(store)
        count = Store.progress

        def counting(self: Store, annotator: Annotator | None = None) -> Progress:
            counted.append(self)
            return count(self, annotator)

        monkeypatch.setattr(Store, "progress", counting)
        for item in range(1, 61):
            tally.progress(ada)
            ranking = SKIP if item % 7 == 0 else ((0,), (1,))
            tally.add(ada, store.label(ada, item, judgement=said(ranking), key=str(item)))
            tally.add(ada, store.label(ada, item, judgement=said(ranking), key=str(item)))  # the same again
            told, true = tally.progress(ada), count(store, ada)
            assert (told.done, told.skipped, told.left) == (true.done, true.skipped, true.left)
        assert len(counted) < 2 * FEW + 12
        before = tally.progress(ada).done
        store.withdraw(ada, 3, key="back")
        tally.forget(ada)
        assert tally.progress(ada).done == before - 1


def test_it_counts_anew_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another tab or another server did is seen two seconds later."""
    with Store(tmp_path / "labels.db") as store:
        store.add_items(pairs(60))
        ada, tally = join(store, "ada"), Tally(store)
        for item in range(1, FEW + 2):
            store.label(ada, item, judgement=said(), key=str(item))
        assert tally.progress(ada).done == FEW + 1
        store.label(ada, FEW + 2, judgement=said(), key="elsewhere")
        assert tally.progress(ada).done == FEW + 1
        monkeypatch.setattr(module, "AGE", -1.0)
        assert tally.progress(ada).done == FEW + 2
