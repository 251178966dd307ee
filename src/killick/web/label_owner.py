"""What the owner of a store sees: everybody's progress, where they disagree, and the labels as a file."""

import json
import math
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from killick.preferences.asking import export_form, held_rows
from killick.preferences.formats.writing import WRITERS
from killick.preferences.store import Annotator, Conflict, Item, Label
from killick.web.pages import HEADERS, page
from killick.web.passages import passages
from killick.web.people import Desk

if TYPE_CHECKING:
    from killick.preferences.agreement import Agreement

SHOWN = 50
"""Conflicts and notes on the page; the export has them all."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def owner_pages(desk: Desk) -> APIRouter:
    """The owner's view and the export."""
    router = APIRouter()

    @router.get("/label/owner")
    def owner(request: Request) -> Response:
        """Everybody's work."""
        from killick.preferences.agreement import agreement  # loads torch, which nobody else here needs
        from killick.preferences.verdict_tables import from_store

        annotator = desk.owning(request)
        labels = list(desk.store.export())
        found = agreement(from_store(labels)[0], with_noise=False)
        conflicts = list(desk.store.conflicts())
        noted = [(item, label) for item, label in labels if label.judgement.note or label.judgement.flags]
        return page(
            "label_owner.html.j2", annotator=annotator.name, alone=desk.tokenless(annotator),
            total=desk.store.progress(), left_out=held_rows(labels)[1],
            people=[person(desk, one, labels=labels, found=found) for one in desk.store.annotators()],
            agreement=table(found),
            conflicts=[told(one) for one in conflicts[:SHOWN]], more_conflicts=max(0, len(conflicts) - SHOWN),
            noted=[remark(*one) for one in noted[-SHOWN:]], more_noted=max(0, len(noted) - SHOWN),
        )  # fmt: skip

    @router.get("/label/export.jsonl")
    def export(request: Request) -> Response:
        """Every label that holds, as preference rows, less what the owner's page says."""
        desk.owning(request)
        headers = {**HEADERS, "content-disposition": 'attachment; filename="labels.jsonl"'}
        return StreamingResponse(lines(desk), media_type="application/x-ndjson", headers=headers)

    return router


def lines(desk: Desk) -> Iterator[str]:
    """One JSON object a label: a row of a form of preference files, and behind it what else the store knows."""
    labels = list(desk.store.export())
    form = export_form(item for item, _ in labels)
    for item, label, row in held_rows(labels)[0]:
        said = label.judgement
        beside = {
            "item": label.item, "flags": list(said.flags), "note": said.note, "seconds": said.seconds,
            "at": label.at, "guidelines": label.guidelines, "metadata": dict(item.metadata),
        }  # fmt: skip
        if row.strength is not None:
            beside["strength"] = row.strength  # a ranking has no column for it
        record = WRITERS[form](row, "turns" in item.metadata)
        yield json.dumps({**record, "annotator": label.annotator, **beside}) + "\n"


def person(desk: Desk, annotator: Annotator, *, labels: list[tuple[Item, Label]], found: "Agreement") -> dict[str, Any]:
    """One line of the table of annotators."""
    mine = [label.judgement for _, label in labels if label.annotator == annotator.name]
    among = found.annotators.get(annotator.name)
    return {
        "name": annotator.name,
        "progress": desk.store.progress(annotator),
        "ties": sum(any(len(group) > 1 for group in said.ranking) for said in mine),
        "flags": sum(bool(said.flags) for said in mine),
        "first": number(among.leaning.share) if among else "-",
        "agrees": number(among.agreed / among.met) if among and among.met else "-",
    }


def table(found: "Agreement") -> list[tuple[str, str, str]]:
    """Name, value and meaning of each figure; nothing where nobody has met."""
    if not found.shared:
        return []
    two = [
        (f"Cohen's kappa of {first} and {second}", number(kappa), f"on {pairs} pairs that both judged")
        for (first, second), (pairs, kappa) in islice(found.cohen.items(), SHOWN)
    ]
    return [
        ("Items judged by two or more", str(found.shared), f"of {found.items}"),
        ("Percent agreement", number(found.percent), "share of two answers to one pair that are the same"),
        ("Krippendorff's alpha, nominal", number(found.alpha_nominal), "1 is full agreement, 0 what chance gives"),
        ("Krippendorff's alpha, ordinal", number(found.alpha_ordinal), "the same, a tie standing between the two"),
        *two,
    ]


def number(value: float) -> str:
    """Two decimals; a dash for what is no number."""
    return "-" if math.isnan(value) else f"{value:.2f}"


def told(conflict: Conflict) -> dict[str, Any]:
    """A conflict as a reader needs it: the candidates by letter, and who put which first."""
    return {
        "prompt": passages(conflict.item.prompt),
        "candidates": [
            {"name": letter(place), "parts": passages(text)} for place, text in enumerate(conflict.item.candidates)
        ],
        "answers": [
            (one.annotator, " > ".join(" = ".join(map(letter, group)) for group in one.judgement.ranking))
            for one in conflict.labels
        ],
    }


def letter(place: int) -> str:
    """A name for a candidate that is no number, since numbers were other candidates to other annotators."""
    return LETTERS[place] if place < len(LETTERS) else f"{LETTERS[place // len(LETTERS) - 1]}{letter(place % 26)}"


def remark(item: Item, label: Label) -> dict[str, Any]:
    """A flag or a note with the item that it is about."""
    said = label.judgement
    return {
        "annotator": label.annotator, "item": label.item, "flags": said.flags, "note": said.note,
        "prompt": passages(item.prompt),
    }  # fmt: skip
