"""Two runs laid over each other: a figure, a table of where each arm ended, and the settings that differ."""

from pathlib import Path

from matplotlib.figure import Figure

from killick.report.drawing import reason
from killick.report.picture import iterations, kl_column, trace
from killick.report.reading import Arm, Shown, read_run
from killick.report.style import WIDTH, render
from killick.report.words import number
from killick.rundir.durable import replace_file
from killick.rundir.folder import flat
from killick.types import Refusal


def compare(first: Path, second: Path, *, out: Path) -> str:
    """Write `compare.pdf`, `compare.png` and `compare.md` into `out`, and return the text of the last.

    Args:
        first: a run's folder.
        second: another's; arms are matched by name.
        out: a folder, made where it is missing.

    Raises:
        Refusal: where a folder holds no ledger or a damaged one, or where `out` cannot be written.
    """
    runs = read_run(first), read_run(second)
    text = "\n\n".join(("\n".join(heading(*runs)), "\n".join(table(*runs)), "\n".join(differences(*runs)))) + "\n"
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            names = shared(*runs)
            size = (max(WIDTH, 0.6 + 1.6 * len(names)), 4.2)
            files = render(lambda figure: overlay(figure, runs, names=names), size=size) if names else {}
        except Exception as error:  # the table stands without its figure
            files, text = {}, f"{text}\nThe figure is missing: {reason(error)}.\n"
        for kind in ("pdf", "png") if files else ():
            replace_file(out / f"compare.{kind}", files[kind])
        replace_file(out / "compare.md", text.encode())
    except OSError as error:
        raise Refusal(f"{out} cannot be written ({error.strerror}); name another folder.") from error
    return text


def shared(first: Shown, second: Shown) -> list[str]:
    """Arms of either run, those of the first in front."""
    return list(dict.fromkeys(arm.name for run in (first, second) for arm in run.arms))


def overlay(figure: Figure, runs: tuple[Shown, Shown], *, names: list[str]) -> None:
    """One column of panels for each arm, one line for each run."""
    columns = ("proxy", "gold", kl_column(runs[0].arms + runs[1].arms))
    grid = figure.subplots(3, len(names), sharex=True, sharey="row", squeeze=False)
    for place, name in enumerate(names):
        for axes, column in zip(grid[:, place], columns, strict=True):
            for index, run in enumerate(runs):
                for arm in (arm for arm in run.arms if arm.name == name):
                    trace(axes, arm, column=column, index=1 - index, label="second" if index else "first")
            iterations(axes, column, named=column == columns[-1])
            if place:
                axes.set_ylabel("")
        grid[0, place].set_title(name)
    figure.suptitle("Two runs, arm by arm")
    labelled = {label: line for axes in grid[0] for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend([labelled[key] for key in sorted(labelled)], sorted(labelled), loc="outside lower center", ncols=2)


def heading(first: Shown, second: Shown) -> list[str]:
    """Which is which."""
    return [f"first:  {first.folder} ({first.recipe})", f"second: {second.folder} ({second.recipe})"]


def table(first: Shown, second: Shown) -> list[str]:
    """Final proxy, gold and KL of each arm in both runs, as a Markdown table."""
    kl, names = kl_column(first.arms + second.arms), shared(first, second)
    rows = [["arm", *(f"{column}, {run}" for column in ("proxy", "gold", "KL") for run in ("first", "second"))]]
    for name in names:
        ends = [next((arm for arm in run.arms if arm.name == name), None) for run in (first, second)]
        rows.append([name, *(ended(arm, column) for column in ("proxy", "gold", kl) for arm in ends)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def ended(arm: Arm | None, column: str) -> str:
    """The last value, with its deviation over seeds."""
    value, deviation = arm.final(column) if arm else (float("nan"), float("nan"))
    return number(value) + (f" ± {number(deviation)}" if deviation == deviation else "")


def differences(first: Shown, second: Shown) -> list[str]:
    """Each setting that is not the same, with both values."""
    old, new = flat(first.config), flat(second.config)
    unlike = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    if not unlike:
        return ["The settings are the same."]
    return ["Settings that differ:", *(f"- {key}: {old.get(key, '-')} -> {new.get(key, '-')}" for key in unlike)]
