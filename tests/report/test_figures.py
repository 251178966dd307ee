import pytest
from matplotlib.figure import Figure

from folders import ledger_rows, lines, put, run_folder
from killick.report.figures import against_distance, digit_weights, makers, moves, moving_beta, overview, single, unfold
from killick.report.reading import read_run, split


def painted(picture):
    figure = Figure(figsize=(3.5, picture.height), layout="constrained")
    picture.paint(figure)
    return figure


def test_the_overview_has_one_panel_a_quantity_and_one_line_an_arm(tmp_path):
    figure = painted(overview(read_run(run_folder(tmp_path, steps=20))))
    assert [axes.get_ylabel().split(",")[0] for axes in figure.axes] == ["proxy", "gold", "KL", "accuracy"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "beta=0",
        "beta=0.1",
        "beta=0.1+ptx",
        "beta=1",
    ]


def test_another_recipe_shows_its_own_column_and_a_bare_one_leaves_the_place_empty(tmp_path):
    rows = ledger_rows("beta=0", 0, steps=5)
    for row in rows:
        del row["accuracy"]
    (tmp_path / "metrics.jsonl").write_text(lines([row | {"emphasis": 2.0} for row in rows]), encoding="utf-8")
    assert painted(overview(read_run(tmp_path))).axes[3].get_ylabel() == "emphasis,\ntokens per response"
    bare = [{key: row[key] for key in ("arm", "seed", "step", "proxy", "gold", "kl_k1")} for row in rows]
    (tmp_path / "metrics.jsonl").write_text(lines(bare), encoding="utf-8")
    figure = painted(overview(read_run(tmp_path)))
    assert figure.axes[2].get_ylabel().startswith("KL (k1)")
    assert not figure.axes[3].axison


def test_one_long_arm_does_not_squeeze_the_others(tmp_path):
    """Iterations by their logarithm past a quarter of the shortest arm; a legend of long names has two columns."""
    rows = [row for arm, steps in (("beta=0+a+very+long+name", 90), ("beta=1", 8)) for row in
            ledger_rows(arm, 0, steps=steps)]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text(lines(rows), encoding="utf-8")
    figure = painted(overview(read_run(tmp_path)))
    assert {axes.get_xscale() for axes in figure.axes} == {"symlog"}
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["0", "10"]
    assert figure.legends[0]._ncols == 2
    # An arm that shows every tenth step only is as long as its last step says, not as its rows.
    thin = [row for row in rows if row["arm"] == "beta=1" or row["step"] % 10 == 9]
    (tmp_path / "metrics.jsonl").write_text(lines(thin), encoding="utf-8")
    assert {axes.get_xscale() for axes in painted(overview(read_run(tmp_path))).axes} == {"symlog"}
    even = painted(overview(read_run(run_folder(tmp_path / "even", steps=8))))
    assert {axes.get_xscale() for axes in even.axes} == {"linear"}
    assert even.legends[0]._ncols == 3


def test_an_arm_shows_where_gold_was_best():
    (arm,) = split(ledger_rows("beta=0", 0, steps=120))
    picture = single(arm, "arm-beta-0")
    assert len(painted(picture).axes) == 3
    assert "dotted line marks the best gold" in picture.caption


def test_gold_against_distance_is_for_the_arm_without_a_leash_and_tells_its_fit(tmp_path):
    shown = read_run(run_folder(tmp_path / "one"))
    picture = against_distance(shown)
    assert "alpha" in picture.caption
    assert "resampled points" in picture.caption
    assert "arXiv 2210.10760" in picture.caption
    axes = painted(picture).axes[0]
    assert axes.collections[0].get_offsets().shape == (120, 2)
    assert axes.collections[0].get_offsets()[0].tolist() == [0, 0]  # gold at step 0 is the origin
    assert against_distance(read_run(run_folder(tmp_path / "held", arms=("beta=1",)))) is None


