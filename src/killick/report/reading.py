"""A run folder as arrays. A run that is not finished is read from its cells; only a damaged ledger is refused."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from killick.rundir.folder import cell_files
from killick.rundir.ledger import read_rows
from killick.types import Refusal

Row = dict[str, Any]
WINDOW = 5
"""Rows of the ledger that a smoothed curve averages: iterations, where every one has a row."""


@dataclass(frozen=True)
class Arm:
    """One arm's ledger: each column as one row a seed, NaN where nothing was measured."""

    name: str
    seeds: list[int]
    steps: Int[np.ndarray, " step"]
    columns: dict[str, Float[np.ndarray, "seed step"]]

    def has(self, column: str) -> bool:
        """Whether anything was measured there."""
        return column in self.columns and bool(np.isfinite(self.columns[column]).any())

    def mean(self, column: str) -> Float[np.ndarray, " step"]:
        """Mean over the seeds that have a value."""
        return masked_mean(self.columns[column])

    def deviation(self, column: str) -> Float[np.ndarray, " step"]:
        """Sample deviation over seeds; NaN where fewer than two have a value."""
        values = self.columns[column]
        count = np.isfinite(values).sum(0)
        square = np.nansum((values - masked_mean(values)) ** 2, axis=0)
        return np.sqrt(np.divide(square, count - 1, out=np.full(len(count), np.nan), where=count > 1))

    def smooth(self, column: str) -> Float[np.ndarray, " step"]:
        """The mean over seeds, averaged over a window of five rows (fewer at the ends)."""
        values, half = self.mean(column), WINDOW // 2
        padded = np.pad(values, half, constant_values=np.nan)
        smooth = masked_mean(np.lib.stride_tricks.sliding_window_view(padded, WINDOW).T)
        return np.where(np.isfinite(values), smooth, np.nan)

    def final(self, column: str) -> tuple[float, float]:
        """Mean and deviation over seeds at the last step that has a value; NaN for what there is not."""
        if not self.has(column):
            return np.nan, np.nan
        last = np.flatnonzero(np.isfinite(self.mean(column)))[-1]
        return float(self.mean(column)[last]), float(self.deviation(column)[last])


@dataclass(frozen=True)
class Shown:
    """Everything of one folder that can be shown.

    Args:
        folder: where it stands.
        arms: in order of beta, then of name.
        samples: answers on the way.
        stages: what was prepared before the arms, by seed.
        results: verdicts and cost; empty while the run is not finished.
        config: settings, nested.
        environment: what it ran on.
        problems: sentences about files that could not be read.
        timing: where the time of each cell went, by state interval and part.
    """

    folder: Path
    arms: list[Arm]
    samples: list[Row]
    stages: dict[str, Row]
    results: Row
    config: Row
    environment: Row
    problems: list[str] = field(default_factory=list)
    timing: list[Row] = field(default_factory=list)

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return str(self.config.get("recipe") or self.results.get("recipe") or "run")


def masked_mean(values: Float[np.ndarray, "seed step"]) -> Float[np.ndarray, " step"]:
    """Mean over the first axis without NaN; NaN where there is nothing."""
    count = np.isfinite(values).sum(0)
    return np.divide(np.nansum(values, axis=0), count, out=np.full(len(count), np.nan), where=count > 0)


def read_run(folder: Path) -> Shown:
    """Read what a run has left so far.

    Raises:
        Refusal: where there is no ledger, or where a line of it is cut or damaged.
    """
    rows, problems = read_ledger(folder), list[str]()

    def content(name: str) -> Row:
        try:
            found = json.loads((folder / name).read_bytes()) if (folder / name).exists() else {}
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            problems.append(f"{folder / name} is damaged; the report is drawn without it.")
        return found if isinstance(found, dict) else {}

    stages = content("stages.json")
    for path in sorted(folder.glob("cells/stages,seed=*.json")) if not stages else []:
        stages[path.stem.rpartition("=")[2]] = content(f"cells/{path.name}")

    def beside(kind: str) -> list[Row]:
        found: list[Row] = []
        for path in merged_or_cells(folder, kind, cells=kind):
            try:
                found += read_rows(path, growing=path.parent != folder)
            except Refusal as refusal:
                problems.append(str(refusal))
        return found

    samples, timing = beside("samples.jsonl"), beside("timing.jsonl")
    results, config, environment = (content(f"{name}.json") for name in ("results", "config", "environment"))
    return Shown(folder, split(rows), samples, stages, results, config, environment, problems, timing)


def read_ledger(folder: Path) -> list[Row]:
    """All rows of a run, sorted by arm, seed and step; of an unfinished one, the rows of its cells so far.

    Raises:
        Refusal: where there is no ledger, or naming the first line that is cut, damaged or of something else.
    """
    paths, rows = merged_or_cells(folder, "metrics.jsonl", cells="jsonl"), list[Row]()
    for path in paths:
        found = read_rows(path, growing=path.parent != folder)
        for number, row in enumerate(found, 1):
            if not (type(row.get("arm")) is str and type(row.get("seed")) is int and type(row.get("step")) is int):
                raise Refusal(f"{path}, line {number}: this is no row of a ledger; it needs arm, seed and step.")
        rows += found
    if not paths:
        raise Refusal(f"{folder} holds no ledger (metrics.jsonl or cells/); name the folder of a run.")
    return sorted(rows, key=lambda row: (row["arm"], row["seed"], row["step"]))


def merged_or_cells(folder: Path, name: str, *, cells: str) -> list[Path]:
    """The merged file of a run; of one that has not merged yet, what its cells have written of that kind."""
    return [folder / name] if (folder / name).exists() else cell_files(folder, kind=cells)


def split(rows: Iterable[Row]) -> list[Arm]:
    """Rows as arms, the loosest leash first."""
    named: dict[str, list[Row]] = {}
    for row in rows:
        named.setdefault(row["arm"], []).append(row)
    return [arm_of(name, named[name]) for name in sorted(named, key=order)]


def order(arm: str) -> tuple[float, str]:
    """Arms by their number, then by the rest of their name: beta=0.5 before beta=10."""
    found = re.match(r"\w+=([-+0-9.e]+?)(?:\+|$)", arm)
    try:
        return (float(found[1]), arm) if found else (np.inf, arm)
    except ValueError:
        return np.inf, arm


def slug(name: str) -> str:
    """A part of a file's name from any name: letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:80] or "unnamed"


def arm_of(name: str, rows: list[Row]) -> Arm:
    """The rows of one arm as arrays; what is no finite number becomes NaN."""
    seeds, steps = sorted({row["seed"] for row in rows}), sorted({row["step"] for row in rows})
    place = {(row["seed"], row["step"]): row for row in rows}
    keys = dict.fromkeys(key for row in rows for key in row if key not in ("arm", "seed", "step"))

    def number(value: Any) -> float:
        return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else np.nan

    columns = {
        key: np.array([[number(place.get((seed, step), {}).get(key)) for step in steps] for seed in seeds])
        for key in keys
    }
    return Arm(name, seeds, np.array(steps), columns)
