"""One page that says what a run found: self-contained, every text escaped, no script, no request to anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from killick.report.picture import Picture, kl_column
from killick.report.reading import Arm, Row, Shown
from killick.report.words import number, verdict
from killick.rundir.folder import flat

KINDS = {"claim": "of the source", "setting": "a setting", "ours": "our own"}
BESIDE, BELOW = 6, 24
"""Answers of one step, and steps of one arm, that a page shows at most."""
CITE = """@software{{killick,
  title = {{killick: RLHF from preferences to policy, with the anchor in view}},
  author = {{{{The killick authors}}}},
  version = {{{version}}},
  note = {{recipe {recipe}, seeds {seeds}, commit {commit}}}
}}"""


@dataclass(frozen=True)
class Drawn:
    """A picture with its SVG, ready to stand in the page."""

    picture: Picture
    svg: str


def page(shown: Shown, drawn: Sequence[Drawn], *, problems: Sequence[str] = (), question: str = "") -> str:
    """The page as HTML.

    Args:
        shown: the run.
        drawn: its figures, in order.
        problems: what is missing, told at the top.
        question: of the recipe; else the one of `results.json`.
    """
    kl = kl_column(shown.arms)
    template = environment().get_template("report.html.j2")
    return template.render(
        shown=shown,
        question=question or shown.results.get("question") or "What did optimising against the proxy do to gold?",
        verdict=shown.results.get("verdict") or verdict(shown, kl),
        ends=[end(arm, kl) for arm in shown.arms],
        claims=[claim_row(claim) for claim in shown.results.get("claims", [])],
        tables=[table_cells(table) for table in shown.results.get("tables", [])],
        figures=[(each.picture, Markup(each.svg)) for each in drawn],
        answers=answers(shown.samples),
        beside=any("reference" in row for row in shown.samples),
        spent=spent(shown.timing),
        settings=flat(shown.config),
        environment=flat(shown.environment),
        problems=problems,
        cite=cite(shown),
    )


def environment() -> Environment:
    """Templates that escape every value."""
    found = Environment(
        loader=PackageLoader("killick.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    found.filters["number"] = number
    return found


def end(arm: Arm, kl: str) -> dict[str, Any]:
    """Where one arm ended: each column with its deviation over seeds."""
    return {"arm": arm.name} | {
        name: number(value) + (f" ± {number(deviation)}" if deviation == deviation else "")
        for name, (value, deviation) in (
            ("proxy", arm.final("proxy")),
            ("gold", arm.final("gold")),
            ("kl", arm.final(kl)),
        )
    }


def claim_row(claim: Row) -> dict[str, str]:
    """One claim in words: what the source says, the band, what was measured, whether it holds."""
    low, high = claim.get("low"), claim.get("high")
    if low is None and high is None:
        band = "-"
    elif low is None or high is None:
        band = f"at most {number(high)}" if low is None else f"at least {number(low)}"
    else:
        band = f"{number(low)} to {number(high)}"
    spread = claim.get("spread")
    return {
        "arm": claim.get("arm") or "-",
        "text": claim.get("text") or claim.get("id") or "-",
        "source": claim.get("source") or "-",
        "expected": number(claim.get("expected")),
        "band": band,
        "measured": number(claim.get("measured")) + ("" if spread is None else f" ± {number(spread)}"),
        "unit": claim.get("unit") or "",
        "kind": KINDS.get(claim.get("kind", ""), str(claim.get("kind", "-"))),
        "holds": "a setting" if claim.get("holds") is None else "holds" if claim["holds"] else "does not hold",
    }


def table_cells(table: Row) -> dict[str, Any]:
    """A recipe's table as text, each cell with whether it is a number (None is the dash of either)."""
    numeric = [not any(isinstance(row[place], str) for row in table["rows"]) for place in range(len(table["columns"]))]
    heads = list(zip(table["columns"], numeric, strict=True))
    rows = [[(number(value, 3), right) for value, right in zip(row, numeric, strict=True)] for row in table["rows"]]
    return {"title": table["title"], "note": table["note"], "heads": heads, "rows": rows}


def answers(samples: Sequence[Row]) -> dict[str, dict[int, list[Row]]]:
    """Answers by arm and step, of the first seed that has any; where a run keeps all of them, a few at a few steps."""
    found: dict[str, dict[int, list[Row]]] = {}
    seed = min((row["seed"] for row in samples), default=0)
    for row in sorted((row for row in samples if row["seed"] == seed), key=lambda row: (row["arm"], row["step"])):
        there = found.setdefault(row["arm"], {}).setdefault(row["step"], [])
        if len(there) < BESIDE:
            there.append(row)
    return {arm: spread(steps) for arm, steps in found.items()}


def spread(steps: dict[int, list[Row]]) -> dict[int, list[Row]]:
    """All steps, or so many of them, evenly apart, with the first and the last."""
    every = list(steps)
    if len(every) <= BELOW:
        return steps
    kept = sorted({round(place * (len(every) - 1) / (BELOW - 1)) for place in range(BELOW)})
    return {every[place]: steps[every[place]] for place in kept}


def spent(timing: Sequence[Row]) -> list[tuple[str, float, float]]:
    """CPU and wall seconds of each part over all cells, the dearest first; then their sum."""
    found: dict[str, tuple[float, float]] = {}
    for row in timing:
        cpu, wall = found.get(row["part"], (0.0, 0.0))
        found[row["part"]] = cpu + row["cpu_s"], wall + row["wall_s"]
    rows = sorted(((part, *seconds) for part, seconds in found.items()), key=lambda row: -row[1])
    return [*rows, ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))] if rows else []


def cite(shown: Shown) -> str:
    """A BibTeX entry that names the version, the recipe and the seeds."""
    version = shown.environment.get("packages", {}).get("killick", "unknown")
    seeds = ", ".join(map(str, sorted({seed for arm in shown.arms for seed in arm.seeds}))) or "none"
    commit = shown.environment.get("commit") or "unknown"
    return CITE.format(version=version, recipe=shown.recipe, seeds=seeds, commit=commit)
