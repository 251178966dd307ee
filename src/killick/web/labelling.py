"""The labelling page: one card at a time, blind, by keys, by thumb or as a plain form."""

import secrets
import time
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, Field

from killick.preferences.store import Annotator, Card, Judgement, Label, Outcome, Unavailable
from killick.refusal import Refusal
from killick.web.label_owner import owner_pages
from killick.web.pages import page
from killick.web.passages import passages
from killick.web.people import COOKIE, LOGIN, PART, Desk, let_in

PAIR = {"1": ((0,), (1,)), "2": ((1,), (0,)), "=": ((0, 1),), "skip": ()}
"""What a choice says of the two responses in the order in which they are shown."""
FLAG = "flagged"
ANSWERED = "You had answered that card before, and that answer stays. Undo takes it back."
Told: TypeAlias = tuple[int, str]
FINE: Told = (200, "")
DAY = 86_400.0
NUMBER = Field(ge=0, le=2**31 - 1)
KEY = Field(pattern=r"^[!-~]{1,200}$")


class Answer(BaseModel):
    """What the form of a card sends.

    Attributes:
        item: its number in the store.
        annotator: the number of whom it was shown to: others see its responses in another order.
        digest: its content's: a page left open from another store must not answer here.
        key: new on every card shown, the same at every retry.
        choice: 1, 2 or = of a pair; "rank" of a ranking; "skip" of either.
        number: of each response of a ranking, as shown, counted from 1.
        place: of the same responses, 1 for the best; equal ones tie.
        strength: how much better the chosen one of a pair is.
        flag: whether something is wrong with the item.
        note: free text.
        seconds: that the card was looked at, where the page could measure it.
        shown: when the server showed it, seconds since 1970.
    """

    item: int = NUMBER
    annotator: int | None = Field(None, ge=0, le=2**31 - 1)
    digest: str = Field(max_length=64)
    key: str = KEY
    choice: Literal["1", "2", "=", "skip", "rank"]
    number: list[int] = Field([], max_length=100)
    place: list[Annotated[str, Field(max_length=3)]] = Field([], max_length=100)
    strength: Literal["", "1", "2", "3"] = ""
    flag: bool = False
    note: str = Field("", max_length=10_000)
    seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    shown: float = Field(0.0, allow_inf_nan=False)


class Undo(BaseModel):
    """Take back one's label of an item."""

    item: int = NUMBER
    key: str = KEY


def labelling(desk: Desk) -> APIRouter:
    """The pages under /label."""
    router = APIRouter(include_in_schema=False)

    @router.get("/label", response_class=HTMLResponse, summary="Label")
    def label(request: Request) -> Response:
        """Say which response is better, one card at a time."""
        return following(desk, desk.asking(request), whole=True)

    @router.post("/label/answer")
    def answer(request: Request, given: Annotated[Answer, Form()]) -> Response:
        """Store an answer, and go on to the next card."""
        annotator, part = desk.asking(request), PART in request.headers
        try:
            outcome, card = store_answer(desk, annotator, given=given)
        except Refusal as refusal:
            return following(desk, annotator, whole=not part, told=(400, str(refusal)))
        except Unavailable as trouble:
            return page("label_trouble.html.j2", status=503, reason=str(trouble))
        told = (409, ANSWERED) if outcome.status == "conflict" else FINE
        if part or told != FINE:
            return show(desk, annotator, card=card, whole=not part, told=told, last=given.item)
        return RedirectResponse("/label", 303)

    @router.post("/label/undo")
    def undo(request: Request, given: Annotated[Undo, Form()]) -> Response:
        """Take the last label back; its card comes again."""
        annotator, part = desk.asking(request), PART in request.headers
        try:
            last = desk.store.last(annotator)
            desk.store.withdraw(annotator, given.item, key=given.key)
            desk.tally.forget(annotator)
        except Refusal as refusal:
            return following(desk, annotator, whole=not part, told=(400, str(refusal)))
        except Unavailable as trouble:
            return page("label_trouble.html.j2", status=503, reason=str(trouble))
        # No redirect, also for a whole page: only here is it known what was said before. Sent again it does no harm.
        return following(desk, annotator, whole=not part, before=last if last and last.item == given.item else None)

    router.include_router(entrance(desk))
    router.include_router(owner_pages(desk))
    return router


