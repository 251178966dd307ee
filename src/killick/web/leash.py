"""The exact leash as a page: move beta, and see what becomes of each answer. Computed at once; nothing is stored."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Annotated, Any

from fastapi import APIRouter, File, Form
from fastapi.responses import HTMLResponse

from killick.algorithms.listed import (
    Measured,
    best_beta,
    every_beta,
    measure,
    measure_best_of,
    measure_tilted,
)  # fmt: skip
from killick.algorithms.tilt import tilt
from killick.ops.kl import best_of_n_bound
from killick.types import Refusal
from killick.web.pages import TEMPLATES, PageRoute, page, whole
from killick.worlds.listed import FIVE, AnswerTable
from killick.worlds.listed_csv import read_table

BETA = "1"
SOURCE = (10.0, 2.0, 1.0, 0.5, 0.25, 0.1)
DRAWN = (2, 4, 8, 16, 64)
SHOWN = 1000
"""Answers that a page can hold; the command takes more."""
WIDE, HIGH, EDGE = 600, 200, 12
"""The drawing, in its own units: across, down, and the margin on each side."""


def leash() -> APIRouter:
    """The part of the server at `/leash`."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)

    @router.get("/leash", response_class=HTMLResponse, summary="The exact leash")
    def show(beta: str = BETA) -> HTMLResponse:
        """Move beta and watch reward, gold, KL and the gaming share, over five answers or a table of your own."""
        return answered(FIVE, beta)

    @router.post("/leash", response_class=HTMLResponse)
    def own(
        beta: Annotated[str, Form()] = "",
        table: Annotated[str, Form()] = "",
        file: Annotated[bytes, File()] = b"",
    ) -> HTMLResponse:
        """The same over a person's own table, sent with every question since it is kept nowhere.

        Without a beta it is the middle of the slider, whatever the unit of the rewards.
        """
        try:
            data = file or encoded(table)
            found = read_table(data)
            if len(found.answers) > SHOWN:
                raise Refusal(f"The page shows {SHOWN} answers at most; killick tilt --table FILE takes more.")
        except Refusal as error:
            return answered(FIVE, BETA, text=whole(table), problem=str(error))
        low, high = reach(found)
        return answered(found, beta or f"{math.sqrt(low * high):.2g}", text=data.decode("utf-8-sig"), own=True)

    return router


def encoded(table: str) -> bytes:
    """What was typed, as a file would hold it.

    Raises:
        Refusal: at half a character, which a form of another charset may bring.
    """
    try:
        return table.encode()
    except UnicodeEncodeError as error:
        line = table.count("\n", 0, error.start) + 1
        raise Refusal(f"Line {line} holds half a character, which is no text; send the table as UTF-8.") from error


def answered(table: AnswerTable, beta: str, *, text: str = "", problem: str = "", own: bool = False) -> HTMLResponse:
    """The page over a table; what cannot be is told at its top, and what was typed stays in its field.

    Args:
        table: the answers.
        beta: as typed.
        text: the person's table, as typed.
        problem: what is wrong with it.
        own: whether `table` is the person's.
    """
    try:
        value = float(beta)
        if not 0 <= value < math.inf:
            raise ValueError(beta)
    except ValueError:
        problem = problem or f"beta must be a number, 0 or more, not {beta[:40]!r}."
        value = float(BETA)
    low, high = reach(table)
    curve = [measure_tilted(table, beta=each) for each in every_beta(table, 100)]
    top = None if table.gold is None else best_beta(table)
    return page(
        "leash.html.j2",
        status=422 if problem else 200,
        table=table,
        rows=rows(table, value),
        beta=value,
        found=measure_tilted(table, beta=value),
        before=measure(table.reference.log(), table),
        best=None if top is None else (top, measure_tilted(table, beta=top)),
        tightest=top == every_beta(table)[0],
        bests=[(n, best_of_n_bound(n), measure_best_of(table, n=n)) for n in DRAWN],
        slider=(math.log10(low), math.log10(high)),
        drawing=drawing(curve, gold=table.gold is not None),
        presets=SOURCE,
        text=text,
        problem=problem,
        own=own,
    )


def rows(table: AnswerTable, beta: float) -> list[dict[str, Any]]:
    """Each answer with its probability before and under this beta."""
    blank = [None] * len(table.answers)
    columns = {
        "answer": table.answers,
        "before": table.reference.tolist(),
        "policy": tilt(table.reference.log(), table.reward, beta=beta).exp().tolist(),
        "reward": table.reward.tolist(),
        "gold": blank if table.gold is None else table.gold.tolist(),
        "gaming": blank if table.gaming is None else table.gaming.tolist(),
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def reach(table: AnswerTable) -> tuple[float, float]:
    """Where the slider ends: powers of ten around the rewards' spread, beyond which little happens."""
    spread = every_beta(table)[0] / 100
    return 10.0 ** math.floor(math.log10(spread / 50)), 10.0 ** math.ceil(math.log10(spread * 4))


def drawing(curve: Sequence[Measured], *, gold: bool) -> dict[str, Any]:
    """The whole family as lines: reward and gold over the square root of KL, and the scale for what moves on them."""
    columns = ("proxy", "gold") if gold else ("proxy",)
    values = [getattr(each, column) for each in curve for column in columns]
    low, high, far = min(values), max(values), max(each.kl for each in curve)
    scale = {"low": low, "high": high, "far": far}

    def line(column: str) -> str:
        return " ".join("{:.2f},{:.2f}".format(*place(each.kl, getattr(each, column), **scale)) for each in curve)

    return scale | {"lines": {column: line(column) for column in columns}}


def place(kl: float, value: float, *, low: float, high: float, far: float) -> tuple[float, float]:
    """Where a point of the drawing stands."""
    along = math.sqrt(max(kl, 0) / far) if far > 0 else 0.0
    up = (value - low) / (high - low) if high > low else 0.5
    return EDGE + along * (WIDE - 2 * EDGE), HIGH - EDGE - up * (HIGH - 2 * EDGE)


def number(value: float) -> str:
    """Three decimals, or powers of ten where three decimals say nothing; rounding's own dust is 0."""
    if abs(value) < 1e-12:
        return "0.000"
    return rounded(value, ".3f" if 1e-3 <= abs(value) < 1e5 else ".2e")


def percent(share: float) -> str:
    """With one decimal."""
    return rounded(100 * share, ".1f") + " %"


def rounded(value: float, form: str) -> str:
    """A half goes away from zero, as in the browser (static/leash.js), so that both write the same digits."""
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(value), form)


TEMPLATES.filters["percent"] = percent
TEMPLATES.filters["number"] = number
TEMPLATES.globals["place"] = place
