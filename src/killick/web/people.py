"""Who is asking: one person alone at this machine, or an annotator with a token in a cookie. And who owns the store."""

from dataclasses import dataclass, field
from functools import cached_property

from fastapi import HTTPException, Request
from fastapi.responses import RedirectResponse

from killick.preferences.store import Annotator, Card, Store
from killick.web.tally import Tally

OWNER = "owner"
"""The annotator of this name sees everybody's work and may take it away as a file."""
COOKIE, LOGIN = "killick-label", "/label/login"
PART = "x-killick-part"
"""A request with this header wants only what changes of a page."""
YEAR = 365 * 86_400


@dataclass(frozen=True)
class Desk:
    """Where people label.

    Attributes:
        store: what they label.
        alone: who labels here, and owns the store, where no token is brought; None where everybody has to bring one.
        strength: whether a pair is also asked how much better.
        handed: the card that each annotator was last shown, by the annotator's number.
    """

    store: Store
    alone: Annotator | None = None
    strength: bool = False
    handed: dict[int, Card] = field(default_factory=dict)

    @cached_property
    def tally(self) -> Tally:
        """How far everybody is."""
        return Tally(self.store)

    def card(self, annotator: Annotator, item: int) -> Card | None:
        """An item as this annotator sees it: most often the card that was shown last, which need not be read again."""
        handed = self.handed.get(annotator.id)
        return handed if handed and handed.item.id == item else self.store.card(annotator, item)

    def annotator(self, request: Request) -> Annotator | None:
        """Who is asking: whoever brings a token, and else the one alone; None for a stranger."""
        token = request.cookies.get(COOKIE)
        return (self.store.annotator(token) if token else None) or self.alone

    def asking(self, request: Request) -> Annotator:
        """Who is asking; a stranger is sent to the login.

        Raises:
            HTTPException: 303 to the login, or 401 where only a part of a page was asked for.
        """
        found = self.annotator(request)
        if found is None:
            if PART in request.headers:
                raise HTTPException(401, "Log in again; the answer is kept.")
            raise HTTPException(303, "Log in.", {"location": LOGIN})
        return found

    def owns(self, annotator: Annotator) -> bool:
        """Whether an annotator may see everybody's work."""
        return self.tokenless(annotator) or annotator.name == OWNER

    def tokenless(self, annotator: Annotator) -> bool:
        """Whether this is the one alone, who needs no token."""
        return self.alone is not None and annotator.id == self.alone.id

    def owning(self, request: Request) -> Annotator:
        """The owner.

        Raises:
            HTTPException: as above, and 403 for an annotator.
        """
        found = self.asking(request)
        if not self.owns(found):
            raise HTTPException(403, f"Only the token of the annotator named {OWNER} opens this page.")
        return found


def let_in(request: Request, token: str, *, to: str) -> RedirectResponse:
    """Keep a token in a cookie that no script and no other site's page can use."""
    answer = RedirectResponse(to, 303)
    secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, max_age=YEAR, path="/label", httponly=True, samesite="strict", secure=secure)
    return answer
