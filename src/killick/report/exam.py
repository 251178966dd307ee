"""The page of an exam, from its folder alone: the verdict first, then why, then every number."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from killick.report.drawing import draw_figures, reason
from killick.report.exam_figures import exam_makers
from killick.report.exam_tables import exam_tables
from killick.report.page import Drawn, environment, table_cells
from killick.rundir.durable import replace_file
from killick.rundir.folder import flat
from killick.rundir.ledger import read_rows
from killick.types import Refusal

LEVELS = {"no": "No.", "little": "Only a little.", "yes": "Yes, so far."}
"""Level of a verdict -> the first words of the page."""
WEIGHTS = {"stop": "speaks against it", "limit": "limits it", "good": "speaks for it", "note": "to know"}


def draw_exam(folder: Path) -> list[str]:
    """Write `figures/*.pdf`, `figures/*.png` and `report.html` from what the folder holds; all older ones go.

    Returns:
        What is missing, one sentence each; empty when all is well.

    Raises:
        Refusal: where the exam is not finished, or its numbers are damaged.
    """
    facts = content(folder / "results.json")
    samples, problems = list[dict[str, Any]](), list[str]()
    try:
        samples = read_rows(folder / "samples.jsonl")
    except Refusal as refusal:
        problems.append(str(refusal))
    drawn, missing = draw_figures(folder, exam_makers(facts, samples))
    problems += missing
    settings = {name: content(folder / f"{name}.json") for name in ("config", "environment")}
    try:
        text = exam_page(facts, drawn, problems=problems, settings=settings)
        replace_file(folder / "report.html", text.encode("utf-8", "xmlcharrefreplace"))
    except Exception as error:  # a page that fails loses no figure and no number
        problems.append(f"report.html is missing: {reason(error)}.")
    return problems


def content(path: Path) -> dict[str, Any]:
    """A JSON file of the folder.

    Raises:
        Refusal: where it is not there, or is damaged.
    """
    if not path.exists():
        raise Refusal(
            f"{path} is missing: this exam is not finished; run killick reward exam again with the same --out."
        )
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise Refusal(f"{path} is damaged ({error}); examine again into another folder.") from error
    if not isinstance(found, dict):
        raise Refusal(f"{path} is damaged; examine again into another folder.")
    return found


def exam_page(
    facts: Mapping[str, Any],
    drawn: Sequence[Drawn],
    *,
    problems: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
) -> str:
    """The page as HTML.

    Args:
        facts: results.json.
        drawn: the figures.
        problems: what is missing, told at the top.
        settings: the run's `config` and `environment`.
    """
    reasons = [each | {"kind": WEIGHTS[each["weight"]]} for each in facts["verdict"]["reasons"]]
    return environment().get_template("exam.html.j2").render(
        facts=facts,
        first=LEVELS[facts["verdict"]["level"]],
        reasons=reasons,
        tables=[table_cells(table) for table in exam_tables(facts)],
        figures=[(each.picture, Markup(each.svg)) for each in drawn],
        problems=problems,
        settings=flat(settings["config"]),
        environment=flat(settings["environment"]),
    )  # fmt: skip
