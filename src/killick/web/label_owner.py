"""What the owner of a store sees: everybody's progress, where they disagree, and the labels as a file."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from killick.preferences.asking import export_form, labelled_row
from killick.preferences.store import Annotator, Conflict, Item, Label
from killick.preferences.writing import write
from killick.web.pages import HEADERS, page
from killick.web.passages import passages
from killick.web.people import Desk

SHOWN = 50
"""Conflicts on the page; the export has them all."""


def owner_pages(desk: Desk) -> APIRouter:
    """The owner's view and the export."""
    router = APIRouter()

    @router.get("/label/owner")
    def owner(request: Request) -> Response:
        """Everybody's work."""
        annotator = desk.owning(request)
        labels = list(desk.store.export())
        conflicts = list(desk.store.conflicts())
        noted = [(item, label) for item, label in labels if label.judgement.note or label.judgement.flags]
        return page(
            "label_owner.html.j2", annotator=annotator.name, alone=desk.alone is not None,
            total=desk.store.progress(), people=[person(desk, one, labels) for one in desk.store.annotators()],
            agreement=[],
            conflicts=[told(one) for one in conflicts[:SHOWN]], more_conflicts=max(0, len(conflicts) - SHOWN),
            noted=[remark(*one) for one in noted[:SHOWN]], more_noted=max(0, len(noted) - SHOWN),
        )  # fmt: skip

    @router.get("/label/export.jsonl")
    def export(request: Request) -> Response:
        """Every label that holds, as preference rows; skips hold no preference and stay out."""
        desk.owning(request)
        headers = {**HEADERS, "content-disposition": 'attachment; filename="labels.jsonl"'}
        return StreamingResponse(lines(desk), media_type="application/x-ndjson", headers=headers)

    return router


def lines(desk: Desk) -> Iterator[str]:
    """One JSON object a label: a row of a form of preference files, and behind it what else the store knows."""
    form = export_form(item for item, _ in desk.store.export())
    for item, label in desk.store.export():
        if label.judgement.skipped:
            continue
        row = labelled_row(item, label)
        beside = {
            "item": label.item, "flags": list(label.judgement.flags), "note": label.judgement.note,
            "seconds": label.judgement.seconds, "at": label.at, "guidelines": label.guidelines,
            "metadata": dict(item.metadata),
        }  # fmt: skip
        for record in write(row, form).records:
            yield json.dumps({**record, **beside}) + "\n"


def person(desk: Desk, annotator: Annotator, labels: list[tuple[Item, Label]]) -> dict[str, Any]:
    """One line of the table of annotators."""
    mine = [(item, label) for item, label in labels if label.annotator == annotator.name]
    decided = [
        label.judgement.ranking[0] == (label.order[0],)
        for item, label in mine
        if item.kind == "pair" and len(label.judgement.ranking) == 2
    ]
    return {
        "name": annotator.name,
        "progress": desk.store.progress(annotator),
        "ties": sum(any(len(group) > 1 for group in label.judgement.ranking) for _, label in mine),
        "flags": sum(bool(label.judgement.flags) for _, label in mine),
        "first": f"{sum(decided) / len(decided):.2f}" if decided else "-",
    }


def told(conflict: Conflict) -> dict[str, Any]:
    """A conflict as a reader needs it: the candidates by letter, and who put which first."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def name(number: int) -> str:
        return letters[number] if number < len(letters) else str(number + 1)

    return {
        "prompt": passages(conflict.item.prompt),
        "candidates": [
            {"name": name(number), "parts": passages(text)} for number, text in enumerate(conflict.item.candidates)
        ],
        "answers": [
            (one.annotator, " > ".join(" = ".join(map(name, group)) for group in one.judgement.ranking))
            for one in conflict.labels
        ],
    }


def remark(item: Item, label: Label) -> dict[str, Any]:
    """A flag or a note with the item that it is about."""
    said = label.judgement
    return {
        "annotator": label.annotator, "item": label.item, "flags": said.flags, "note": said.note,
        "prompt": passages(item.prompt),
    }  # fmt: skip
