"""`killick prefs stats`: what is in a preference file, and what a reward model would learn from it besides."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro

from killick.cli.prefs_words import overlapped, summary_lines
from killick.flags import settings
from killick.preferences.files import BadRows, scan_preferences
from killick.preferences.formats.forms import FormName
from killick.preferences.formats.saving import check_folder, check_free, replacing
from killick.preferences.rows import BadRow, PreferenceRow, Turns
from killick.preferences.summary import Summary, overlap
from killick.refusal import Refusal

SHOWN = ("stats.json", "length.pdf", "length.png")
"""Files that `stats --out` writes."""


@dataclass(frozen=True)
class Stats:
    """What to count.

    Attributes:
        files: one preference file, or two to see which prompts they share.
        form: of the rows; found by the columns where none is named.
        max_words: also count pairs that are equal within the first words of prompt and response together.
        max_tokens: the same in tokens, by --tokenizer.
        tokenizer: import path of a function from a text to a list of tokens (pkg.mod:function).
        out: write stats.json, length.pdf and length.png there.
        skip_bad: leave bad rows out (and count them) instead of refusing the file.
        force: write over files that are there.
    """

    files: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="FILE [FILE]")]
    form: FormName | None = None
    max_words: int | None = None
    max_tokens: int | None = None
    tokenizer: str | None = None
    out: Path | None = None
    skip_bad: tyro.conf.FlagCreatePairsOff[bool] = False
    force: tyro.conf.FlagCreatePairsOff[bool] = False


def stats(given: list[str]) -> None:
    """Count, and show where a fit would learn something else than what people want."""
    about = "Count what is in a preference file, and show the biases that a reward model would learn from it."
    options = settings("prefs stats", Stats, given=given, about=about)
    if not 1 <= len(options.files) <= 2:
        raise Refusal(f"killick prefs stats takes one file or two, not {len(options.files)}.")
    seen, limit = reader(options)
    if options.out is not None:
        check_folder(options.out)
        for name in SHOWN if options.out.exists() else ():
            check_free(options.out / name, force=options.force)
    summaries, shown = [], []
    for file in options.files:
        bad: list[BadRow] = []
        summary = Summary(seen)
        for _, _, row in scan_preferences(file, options.form):
            if isinstance(row, PreferenceRow):
                summary.add(row)
            else:
                bad.append(row)
        if bad and not options.skip_bad:
            raise BadRows(file, bad)
        summaries.append(summary)
        shown.append({"file": str(file), **summary.figures(), "bad_rows": len(bad)})
        print("\n".join(summary_lines(shown[-1], limit=limit)))
    found: dict[str, Any] = {"files": shown}
    if len(summaries) == 2:
        found["overlap"] = overlap(*summaries)
        print("\n".join(overlapped(found["overlap"], shown)))
    if options.out is not None:
        drawn(options.out, found, force=options.force)


def reader(options: Stats) -> tuple[Callable[[Turns, Turns], Any] | None, str]:
    """What is left of a prompt and a response after truncation, and the limit in words."""
    limits = [limit for limit in (options.max_words, options.max_tokens) if limit is not None]
    if len(limits) > 1 or any(limit < 1 for limit in limits):
        raise Refusal("Truncation takes --max-words or --max-tokens, one of them, and at least 1.")
    if (options.max_tokens is None) != (options.tokenizer is None):
        raise Refusal("--max-tokens and --tokenizer pkg.mod:function go together.")
    if not limits:
        return None, ""
    count = imported(options.tokenizer) if options.tokenizer else str.split

    def seen(prompt: Turns, response: Turns) -> tuple[Any, ...]:
        found: list[Any] = []
        for turn in prompt + response:
            found += count(turn.content)
            if len(found) >= limits[0]:
                break
        return tuple(found[: limits[0]])

    return seen, f"{limits[0]} {'tokens' if options.tokenizer else 'words'}"


def imported(path: str) -> Callable[[str], list[Any]]:
    """The function of an import path.

    Raises:
        Refusal: where there is none.
    """
    module, _, name = path.partition(":")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise Refusal(f"--tokenizer {path} cannot be imported ({error}); write it as pkg.mod:function.") from error
    finally:
        sys.path.remove("")
    if not callable(found):
        raise Refusal(f"--tokenizer {path} is no function.")
    return found


def drawn(out: Path, found: dict[str, Any], *, force: bool) -> None:
    """Write the counts of the files, and the picture of the first."""
    from killick.report.lengths import length_picture
    from killick.report.style import WIDTH, render

    picture = length_picture(found["files"][0]["longer_wins_by_length"])
    files = render(picture.paint, size=(WIDTH, picture.height))
    files["json"] = (json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    out.mkdir(exist_ok=True)
    for name in SHOWN:
        with replacing(out / name, force=force) as file:
            file.write(files[name.partition(".")[2]])
    print(f"{out} holds {', '.join(SHOWN)}.")
