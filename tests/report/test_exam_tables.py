"""Tables of an exam: each row fits its head, and what is not known is a dash with its reason."""

import pytest

import exams
from killick.report.exam_tables import SHOWN, exam_tables, short


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    return exams.held(tmp_path_factory.mktemp("exam") / "p.jsonl", 40)


def test_every_row_fits_its_head(held):
    for setup in (exams.setup(exams.GOOD, gold=exams.GOOD, prompts=4), exams.setup(exams.RANDOM, speak=None)):
        for table in exam_tables(exams.facts(held, setup)):
            assert {len(row) for row in table["rows"]} == {len(table["columns"])}, table["title"]


def test_what_is_not_known_has_its_reason(held):
    facts = exams.facts(held, exams.setup(exams.CONSTANT, speak=None))
    rows = {row[0]: row[1:] for row in exam_tables(facts)[0]["rows"]}
    assert rows["ceiling"] == [None, None, None, "not known: the file names no annotators and has no soft labels"]
    assert rows["temperature"][0] is None
    assert "knowing nothing" in rows["temperature"][3]
    assert "40 equal scores count half" in rows["accuracy"][3]
    assert "deviation within a prompt" not in rows


def test_answers_to_be_read_come_with_their_scores(held):
    facts = exams.facts(held, exams.setup(exams.RANDOM, gold=exams.GOOD, prompts=4))
    tables = {table["title"]: table for table in exam_tables(facts)}
    liked = tables["Read: what it likes best"]
    assert liked["columns"][-1] == "gold"
    assert [row[2] for row in liked["rows"]] == sorted((row[2] for row in liked["rows"]), reverse=True)
    wrong = tables["Read: its surest mistakes"]["rows"]
    assert all(row[4] > row[2] for row in wrong)


def test_a_long_text_is_cut():
    assert short("x" * SHOWN) == "x" * SHOWN
    assert short("x" * (SHOWN + 1)) == "x" * (SHOWN - 2) + " …"