def test_three_seeds_are_resampled_as_seeds(tmp_path):
    caption = against_distance(read_run(run_folder(tmp_path, arms=("beta=0",), seeds=(0, 1, 2)))).caption
    assert "resampled seeds" in caption
    assert "Colours are seeds." in caption


def test_too_few_points_are_shown_without_a_curve(tmp_path):
    picture = against_distance(read_run(run_folder(tmp_path, arms=("beta=0",), steps=2)))
    assert picture.caption.startswith("No curve is fitted: A fit of gold against distance needs 3")
    assert len(painted(picture).axes[0].lines) == 0


def test_beta_is_drawn_only_where_it_moves(tmp_path):
    assert moving_beta(read_run(run_folder(tmp_path / "fixed", steps=10))) is None
    picture = moving_beta(read_run(run_folder(tmp_path / "moving", arms=("beta=1", "beta=0.1+target=2"), steps=10)))
    labels = [text.get_text() for text in painted(picture).legends[0].get_texts()]
    assert labels == ["beta=0.1+target=2", "target"]
    (arm,) = split([{"arm": "a", "seed": 0, "step": step, "beta": None} for step in range(3)])
    assert not moves(arm.columns["beta"][0])


def test_digit_weights_are_bars_with_their_values(tmp_path):
    folder = run_folder(tmp_path, steps=3, seeds=(0, 1))
    axes = painted(digit_weights(read_run(folder))).axes[0]
    assert [round(bar.get_height(), 2) for bar in axes.patches] == [0.4, -0.5] * 5
    assert [text.get_text() for text in axes.texts][:2] == ["+0.40", "-0.50"]
    stages = {"0": {"weights": {"0": 0.1, "end": -0.2}}, "1": {"weights": {"0": 0.3}}}
    put(folder / "stages.json", stages)
    heights = [bar.get_height() for bar in painted(digit_weights(read_run(folder))).axes[0].patches]
    assert heights == pytest.approx([0.2, -0.2])
    put(folder / "stages.json", {"0": {"sft_accuracy": 0.5}})
    assert digit_weights(read_run(folder)) is None


def test_arms_whose_names_look_alike_get_files_of_their_own(tmp_path):
    rows = [row | {"arm": arm} for arm in ("a b", "a-b", "a/b") for row in ledger_rows("beta=0", 0, steps=2)]
    (tmp_path / "metrics.jsonl").write_text(lines(rows), encoding="utf-8")
    names = [name for name in makers(read_run(tmp_path)) if name.startswith("arm-")]
    assert names == ["arm-a-b", "arm-a-b-again", "arm-a-b-again-again"]


def test_an_empty_ledger_has_no_figure(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("", encoding="utf-8")
    assert {make() for make in makers(read_run(tmp_path)).values()} == {None}


def test_a_kl_that_dwarfs_the_others_is_drawn_by_its_logarithm() -> None:
    scales = []
    for ends in ([105.0, 0.24], [3.0, 0.24], [0.5, 0.0], [float("nan"), 8.0]):
        axes = Figure().subplots()
        unfold(axes, ends)
        scales.append(axes.get_yscale())
    assert scales == ["symlog", "linear", "linear", "linear"]


def test_a_kl_by_its_logarithm_names_values_up_to_the_furthest() -> None:
    """3.7 nats lie far above a last tick of 1; at 105 nats there is room for whole powers of ten only."""
    named = []
    for ends in ([3.7, 0.09], [105.0, 0.24]):
        axes = Figure().subplots()
        unfold(axes, ends)
        named.append([text.get_text() for text in axes.get_yticklabels()])
    assert named == [["0", "0.5", "1", "2"], ["0", "0.5", "1", "10", "100"]]


def test_many_arms_are_shown_together_only(tmp_path):
    """Up to six have a figure each."""
    for count, alone in ((6, 6), (7, 0)):
        arms = tuple(f"beta={beta}" for beta in range(count))
        shown = read_run(run_folder(tmp_path / str(count), steps=3, arms=arms))
        assert sum(name.startswith("arm-") for name in makers(shown)) == alone
