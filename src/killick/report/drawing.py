"""From a run's folder to its figures and its page; what cannot be drawn is told, and takes nothing else with it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from killick.report.figures import makers
from killick.report.page import Drawn, page
from killick.report.picture import Picture
from killick.report.reading import read_run
from killick.report.style import WIDTH, inline, render
from killick.rundir.durable import replace_file


def draw(folder: Path, *, question: str = "") -> list[str]:
    """Write `figures/*.pdf`, `figures/*.png` and `report.html` from what the folder holds; all older ones go.

    A run that is not finished is drawn as far as it went.

    Args:
        folder: of a run.
        question: what the recipe asks, for the head of the page; else `results.json` may tell it.

    Returns:
        What is missing or could not be read, one sentence each; empty when all is well.

    Raises:
        Refusal: where the folder holds no ledger, or a damaged one.
    """
    shown = read_run(folder)
    drawn, problems = draw_figures(folder, makers(shown))
    problems = shown.problems + problems
    try:
        text = page(shown, drawn, problems=problems, question=question)
        replace_file(folder / "report.html", text.encode())
    except Exception as error:  # a page that fails loses no figure and no run
        problems.append(f"report.html is missing: {reason(error)}.")
    return problems


def draw_figures(folder: Path, making: Mapping[str, Callable[[], Picture | None]]) -> tuple[list[Drawn], list[str]]:
    """Draw and write each figure; one that fails is named and passed over (O-54).

    Args:
        folder: its `figures` are these, and no others.
        making: name of a figure -> what makes it, None where there is nothing to show.
    """
    drawn, problems = [], []
    for name, make in making.items():
        try:
            picture = make()
            if picture is None:
                continue
            files = render(picture.paint, size=(WIDTH, picture.height))
            drawn.append(Drawn(picture, inline(files["svg"], name, label=picture.title)))
            (folder / "figures").mkdir(exist_ok=True)
            for kind in ("pdf", "png"):
                replace_file(folder / "figures" / f"{name}.{kind}", files[kind])
        except Exception as error:  # whatever a figure does, the others and the numbers stand
            problems.append(f"Figure {name} is missing: {reason(error)}.")
    remove_others(folder / "figures", [each.picture.name for each in drawn])
    return drawn, problems


def remove_others(folder: Path, names: Sequence[str]) -> None:
    """Remove the figures that this drawing did not make: what is shown is what the run holds now."""
    for path in [*folder.glob("*.pdf"), *folder.glob("*.png")]:
        if path.stem not in names:
            path.unlink()


def reason(error: Exception) -> str:
    """What went wrong, in one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0].rstrip(". ")
