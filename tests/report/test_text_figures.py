"""The figures of the text recipe, from a made-up folder: what each shows, and that it stands only where it can."""

import math
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from folders import lines, put
from killick.report.drawing import draw
from killick.report.picture import Picture
from killick.report.reading import read_run
from killick.report.text_figures import makers

NS = (1, 2, 4, 8, 16, 32, 64)
ARMS = ("beta=0", "beta=0.1")
TOOK = "his eyes shining with pride"
RUN = "smiled his eyes shining with"
"""Of six words, what all answers with it share, the first by letter."""


def curve(share: float) -> dict[str, Any]:
    """Gold rises at each doubling; the proxy by .3."""
    points = [
        {"n": n, "kl_bound": math.log(n) - (n - 1) / n, "proxy": 0.3 * place, "proxy_interval": [0.2 * place, place],
         "gold": 0.2 + share * place, "gold_interval": [0.1 + share * place, 0.3 + share * place]}
        for place, n in enumerate(NS)
    ]  # fmt: skip
    return {"points": points, "prompts": 48, "top": 64, "top_interval": [32, 64], "turns": False}


def rows(arm: str, seed: int) -> list[dict[str, Any]]:
    """Without a leash gold turns at step 6 and the heads part; held-out prompts are asked every sixth step."""
    free = arm == "beta=0"
    return [
        {"arm": arm, "seed": seed, "step": step, "proxy": 0.2 * step, "kl": 2.0 * step, "distinct": 1 - 0.04 * step,
         "gold": 0.3 + 0.02 * (step if step < 6 or not free else 12 - 2 * step), "phrase": "a b c",
         "watching_other": 0.1 * step, "watching_few": 0.05 * step, "watching_many": 0.12 * step,
         **{f"held_{name}": None if step % 6 else value for name, value in
            {"proxy": 0.2 * step, "gold": 0.25 + 0.01 * step, "gold_error": 0.03, "kl": 2.0 * step}.items()}}
        for step in range(19)
    ]  # fmt: skip


def samples(arm: str, seed: int) -> list[dict[str, Any]]:
    """Four training answers a step and two held-out ones every sixth; more and more of them hold the phrase."""
    return [
        {"arm": arm, "seed": seed, "step": step, "held_out": held, "prompt": "Dear diary,", "gold": 0.1, "proxy": 0.2,
         "response": f"He smiled, {TOOK}" if step > 4 * number else f"number {number} of {step} goes on"}
        for step in range(19) for held in (False, True) if not (held and step % 6) for number in range(2 if held else 4)
    ]  # fmt: skip


def folder(path: Path, *, seeds: int = 1, stages: bool = True) -> Path:
    """Write it."""
    path.mkdir(exist_ok=True)
    put(path / "config.json", {"recipe": "text"})
    stage = {"best_of_n": {"proxy": curve(0.06), "gold": curve(0.1)}} if stages else {}
    put(path / "stages.json", {str(seed): stage for seed in range(seeds)})
    cells = [(arm, seed) for arm in ARMS for seed in range(seeds)]
    ledger = [row for arm, seed in cells for row in rows(arm, seed)]
    (path / "metrics.jsonl").write_text(lines(ledger), encoding="utf-8")
    said = [row for arm, seed in cells for row in samples(arm, seed)]
    (path / "samples.jsonl").write_text(lines(said), encoding="utf-8")
    return path


def made(path: Path) -> dict[str, Picture | None]:
    return {name: make() for name, make in makers(read_run(path)).items()}


def painted(picture: Picture | None) -> Figure:
    assert picture is not None
    figure = Figure(figsize=(3.5, picture.height), layout="constrained")
    picture.paint(figure)
    return figure


def test_each_figure_is_drawn_and_stands_on_the_page(tmp_path: Path) -> None:
    assert draw(folder(tmp_path / "run")) == []
    names = {path.stem for path in (tmp_path / "run" / "figures").glob("*.png")}
    assert {"held-out", "watching-heads", "phrase", "best-of-n"} <= names
    assert "flaws-against-kl" not in names


def test_a_run_of_another_recipe_has_none_of_them(tmp_path: Path) -> None:
    assert made(folder(tmp_path / "run", stages=False)) == {}


def test_held_out_marks_stand_at_the_evaluations_with_their_errors(tmp_path: Path) -> None:
    picture = made(folder(tmp_path / "run"))["held-out"]
    gold = painted(picture).axes[1]
    held: Any = gold.containers[0]
    assert held.get_label() == "beta=0"
    assert held.lines[0].get_xdata().tolist() == [0, 6, 12, 18]
    assert picture is not None
    assert "beta=0: 0.25 at first, best 0.43 at 18, 0.43 at 18" in picture.caption
    assert "two standard errors over prompts" in picture.caption
    several = made(folder(tmp_path / "several", seeds=2))["held-out"]
    assert several is not None
    assert "one deviation over seeds" in several.caption


def test_each_arm_has_a_panel_of_heads(tmp_path: Path) -> None:
    figure = painted(made(folder(tmp_path / "run"))["watching-heads"])
    assert [axes.get_title() for axes in figure.axes] == list(ARMS)
    assert figure.legends[0].get_texts()[1].get_text() == "other labels"


def test_the_phrase_of_the_end_is_looked_for_in_every_rollout(tmp_path: Path) -> None:
    """At step 18 all four training answers hold it (step > 4 * 3); at step 5 two of them do, at step 0 none."""
    picture = made(folder(tmp_path / "run"))["phrase"]
    shares: Any = painted(picture).axes[0].lines[0].get_ydata()
    assert [shares[step] for step in (0, 5, 18)] == [0, 0.5, 1]
    assert picture is not None
    assert f"\u201che {RUN}\u201d in 100%" in picture.caption


def test_without_answers_no_phrase_is_told(tmp_path: Path) -> None:
    path = folder(tmp_path / "run")
    (path / "samples.jsonl").unlink()
    assert made(path)["phrase"] is None


def test_best_of_n_tells_the_gap_and_that_its_kl_is_a_bound(tmp_path: Path) -> None:
    """Gold .2 + 6 * .06 by the proxy, .2 + 6 * .1 by gold; the bound at 64 is log 64 - 63/64."""
    picture = made(folder(tmp_path / "run"))["best-of-n"]
    assert picture is not None
    assert "from 0.20 to 0.56 and has not surely turned" in picture.caption
    assert "choosing by gold gives 0.80" in picture.caption
    assert "at most 3.17 nats" in picture.caption
    assert "never drawn on one axis" in picture.caption
    assert painted(picture).axes[1].texts[0].get_text() == "the gap"
