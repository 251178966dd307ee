"""Which pairs of a file are examined, and how right one can be on them."""

from pathlib import Path
from typing import Any

import pytest

import exams
from killick.models.texts import Texts
from killick.preferences.files import read_preferences
from killick.preferences.rows import prompt_key, text_key
from killick.recipes.exam.held import read_held
from killick.types import Refusal
from llamas import END, tokenizer


def test_all_of_a_file_is_held_out_where_nothing_says_what_was_learned(tmp_path: Path) -> None:
    found = read_held(exams.write(tmp_path / "p.jsonl", exams.rows(12, seed=0)), None)
    assert len(found.pairs) == 12
    assert "all of the file, since nothing says" in found.facts["told"]
    assert "If it has, it is less often right" in found.facts["unsure"]
    assert found.facts["phrases_from"] == "the held-out pairs themselves"


def test_prompts_that_were_learned_from_are_left_out_whatever_their_case(tmp_path: Path) -> None:
    """O-12: no prompt of the fit is asked about; its pairs only lend their phrases."""
    rows = exams.rows(20, seed=0, pairs=2)
    file = exams.write(tmp_path / "p.jsonl", rows)
    known, _ = read_preferences(file)
    learned = {prompt_key(row).hex() for row in known if int(row.prompt[0].content.split()[3]) < 8}
    loud = [row | {"prompt": f" {row['prompt'].upper()} "} for row in rows]
    for each in (file, exams.write(tmp_path / "loud.jsonl", loud)):
        found = read_held(each, learned)
        assert (found.facts["pairs"], found.facts["prompts"], found.facts["rows_known"]) == (24, 12, 16)
        assert len(found.taught) == 16
        assert "all of the file but 16 rows whose prompts it learned from" in found.facts["told"]
        assert "unsure" not in found.facts


def test_a_file_of_other_prompts_is_held_out_for_certain(tmp_path: Path) -> None:
    found = read_held(exams.write(tmp_path / "p.jsonl", exams.rows(12, seed=0)), frozenset({"00" * 8}))
    assert "whose prompts it neither learned from nor was chosen by" in found.facts["told"]


def test_ties_and_copies_are_left_out_and_counted(tmp_path: Path) -> None:
    """O-05, O-12."""
    rows = [
        {"prompt": row["prompt"], "first": row["chosen"], "second": row["rejected"], "preference": "first"}
        for row in exams.rows(14, seed=0)
    ]
    rows[0]["preference"] = "tie"
    found = read_held(exams.write(tmp_path / "p.jsonl", [*rows, rows[5]]), None)
    assert len(found.pairs) == 13
    assert found.facts["left_out"] == {"duplicate rows": 1, "ties": 1}


def test_prompts_that_differ_in_case_are_one_unit_with_one_first_answer(tmp_path: Path) -> None:
    rows = exams.rows(12, seed=0)
    rows[1]["prompt"] = rows[0]["prompt"].upper()
    found = read_held(exams.write(tmp_path / "p.jsonl", rows), None)
    assert found.facts["prompts"] == 11
    assert len(found.firsts()) == 11
    assert found.answers[found.firsts()[0]] == rows[0]["chosen"]


def test_too_few_pairs_are_refused_with_what_is_known(tmp_path: Path) -> None:
    rows = exams.rows(12, seed=0)
    file = exams.write(tmp_path / "p.jsonl", rows)
    learned = {prompt_key(row).hex() for row in read_preferences(file)[0][:5]}
    with pytest.raises(
        Refusal, match=r"holds 7 pairs .*it knows 5 of 12 rows\); an exam needs 10 or more: give pairs of other prompts"
    ):
        read_held(file, learned)


def test_soft_labels_tell_their_ceiling(tmp_path: Path) -> None:
    """A judge who always takes the likelier side is right in the mean of max(p, 1 - p): (.9 + .7) / 2."""
    rows: Any = [
        {"prompt": f"p{place}", "first": "a", "second": "b", "probability": 0.9 if place % 2 else 0.3}
        for place in range(20)
    ]
    found = read_held(exams.write(tmp_path / "p.jsonl", rows), None)
    assert found.ceiling["ceiling"] == pytest.approx(0.8)
    assert found.ceiling["source"] == "soft labels"


def test_annotators_tell_the_ceiling_by_their_agreement(tmp_path: Path) -> None:
    """Three who always agree leave next to no noise; the same labels of one alone show none at all."""
    rows = [row | {"annotator": name} for row in exams.rows(60, seed=0) for name in ("ana", "ben", "cleo")]
    found = read_held(exams.write(tmp_path / "p.jsonl", rows), None)
    assert found.ceiling["source"] == "agreement of annotators"
    assert found.ceiling["ceiling"] > 0.9
    alone = read_held(exams.write(tmp_path / "q.jsonl", rows[::3]), None)
    assert alone.ceiling["ceiling"] is None
    assert alone.ceiling["reason"] == "one annotator alone shows no noise"


def test_a_prompt_that_a_model_cannot_read_is_named_by_its_line(tmp_path: Path) -> None:
    """The chat template refuses what spells a mark of the chat; its line is told, before any answer is scored."""
    rows = exams.rows(12, seed=0)
    rows[4]["prompt"] = f"Say {END}."
    file = exams.write(tmp_path / "p.jsonl", rows)
    framed, plain = Texts(tokenizer()).prompt, Texts(tokenizer(template=False)).prompt
    with pytest.raises(Refusal, match=r"p\.jsonl, line 5: A turn of the user spells .*--skip-bad leaves such rows out"):
        read_held(file, None, readers=[plain, framed])
    assert len(read_held(file, None, readers=[plain]).pairs) == 12
    found = read_held(file, None, readers=[plain, framed], skip_bad=True)
    assert len(found.pairs) == 11
    assert found.facts["left_out"] == {"rows whose prompt a model cannot read": 1}


def test_only_prompts_that_are_examined_are_read_and_each_of_them_once(tmp_path: Path) -> None:
    """Twelve prompts in two rows each; the two that were learned from might be unreadable, nobody asks."""
    rows = exams.rows(12, seed=0)
    again = [row | {"chosen": row["chosen"] + " Indeed."} for row in rows]
    learned = {text_key(row["prompt"]).hex() for row in rows[:2]}
    asked: list[object] = []
    found = read_held(exams.write(tmp_path / "p.jsonl", rows + again), learned, readers=[asked.append])
    assert sorted(map(str, asked)) == sorted(row["prompt"] for row in rows[2:])
    assert len(found.pairs) == 20
