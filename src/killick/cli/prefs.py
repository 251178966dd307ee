"""`killick prefs check | convert | stats | split | agreement`: a file of preferences before anything learns from it."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from killick.cli.agreement import agreement
from killick.cli.prefs_stats import stats
from killick.cli.prefs_words import bad_line, plural, told_lines
from killick.flags import nearest, settings
from killick.preferences.files import BadRows, convert, find_form, row_form, scan_preferences
from killick.preferences.formats.forms import FORMS, FormName
from killick.preferences.formats.lines import layout
from killick.preferences.formats.saving import check_free, save
from killick.preferences.rows import BadRow
from killick.refusal import Refusal

HELP = """usage: killick prefs check FILE [--report FILE]        every bad row, with line, field and reason
       killick prefs convert FILE OUT --to FORM        another form, another layout; what is lost is told
       killick prefs stats FILE [FILE]                 counts, ties, and biases that a reward model would learn
       killick prefs split FILE --out DIR              train, validation and test, by the prompts' text
       killick prefs agreement FILE | --store DB       how far annotators agree, and how noisy each of them is

Each has --help. A file ends in .jsonl, .csv (either with .gz behind it) or .parquet (extra prefs); text is UTF-8.
Its form is found by its columns, or named with --form. In CSV, lists are JSON in a cell.

{forms}

Any row may also have annotator, group (pairs of one ranking), margin, and "shown": false where the order of the
responses is not the one that the annotator saw. Other columns are ignored. Wherever a prompt or a response is a string,
it may be a list of messages.
"""


FORMS_TOLD = "killick prefs --help shows every form with an example row."


def prefs(given: list[str]) -> None:
    """`killick prefs WORD ...`: exit 0 when done, 1 where rows are bad, 2 for what cannot be done at all."""
    words: dict[str, Callable[[list[str]], None]] = {
        "check": check, "convert": into, "stats": stats, "split": parted, "agreement": agreement
    }  # fmt: skip
    if not given or given[0] in ("-h", "--help"):
        forms = "\n".join(f"{name}: {form.about}\n  {form.example}" for name, form in FORMS.items())
        print(HELP.format(forms=forms), end="")
        return
    if given[0] not in words:
        raise Refusal(
            f"killick prefs has no {given[0]!r}{nearest(given[0], list(words))}; there are {', '.join(words)}."
        )
    try:
        words[given[0]](given[1:])
    except BadRows as error:
        print(f"killick: {error}", file=sys.stderr)
        sys.exit(1)


@dataclass(frozen=True)
class Check:
    """What to check.

    Attributes:
        file: a preference file.
        form: of its rows; found by the columns where none is named.
        limit: bad rows on the screen; 0 for all.
        report: write all bad rows there (.jsonl or .csv).
        force: write over a report that is there.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    form: FormName | None = None
    limit: int = 50
    report: Path | None = None
    force: bool = False


def check(given: list[str]) -> None:
    """List every bad row; exit 1 where there is one."""
    options = settings(
        "prefs check", Check, given=given, about=f"List every bad row of a preference file. {FORMS_TOLD}"
    )
    if options.limit < 0:
        raise Refusal(f"--limit must be 0 (all) or more, not {options.limit}.")
    if options.report is not None:
        if layout(options.report)[0] == "parquet":
            raise Refusal(f"{options.report}: a report ends in .jsonl or .csv.")
        check_free(options.report, force=options.force)
    counts = {"rows": 0, "bad": 0}
    usual, forms = options.form or find_form(options.file), dict[str, None]()

    def bad() -> Iterator[dict[str, Any]]:
        for _, record, row in scan_preferences(options.file, options.form):
            counts["rows"] += 1
            forms[options.form or row_form(record, usual)] = None
            if isinstance(row, BadRow):
                counts["bad"] += 1
                if not options.limit or counts["bad"] <= options.limit:
                    print(bad_line(row, file=options.file))
                yield row._asdict()

    if options.report is None:
        for _ in bad():
            pass
    else:
        save(options.report, bad(), columns=BadRow._fields, force=options.force)
    more = counts["bad"] - options.limit if options.limit else 0
    if more > 0:
        where = f"{options.report} has all" if options.report else "--limit 0 shows all, --report FILE writes all"
        print(f"... and {more} more ({where})")
    told = "; ".join(f"form {form} ({FORMS[form].about})" for form in forms)
    print(f"{options.file}: {counts['bad']} of {plural(counts['rows'], 'row')} bad; {told}")
    if counts["bad"]:
        sys.exit(1)


@dataclass(frozen=True)
class Convert:
    """What to write where.

    Attributes:
        file: a preference file.
        out: the file to write; its name tells the layout.
        to: the form to write.
        form: of the file; found by the columns where none is named.
        text: messages, or strings; auto takes strings where every row can be one.
        skip_bad: leave bad rows out (and count them) instead of refusing the file.
        force: write over a file that is there.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    to: FormName
    form: FormName | None = None
    text: Literal["auto", "plain", "messages"] = "auto"
    skip_bad: tyro.conf.FlagCreatePairsOff[bool] = False
    force: tyro.conf.FlagCreatePairsOff[bool] = False


def into(given: list[str]) -> None:
    """Write a file in another form or layout, and say what that loses."""
    about = "Write preferences in another form or layout; what the form cannot say is told."
    options = settings("prefs convert", Convert, given=given, about=f"{about} {FORMS_TOLD}")
    messages = {"auto": None, "plain": False, "messages": True}[options.text]
    told, bad = convert(
        options.file, options.out, to=options.to, form=options.form, messages=messages, skip_bad=options.skip_bad,
        force=options.force,
    )  # fmt: skip
    print("\n".join(told_lines(told, len(bad), out=options.out, form=options.to)))


@dataclass(frozen=True)
class SplitFlags:
    """How to split.

    Attributes:
        file: a preference file.
        out: folder for train, validation and test, each in the file's layout.
        shares: expected shares of train, validation and test, summing to 1; a part without a row is not written.
        seed: of the split; the same seed puts the same prompt on the same side in any file.
        form: of the rows; found by the columns where none is named.
        skip_bad: leave bad rows out (and count them) instead of refusing the file.
        force: write over files that are there.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    out: Path
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    form: FormName | None = None
    skip_bad: tyro.conf.FlagCreatePairsOff[bool] = False
    force: tyro.conf.FlagCreatePairsOff[bool] = False


def parted(given: list[str]) -> None:
    """Split a file by its prompts."""
    from killick.preferences.splitting import PARTS, split

    about = "Split a preference file by the text of its prompts and a seed, never by the order of its rows."
    options = settings("prefs split", SplitFlags, given=given, about=f"{about} {FORMS_TOLD}")
    made = split(
        options.file, options.out, shares=options.shares, seed=options.seed, form=options.form,
        skip_bad=options.skip_bad, force=options.force,
    )  # fmt: skip
    for name, share, rows, prompts in zip(PARTS, options.shares, made.rows, made.prompts, strict=True):
        if share:
            empty = "" if rows else "; no file, since no prompt fell here: another --seed, or more prompts"
            print(f"{name:<10} {plural(rows, 'row')} of {plural(prompts, 'prompt')}{empty}")
    if made.bad:
        print(f"{plural(len(made.bad), 'bad row')} left out.")
    if made.repeated:
        print(f"{plural(made.repeated, 'row')} left out that repeat another of the same annotator.")