def entrance(desk: Desk) -> APIRouter:
    """In with a token, and out."""
    router = APIRouter()

    @router.get(LOGIN)
    def login() -> Response:
        """Ask for the token."""
        return page("label_login.html.j2", wrong=False)

    @router.post(LOGIN)
    def enter(request: Request, token: Annotated[str, Form(max_length=200)] = "") -> Response:
        """Let an annotator in."""
        found = desk.store.annotator(token.strip())
        if found is None:
            return page("label_login.html.j2", status=401, wrong=True)
        return let_in(request, token.strip(), to="/label/owner" if desk.owns(found) else "/label")

    @router.post("/label/logout")
    def leave() -> Response:
        """Forget the token in this browser."""
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(COOKIE, path="/label")
        return answer

    return router


def store_answer(desk: Desk, annotator: Annotator, *, given: Answer) -> tuple[Outcome, Card | None]:
    """Store it once; returns what became of it, and the next card.

    Raises:
        Refusal: at a card of another annotator, an item that is not this store's, or a ranking with a hole.
        Unavailable: when the store does not take it.
    """
    if given.annotator not in (None, annotator.id):
        raise Refusal(f"That card was shown to somebody else, in another order; here is one for {annotator.name}.")
    card = desk.card(annotator, given.item)
    if card is None or card.item.digest != given.digest:
        raise Refusal("That card was of another store or another day; here is one of this store.")
    spent = min(given.seconds if given.seconds is not None else max(0.0, time.time() - given.shown), DAY)
    won = given.choice in ("1", "2")
    said = Judgement(
        ranking=card.ranking(positions(card, given)), seconds=spent,
        strength=int(given.strength) if given.strength and won else None,
        note=given.note.replace("\r\n", "\n").strip(), flags=(FLAG,) if given.flag else (),
    )  # fmt: skip
    outcome, after = desk.store.label_then_next(annotator, given.item, judgement=said, key=given.key)
    desk.tally.add(annotator, outcome)
    return outcome, after


def positions(card: Card, given: Answer) -> tuple[tuple[int, ...], ...]:
    """Which of the responses as shown (from 0) are best, second, ...

    Raises:
        Refusal: where a ranking leaves a response without a place, or the choice belongs to another kind of card.
    """
    count = len(card.order)
    if given.choice == "skip" or (card.item.kind == "pair" and given.choice in PAIR):
        return PAIR[given.choice]
    places = dict(zip(given.number, given.place, strict=False))
    if given.choice != "rank" or sorted(places) != list(range(1, count + 1)):
        raise Refusal(f"That card asks for {'one of two' if card.item.kind == 'pair' else f'{count} places'}.")
    if not all(place.isdecimal() and 1 <= int(place) <= count for place in places.values()):
        raise Refusal("Give each response a place; responses that are equally good share one.")
    return tuple(
        tuple(number - 1 for number in sorted(places) if int(places[number]) == place)
        for place in sorted(set(map(int, places.values())))
    )


def following(
    desk: Desk, annotator: Annotator, *, whole: bool, told: Told = FINE, before: Label | None = None
) -> Response:
    """Hand out the annotator's next card and show it; arguments as in `show`."""
    try:
        card, last = desk.store.next_card(annotator), desk.store.last(annotator)
    except Unavailable as trouble:
        return page("label_trouble.html.j2", status=503, reason=str(trouble))
    item = last.item if last else None
    return show(desk, annotator, card=card, whole=whole, told=told, last=item, before=before)


def show(
    desk: Desk, annotator: Annotator, *, card: Card | None, whole: bool, told: Told, last: int | None,
    before: Label | None = None,
) -> Response:  # fmt: skip
    """A card, as a page or as its part that changes.

    Args:
        desk: where.
        annotator: whose.
        card: None where nothing can be had.
        whole: whether the whole page is wanted.
        told: status, and what went wrong with the last answer.
        last: the item that was answered last: what an undo takes back.
        before: what was said of this card before it was taken back.
    """
    if card:
        desk.handed[annotator.id] = card
    same = before if card and before and card.item.id == before.item else None
    values: dict[str, Any] = {
        "annotator": annotator.name, "number": annotator.id, "alone": desk.tokenless(annotator),
        "owns": desk.owns(annotator), "strength": desk.strength, "card": card, "last": last, "problem": told[1],
        "progress": desk.tally.progress(annotator), "before": same, "flag": FLAG, "now": time.time(),
        "key": secrets.token_urlsafe(12), "undo_key": secrets.token_urlsafe(12),
        "prompt": passages(card.item.prompt) if card else [],
        "shown": [passages(text) for text in card.shown] if card else [],
    }  # fmt: skip
    if not whole:
        return page("label_card.html.j2", status=told[0], **values)
    _, guidelines = desk.store.guidelines()
    return page("label.html.j2", status=told[0], guidelines=guidelines, **values)
