"""`killick tilt` as a user gives it: the source's tables, a person's own, and one sentence for what cannot be."""

import csv
from pathlib import Path

import pytest

from commands import Command, command

killick = pytest.fixture(command)
OWN = "answer,p_ref,reward,gold\nshort,0.5,0,1\nlong,0.4,1,2\nflattery,0.1,3,-2\n"


def cells(out: str, name: str) -> list[float | None]:
    """The numbers of the line that begins so."""
    line = next(line for line in out.splitlines() if line.startswith(name))
    return [None if word == "-" else float(word) for word in line[len(name) :].split()]


def test_it_prints_both_tables_of_the_source(killick: Command) -> None:
    said = killick("tilt")
    assert (said.status, said.err) == (0, "")
    assert cells(said.out, "second ") == [0.2, 1, 0.216, 0.405, 0.649, 0.932]
    # Reward, gold, KL and gaming share as the source rounds them.
    for beta, *row in (
        (10, 0.48, 0.34, 0.00, 6), (2, 0.67, 0.45, 0.06, 8), (1, 0.83, 0.50, 0.18, 13),
        (0.5, 1.03, 0.39, 0.47, 25), (0.25, 1.31, -0.19, 1.29, 58), (0.1, 1.59, -0.97, 2.88, 98),
    ):  # fmt: skip
        reward, gold, kl, bound, gaming, _ = cells(said.out, f"beta {beta:g} ")
        assert (reward, gold, kl) == pytest.approx(row[:3], abs=5.1e-3)
        assert gaming == pytest.approx(row[3], abs=0.5)
        assert bound is None
    assert cells(said.out, "best of 4 ")[:4] == [1.048, 0.566, 0.573, 0.636]
    assert "No beta gives more gold than 0.4997 (beta 0.953, KL 0.191 nats)" in said.out
    assert "best of 2 (0.5635), best of 4 (0.5656)." in said.out


def test_other_betas_and_ns_are_taken(killick: Command) -> None:
    """At beta 0 the best answer alone: reward 1.6, gold -1, KL log 20, win rate .975."""
    said = killick("tilt", "--betas", "0", "--ns", "3")
    assert cells(said.out, "beta 0 ") == [1.6, -1, 2.996, None, 100, 0.975]
    assert "best of 3 " in said.out
    assert "best of 2 " not in said.out


def test_a_table_of_ones_own_is_read_drawn_and_kept(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    said = killick("tilt", "--table", "own.csv", "--betas", "1", "--out", "pictures/here")
    assert (said.status, said.err) == (0, "")
    assert "3 answers of own.csv" in said.out
    assert "Two answers" not in said.out
    # .5, .4 e, .1 e^3 over 3.5959; flattery's reward is above its gold.
    assert cells(said.out, "flattery ") == [0.1, 3, -2, 0.559]
    folder = tmp_path / "pictures" / "here"
    assert sorted(path.name for path in folder.iterdir()) == ["leash.csv", "leash.pdf", "leash.png"]
    assert (folder / "leash.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "leash.pdf").read_bytes().startswith(b"%PDF")
    with (folder / "leash.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["policy"]: row for row in csv.DictReader(file)}
    assert float(rows["beta 1"]["gaming"]) == pytest.approx(0.55857, abs=1e-5)
    assert float(rows["reference"]["kl"]) == 0
    assert float(rows["best of 2"]["kl_bound"]) == pytest.approx(0.193147, abs=1e-6)


def test_a_table_without_gold_says_what_it_cannot_say(killick: Command, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("p_ref,reward,who\n.333,0,a\n.333,1,b\n.333,2,c\n", encoding="utf-8")
    said = killick("tilt", "--table", "own.csv")
    assert said.status == 0
    assert "Columns that are not read: who." in said.out
    assert "divided by that" in said.out
    assert "nobody knows which beta is best" in said.out
    assert cells(said.out, "reference ")[1] is None


def test_of_a_long_table_the_answers_that_the_longest_leash_likes_are_shown(killick: Command, tmp_path: Path) -> None:
    rows = "".join(f"0.01,{number},{number}\n" for number in range(100))
    (tmp_path / "own.csv").write_text("p_ref,reward,gold\n" + rows, encoding="utf-8")
    said = killick("tilt", "--table", "own.csv", "--betas", "5", "1")
    shown = [line for line in said.out.splitlines() if line.startswith("answer ")][1:]
    assert [line.split()[1] for line in shown] == [str(number) for number in range(100, 80, -1)]
    assert "Of 100 answers the 20 that beta 1" in said.out
    assert "No beta gives more gold than 99.0000 (beta 0," in said.out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--table", "nowhere.csv"], ["nowhere.csv cannot be read", "No such file"]),
        (["--table", "."], ["cannot be read", "directory"]),
        (["--table", "bad.csv"], ["Line 3, column p_ref", "-0.5"]),
        (["--betas", "-1"], ["--betas", "-1"]),
        (["--betas", "nan"], ["--betas", "nan"]),
        (["--betas", "x"], ["--betas", "x"]),
        (["--ns", "0"], ["--ns", "0"]),
        (["--beta", "1"], ["did you mean --betas?"]),
        (["--out", "bad.csv"], ["bad.csv cannot be written", "another folder"]),
        (["own.csv"], ["takes no 'own.csv'"]),
    ],
)
def test_what_cannot_be_is_one_sentence(killick: Command, tmp_path: Path, words: list[str], parts: list[str]) -> None:
    (tmp_path / "bad.csv").write_text("p_ref,reward\n.5,1\n-.5,1\n", encoding="utf-8")
    said = killick("tilt", *words)
    assert said.status == 2
    assert len(said.err.splitlines()) == 1
    for part in parts:
        assert part in said.err


def test_its_help_tells_what_a_table_needs(killick: Command) -> None:
    said = killick("tilt", "--help")
    assert said.status == 0
    for word in ("p_ref", "gaming", "--betas", "--table", "--out"):
        assert word in said.out
