"""`killick label`: people say which response is better, in a browser; their labels stay in a store beside the file."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from killick.cli.listening import LOOPBACK, address, answer, check_port, listening
from killick.cli.prefs_words import bad_line, plural
from killick.cli.stores import absent
from killick.flags import settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.preferences.store import Annotator, Item, Store

ABOUT = """Open a page on which people say which response is better, one card at a time and blind.

FILE holds prompts with two responses or more, judged already or not (killick prefs shows the forms); with --world the
items are samples of a world's starting policy. Labels are kept in a store beside the file and survive everything.
Alone on this machine nobody needs a token. For a team: killick label add-annotator NAME --store DB, once each; the
annotator named owner sees everybody's work at /label/owner."""
ME, OWNER, LOGIN = "me", "owner", "/label/login"
BODY = 200_000
"""Bytes: a note of 10,000 characters, as a form writes it, and room."""
DEFAULT_PORT = 8000


@dataclass(frozen=True)
class Label:
    """What to label, and where.

    Attributes:
        file: prompts with responses: .jsonl, .csv or .parquet.
        world: label samples of a world instead: arithmetic, emphasis or answers.
        items: how many items of the world.
        k: responses to each prompt of the world: 2 for pairs, more for rankings.
        seed: of the world's samples.
        store: the store: a file, or a postgresql:// URL; by default FILE.labels.db or WORLD.labels.db.
        annotator: label under this name and without a token; by default "me", as long as the store has nobody else.
        overlap: how many annotators each item gets; without, 1 for new items, and known ones keep theirs.
        guidelines: a text file that is shown beside each card.
        strength: also ask how much better (slightly, clearly, much).
        skip_bad: leave bad rows of the file out instead of refusing it.
        port: to listen on.
        host: the address to listen on; another than the loopback needs annotators with tokens, an owner among them.
        open: show the page in the browser.
    """

    file: Annotated[Path | None, tyro.conf.Positional] = None
    world: str | None = None
    items: int = 200
    k: int = 2
    seed: int = 0
    store: str | None = None
    annotator: str | None = None
    overlap: int | None = None
    guidelines: Path | None = None
    strength: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    skip_bad: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    port: int = DEFAULT_PORT
    host: str = "127.0.0.1"
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def validate(self) -> None:
        """Refuse what cannot be labelled.

        Raises:
            Refusal: naming the flag.
        """
        if self.file is not None and self.world is not None:
            raise Refusal("A FILE or --world, not both: a store holds what one of them asks.")
        if self.file is None and self.world is None and self.store is None:
            raise Refusal("Name a FILE to label, --world arithmetic, or the --store to go on with.")
        check_port(self.port)
        if self.overlap is not None and self.overlap < 1:
            raise Refusal(f"--overlap is the number of annotators an item gets, 1 or more, not {self.overlap}.")

    @property
    def place(self) -> str:
        """Of the store."""
        return self.store or f"{self.file or self.world}.labels.db"


def page(given: list[str]) -> None:
    """`killick label FILE|--world W`: fill the store and serve the page."""
    options = settings("label", Label, given=given, about=ABOUT)
    options.validate()
    try:
        import uvicorn  # noqa: F401 - whether it is there is asked before anything is said

        from killick.preferences.store import Store
        from killick.web.app import build
        from killick.web.labelling import labelling
        from killick.web.people import Desk
    except ImportError as error:
        raise missing(error) from error
    items, guidelines = asked(options), guideline_text(options)
    check_entrance(options)
    with listening(options.host, options.port) as door, Store(options.place) as store:
        alone = who_labels(store, options.annotator, host=options.host, place=options.place)
        fill(store, items, options=options, guidelines=guidelines)
        desk = Desk(store, alone=alone, strength=options.strength)
        app = build([labelling(desk)], body=BODY, hosts=LOOPBACK if options.host in LOOPBACK else ())
        where = f"{address(options.host, door)}/label"
        tell(store, options, alone=alone, where=where)
        if options.open:
            webbrowser.open(where)
        answer(app, door)
        raise KeyboardInterrupt(f"The labels are in {options.place}; the same command goes on.")


def missing(error: ImportError) -> Refusal:
    """What to install."""
    return Refusal(
        f"killick label needs the extras web and prefs ({error.name} is missing): pip install 'killick[web,prefs]'."
    )


def asked(options: Label) -> list["Item"]:
    """The items of the file or the world; none where only a store is named.

    Raises:
        Refusal: where there is nothing to label.
    """
    if options.world is not None:
        return drawn(options)
    if options.file is not None:
        return of_file(options.file, skip_bad=options.skip_bad)
    if absent(options.place):
        raise Refusal(f"There is no store {options.place}; name a FILE or --world to begin one.")
    return []


