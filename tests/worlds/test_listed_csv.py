"""A table from CSV: what a spreadsheet saves comes out whole, and what is wrong is told by line and column."""

import csv
import io
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from killick.types import Refusal
from killick.worlds.listed import FIVE
from killick.worlds.listed_csv import MOST, read_table

GOOD = """answer,p_ref,reward,gold
"on brand, clean",0.30,1,1
"on brand, plain",0.35,0.7,0.7
repeats a word,0.15,-0.5,-0.5
wrong material,0.15,-0.8,-0.8
repair promise three times,0.05,1.6,-1
"""


def separated(mark: str) -> bytes:
    """The same rows, written by a spreadsheet that separates cells in another way."""
    out = io.StringIO()
    csv.writer(out, delimiter=mark).writerows(csv.reader(io.StringIO(GOOD)))
    return out.getvalue().encode()


@pytest.mark.parametrize(
    "data",
    [
        GOOD.encode(),
        GOOD.encode("utf-8-sig"),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\n\n").encode(),
        separated("\t"),
        separated(";").replace(b"p_ref;reward", b" P_Ref ;REWARD"),
    ],
    ids=["plain", "byte order mark", "carriage returns", "blank lines", "tabs", "semicolons"],
)
def test_the_five_answers_come_out_of_what_a_spreadsheet_saves(data: bytes) -> None:
    table = read_table(data)
    assert table.answers == FIVE.answers
    assert (table.reference.tolist(), table.reward.tolist()) == (FIVE.reference.tolist(), FIVE.reward.tolist())
    assert table.gold is not None
    assert FIVE.gold is not None
    assert table.gold.tolist() == FIVE.gold.tolist()
    assert (table.marked, table.notes) == (None, ())


def test_columns_may_stand_in_any_order_and_others_are_told() -> None:
    table = read_table("note,REWARD, p_ref ,gaming\nä,1,0.5,yes\nβ,-2e-1,.5,0\n".encode())
    assert table.answers == ("answer 1", "answer 2")
    assert (table.reward.tolist(), table.gold) == ([1, -0.2], None)
    assert table.gaming is not None
    assert table.gaming.tolist() == [True, False]
    assert table.notes == ("Columns that are not read: note.",)


def test_rounded_probabilities_are_divided_by_their_sum_and_that_is_told() -> None:
    table = read_table(b"p_ref,reward\n0.333,1\n0.333,2\n0.333,3\n")
    assert table.reference.tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert table.notes == ("p_ref sums to 0.999, near enough to be rounded numbers, and was divided by that.",)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["empty", "p_ref and reward"]),
        ("\n ,\n", ["empty"]),
        ("p_ref,reward", ["0 answers", "two or more"]),
        ("p_ref,reward\n1,1", ["1 answers", "two or more"]),
        ("p_ref,gold\n.5,1\n.5,1", ["first line", "no column reward", "p_ref, gold"]),
        ("pref,reward\n.5,1\n.5,1", ["first line", "no column p_ref", "is it 'pref'?"]),
        ("p_ref,reward,P_REF\n.5,1,1\n.5,1,1", ["first line", "p_ref twice"]),
        ("p_ref,reward\n.5,1\n-.5,1", ["Line 3, column p_ref", "-0.5"]),
        ("p_ref,reward\n1.5,1\n.5,1", ["Line 2, column p_ref", "1.5"]),
        ("p_ref,reward\n.5,1\n.4,1", ["p_ref sums to 0.9"]),
        ("p_ref,reward\n0,1\n0,1", ["p_ref sums to 0 over"]),
        ("p_ref,reward\nnan,1\n.5,1", ["Line 2, column p_ref", "'nan'"]),
        ("p_ref,reward\n.5,1\n.5,1e308", ["Line 3, column reward", "'1e308' is too far from 0"]),
        ("p_ref,reward,gold\n.5,1,-2e100\n.5,1,1", ["Line 2, column gold", "'-2e100'", "1e+100"]),
        ("p_ref,reward\n.5,1\n\n.5,inf", ["Line 4, column reward", "'inf'"]),
        ("p_ref,reward,gold\n.5,1,1\n.5,1,", ["Line 3, column gold", "an empty cell"]),
        ("p_ref,reward\n.5,one\n.5,1", ["Line 2, column reward", "'one' is no number."]),
        ("p_ref;reward\n0,5;1\n0,5;1", ["Line 2, column p_ref", "'0,5'", "with a point"]),
        ("p_ref,reward\n0,5,1\n.5,1", ["Line 2 has 3 cells", "2 columns"]),
        ("p_ref,reward\n.5\n.5,1", ["Line 2 has 1 cells"]),
        ("answer,p_ref,reward\na,.5,1\nb,.25,1\na,.25,1", ["Line 4, column answer", "'a'", "line 2"]),
        ("p_ref,reward,gaming\n.5,1,maybe\n.5,1,1", ["Line 2, column gaming", "'maybe'"]),
        ('answer,p_ref,reward\n"a,.5,1\nb,.5,1', ["Line", "cannot be read"]),
        ('"p_ref,reward\n.5,1', ["Line", "cannot be read"]),
        ("p_ref,reward\n.5,1\0\n.5,1", ["Line 2", "zero byte"]),
        ("p_ref,reward\n" + "x" * 1000 + ",1\n.5,1", ["Line 2, column p_ref", "…"]),
    ],
)
def test_what_is_wrong_is_one_sentence_with_line_and_column(text: str, parts: list[str]) -> None:
    with pytest.raises(Refusal) as error:
        read_table(text.encode())
    said = str(error.value)
    assert len(said) < 400
    assert len(said.splitlines()) == 1
    for part in parts:
        assert part in said


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ("answer,p_ref,reward\nä,.5,1\nüb é,.5,1".encode("latin-1"), ["Line 2, character 1", "0xE4", "UTF-8"]),
        ("answer,p_ref,reward\nä,.5,1\n".encode() + b"\xff", ["Line 3, character 1", "0xFF"]),
        ("äöü,".encode() + b"\xe9", ["Line 1, character 5", "0xE9"]),
        (GOOD.encode("utf-16"), ["Line 1, character 1", "0xFF", "UTF-8"]),
    ],
)
def test_another_encoding_is_told_by_the_first_byte_that_does_not_fit(data: bytes, parts: list[str]) -> None:
    with pytest.raises(Refusal) as error:
        read_table(data)
    for part in parts:
        assert part in str(error.value)


def test_a_table_may_be_long_but_not_endless() -> None:
    head, row = "p_ref,reward\n", f"{1 / MOST},1\n"
    assert len(read_table((head + row * MOST).encode()).answers) == MOST
    with pytest.raises(Refusal, match=f"Line {MOST + 2}.*{MOST} answers at most"):
        read_table((head + row * (MOST + 1)).encode())


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='p_refwad,;\t\n"0.5', max_size=80).map(str.encode))
def test_whatever_comes_is_a_table_or_one_sentence(data: bytes) -> None:
    with suppress(Refusal):
        assert float(read_table(data).reference.sum()) == pytest.approx(1, abs=1e-12)
