import pytest
from matplotlib.figure import Figure

from folders import ledger_rows
from killick.report.picture import LABELS, OWN, iterations, kl_column, trace
from killick.report.reading import split


def lines_of(rows, column="gold"):
    (arm,) = split(rows)
    axes = Figure().subplots()
    trace(axes, arm, column=column, index=1, label="one")
    return axes


def test_one_seed_shows_each_iteration_faintly_behind_the_smoothed_line():
    axes = lines_of(ledger_rows("beta=0", 0, steps=20))
    faint, bold = axes.lines
    assert faint.get_alpha() < 1
    assert (bold.get_label(), bold.get_marker()) == ("one", "s")
    assert len(axes.collections) == 0


def test_several_seeds_show_a_band_of_one_deviation():
    axes = lines_of(ledger_rows("beta=0", 0, steps=20) + ledger_rows("beta=0", 1, steps=20))
    assert (len(axes.lines), len(axes.collections)) == (1, 1)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_few_points_all_carry_a_marker(steps):
    bold = lines_of(ledger_rows("beta=0", 0, steps=steps)).lines[-1]
    assert set(bold.get_markevery()) >= {steps - 1}


def test_a_column_that_was_not_measured_keeps_its_name_in_the_legend():
    rows = [row | {"gold": None} for row in ledger_rows("beta=0", 0, steps=4)]
    for axes in (lines_of(rows), lines_of(rows, "nothing")):
        (line,) = axes.lines
        assert (line.get_label(), len(line.get_xdata())) == ("one", 0)


def test_axes_are_named_with_their_unit():
    axes = Figure().subplots()
    iterations(axes, "kl")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "KL,\nnats per response")
    iterations(axes, "unheard_of", named=False)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("", "unheard_of")
    assert set(OWN) < set(LABELS)


def test_the_sampled_kl_stands_in_where_no_exact_one_is():
    rows = ledger_rows("beta=0", 0, steps=3)
    assert kl_column(split(rows)) == "kl"
    assert kl_column(split([row | {"kl": None} for row in rows])) == "kl_k1"
