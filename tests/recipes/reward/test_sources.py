"""Judgements from a file and from a store."""

from pathlib import Path

import pytest

from killick.preferences.files import BadRows
from killick.preferences.store import Judgement, Store
from killick.preferences.storing.records import Item
from killick.recipes.reward.sources import from_file, from_labels
from killick.types import Refusal
from preferring import pair, pairs, written
from stores import join


def test_a_file_with_its_lines(tmp_path: Path) -> None:
    source = from_file(written(tmp_path / "prefs.jsonl", pairs(3)))
    assert (source.kind, len(source.placed), source.placed[4].where) == ("pairs", 12, "line 5")
    assert source.verdicts() == []
    (tmp_path / "bad.jsonl").write_text(
        '{"prompt": "a", "chosen": "b", "rejected": "c"}\n{"prompt": 1, "chosen": "b"}\n'
    )
    with pytest.raises(BadRows, match="1 bad row"):
        from_file(tmp_path / "bad.jsonl")
    source = from_file(tmp_path / "bad.jsonl", skip_bad=True)
    assert (len(source.placed), source.left) == (1, {"bad rows": 1})


def test_labels_that_hold(tmp_path: Path) -> None:
    """One of three is a skip, one is flagged; the annotator and the order of the responses stay."""
    with Store(str(tmp_path / "labels.db")) as store:
        store.add_items([Item(f"prompt {number}", ("good", "that")) for number in range(3)], overlap=1)
        one = join(store, "ana")
        store.label(one, 1, judgement=Judgement(((1,), (0,)), 1.0), key="a")
        store.label(one, 2, judgement=Judgement((), 1.0), key="b")
        store.label(one, 3, judgement=Judgement(((0,), (1,)), 1.0, flags=("unsafe",)), key="c")
        source = from_labels(store.export(), name="labels.db")
        assert source.left == {"skipped labels": 1, "flagged labels": 1}
        ((where, row),) = source.placed
        assert (where, row.annotator) == ("item 1 by ana", "ana")
        texts = {response[0].content: place for response, place in zip(row.responses, row.place, strict=True)}
        assert texts == {"that": 0, "good": 1}
        assert len(source.verdicts()) == 1
    with pytest.raises(Refusal, match="holds no label to learn from"):
        from_labels([], name="labels.db")


def test_rows_without_a_judgement_are_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"prompt": "a", "response": "b"}\n')
    with pytest.raises(Refusal, match=r"columns of no form \(prompt, response\)"):
        from_file(tmp_path / "answers.jsonl")
    assert len(from_file(written(tmp_path / "one.jsonl", [pair("a", "b", "c")])).placed) == 1