def of_file(path: Path, *, skip_bad: bool) -> list["Item"]:
    """The questions of a file, telling what is left out, or every bad row.

    Raises:
        Refusal: where a row is bad, or there is nothing to label.
    """
    from killick.preferences.asking import questions
    from killick.preferences.files import BadRows

    try:
        items, left = questions(path, skip_bad=skip_bad)
    except BadRows as error:
        print("\n".join(bad_line(row, file=path) for row in error.rows))
        count = plural(len(error.rows), "bad row")
        raise Refusal(f"{path}: {count}, so nothing was read; mend the file, or give --skip-bad.") from error
    for words, many in left.items():
        print(f"{many} {words} left out")
    if not items:
        raise Refusal(f"{path} holds no row with two different responses, so there is nothing to label.")
    return items


def drawn(options: Label) -> list["Item"]:
    """Samples of a world as items, telling what is trained for them."""
    from killick.preferences.store import Item
    from killick.recipes.labelling.items import world_items

    loop = world_items(str(options.world), options.items, k=options.k, seed=options.seed)
    while True:
        try:
            print(next(loop).text, flush=True)
        except StopIteration as stop:
            kind: Any = "pair" if options.k == 2 else "ranking"
            return [
                Item(one["prompt"], tuple(one["responses"]), kind=kind, metadata=one["metadata"]) for one in stop.value
            ]


def guideline_text(options: Label) -> str:
    """The file's, or the world's own rule.

    Raises:
        Refusal: at a file that cannot be read, or is no text.
    """
    if options.guidelines is not None:
        try:
            return options.guidelines.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise Refusal(f"--guidelines {options.guidelines} is no UTF-8 text; save it as one.") from error
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Refusal(f"--guidelines {options.guidelines} cannot be read ({why}); name a text file.") from error
    if options.world is not None:
        from killick.recipes.labelling.items import judged

        return judged(options.world).guidelines
    return ""


def fill(store: "Store", items: list["Item"], *, options: Label, guidelines: str) -> None:
    """Put items and guidelines into the store; the same again changes nothing."""
    if items:
        imported = store.add_items(items, overlap=options.overlap)
        kept = "which keep their overlap" if options.overlap is None else f"each for {options.overlap} annotators now"
        print(
            f"{imported.new} new items, {imported.known} known{f', {kept},' * bool(imported.known)} in {options.place}"
        )
    if guidelines and (options.guidelines is not None or not store.guidelines()[0]):
        store.set_guidelines(guidelines)


def check_entrance(options: Label) -> None:
    """Refuse, before a store is made, what would let in whoever comes, or nobody.

    Raises:
        Refusal: at a name that cannot be, and at another address without tokens.
    """
    from killick.preferences.storing.records import valid_name

    if options.annotator is not None:
        valid_name(options.annotator)
    if options.host in LOOPBACK:
        return
    if options.annotator is not None:
        raise Refusal(f"--annotator labels without a token, so not on {options.host}; leave one of the two away.")
    if absent(options.place):
        raise nobody_known(options.host, options.place)


def nobody_known(host: str, place: str) -> Refusal:
    """What a page that others can reach takes."""
    return Refusal(
        f"--host {host} lets others in, so the store needs annotators with tokens, one of them named {OWNER}: "
        f"killick label add-annotator NAME --store {place}."
    )


def who_labels(store: "Store", name: str | None, *, host: str, place: str) -> "Annotator | None":
    """Whoever labels without a token, or None where everybody brings one.

    Args:
        store: whose annotators are asked for.
        name: who it is to be; None for "me", as long as the store knows nobody else.
        host: that is listened on.
        place: of the store, for what is said.

    Raises:
        Refusal: where a page that others can reach would let nobody in.
    """
    known = {one.name: one for one in store.annotators()}
    if host not in LOOPBACK:
        if OWNER not in known or len(known) < 2:
            raise nobody_known(host, place)
        return None
    if name is None and known.keys() - {ME}:
        return None
    name = name or ME
    if name not in known:
        store.add_annotator(name)  # its token is never shown: without one, only this machine gets in
    return next(one for one in store.annotators() if one.name == name)


def tell(store: "Store", options: Label, *, alone: "Annotator | None", where: str) -> None:
    """Say where the page is and who may open it."""
    if alone is not None:
        print(f"You label as {alone.name}, without a token, from this machine only.")
    else:
        names = [one.name for one in store.annotators()]
        print(f"Each annotator brings a token; the store knows {', '.join(names)}.")
        if OWNER not in names:
            print(f"Nobody may see everybody's work yet: killick label add-annotator {OWNER} --store {options.place}")
    if options.host not in LOOPBACK:
        print("Tokens and answers travel as they are; put a proxy with TLS before this where you do not trust the net.")
    print(f"{where}  (Ctrl-C to stop)", flush=True)
