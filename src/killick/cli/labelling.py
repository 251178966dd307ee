"""`killick label`: the page where people label, and the commands around its store."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from killick.cli import label_page
from killick.cli.stores import absent
from killick.flags import nearest, settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.preferences.store import Annotator, Progress, Store

STORE = "labels.db"
"""The store where none is named."""

HELP = """usage: killick label FILE [options]
       killick label --world arithmetic [options]
       killick label COMMAND ...

Labels of people. With a file of prompts and responses, or a world, a page opens on which they say which response is
better; killick label page --help shows its options. The commands look after a store: an SQLite file (--store FILE,
labels.db where none is named) or a PostgreSQL database (--store postgresql://...); each may be run while others label.

commands (each has --help):
{commands}
"""


def label(given: list[str]) -> None:
    """`killick label`: find the command that is meant."""
    if not given or given[0] in ("-h", "--help"):
        print(HELP.format(commands="\n".join(f"  {name:<15} {does}" for name, (_, does) in COMMANDS.items())), end="")
    elif given[0] in COMMANDS:
        COMMANDS[given[0]][0](given[1:])
    elif given[0].startswith("-") or "." in given[0]:
        label_page.page(given)
    else:
        raise Refusal(
            f"killick label has no command {given[0]!r}{nearest(given[0], list(COMMANDS))}, and a file has an ending; "
            "see killick label --help."
        )


@dataclass(frozen=True)
class AddAnnotator:
    """Who joins.

    Attributes:
        name: 1 to 64 letters, digits, spaces or . _ @ + -; it stands beside every label.
        store: an SQLite file, made when it is not there, or a postgresql:// URL.
        renew: give somebody who is there a new token; the old one ends.
    """

    name: tyro.conf.Positional[str]
    store: str = STORE
    renew: bool = False


def add_annotator(given: list[str]) -> None:
    """`killick label add-annotator NAME`: print the token, this once."""
    from killick.preferences.storing.records import valid_name

    asked = settings("label add-annotator", AddAnnotator, given=given, about="Let somebody label, by name and token.")
    valid_name(asked.name)  # before a store is made for it
    with opened(asked.store, new=not asked.renew) as store:
        token = store.renew_token(asked.name) if asked.renew else store.add_annotator(asked.name)
    print(f"{token}\n\nThis is {asked.name}'s token. It is shown this once: the store keeps only a hash of it.")
    print(f"On the labelling page it opens {label_page.LOGIN}, or as a link {label_page.LOGIN}#{token}")


@dataclass(frozen=True)
class Backup:
    """Where to.

    Attributes:
        path: a new file; nothing is overwritten.
        store: an SQLite file or a postgresql:// URL.
    """

    path: tyro.conf.Positional[Path]
    store: str = STORE


def backup(given: list[str]) -> None:
    """`killick label backup PATH`: copy the store while others label."""
    about = "Copy the whole store, of one moment, into a new SQLite file, which is a store too."
    asked = settings("label backup", Backup, given=given, about=about)
    with opened(asked.store) as store:
        store.backup(asked.path)
    print(f"{asked.path} holds the store as it was when the copying began.")


@dataclass(frozen=True)
class Export:
    """What, and where to.

    Attributes:
        out: a new file that ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        store: an SQLite file or a postgresql:// URL.
        form: of the rows; killick prefs --help shows the forms. Without: comparison, or ranking where an item has more
            than two candidates.
        history: instead of preference rows, every label, edit, undo and skip as it was given, with the order on the
            card, seconds, notes, flags and the version of the guidelines. JSON lines only.
        force: write over a file that is there.
    """

    out: Path
    store: str = STORE
    form: str | None = None
    history: bool = False
    force: bool = False

    def validate(self) -> None:
        """Refuse what does not go together.

        Raises:
            Refusal: at a form for the history, and at a history that is no JSON lines.
        """
        if self.history and self.form is not None:
            raise Refusal("--history is written as it is, in no form; give --form or --history.")
        if self.history and ".jsonl" not in self.out.suffixes:
            raise Refusal(f"--history writes JSON lines: name a file that ends in .jsonl, not {self.out}.")


def export(given: list[str]) -> None:
    """`killick label export --out FILE`: preference rows, or the whole log, while others label."""
    about = "Write the labels that hold as a preference file; killick prefs and killick reward fit read it."
    asked = settings("label export", Export, given=given, about=about)
    asked.validate()
    with opened(asked.store) as store:
        from killick.preferences.asking import export_form, held_rows
        from killick.preferences.files import write_preferences
        from killick.preferences.formats.saving import save
        from killick.preferences.storing.records import log_row

        labels = list(store.export(history=asked.history))
        if asked.history:
            log = [log_row(item, label) for item, label in labels]
            save(asked.out, log, columns=list(log[0]) if log else ["item"], force=asked.force)
            print(f"{asked.out}: {len(log)} rows of the log.")
            return
        rows, left = held_rows(labels)
        form = asked.form or export_form(item for item, _ in labels)
        written = write_preferences(asked.out, [row for *_, row in rows], form=form, force=asked.force)
    print(f"{asked.out}: {written.pop('rows', 0)} rows of the form {form}.")
    for words, count in (written + left).items():
        print(f"  {words}: {count}")


@dataclass(frozen=True)
class Told:
    """Of which store.

    Attributes:
        store: an SQLite file or a postgresql:// URL.
    """

    store: str = STORE


def progress(given: list[str]) -> None:
    """`killick label progress`: how far everybody is."""
    asked = settings("label progress", Told, given=given, about="How far the labelling is, by annotator and together.")
    with opened(asked.store) as store:
        people = store.annotators()
        rows: list[tuple[str, Annotator | None]] = [*((one.name, one) for one in people), ("together", None)]
        width = max(len(name) for name, _ in rows)
        print(f"{'':<{width}}  labels  skips   left  labels/min  median s  time left")
        for name, one in rows:
            print(f"{name:<{width}}  {told(store.progress(one))}")
        print(f"items in conflict: {sum(1 for _ in store.conflicts())}")


def told(seen: "Progress") -> str:
    """One line of the table."""
    pace, seconds = short(seen.pace), short(seen.median_seconds)
    left = "-" if seen.seconds_left is None else f"{seen.seconds_left / 60:.0f} min"
    return f"{seen.done:>6}  {seen.skipped:>5}  {seen.left:>5}  {pace:>10}  {seconds:>8}  {left:>9}"


def short(value: float | None) -> str:
    """Three digits, or all of a whole part that has more; a dash for none."""
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"


COMMANDS = {
    "page": (label_page.page, "the page itself: killick label page FILE is killick label FILE"),
    "add-annotator": (add_annotator, "let somebody label: prints a token, once"),
    "progress": (progress, "how far everybody is, and items in conflict"),
    "export": (export, "the labels as a preference file, or the whole log"),
    "backup": (backup, "copy the store into a new file while others label"),
}
"""Word -> its function, and what it does."""


def opened(place: str, *, new: bool = False) -> "Store":
    """A store that is there, or a new one.

    Raises:
        Refusal: where the extra or the file is missing.
    """
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"killick label needs the extra prefs ({error.name} is missing): pip install 'killick[prefs]'."
        ) from error
    if not new and absent(place):
        raise Refusal(f"There is no store {place}; name it with --store, or begin one with killick label.")
    return Store(place)
