"""What `killick prefs` says: counts and shares as lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from killick.preferences.formats.lines import layout
from killick.preferences.rows import BadRow


def plural(count: int, word: str) -> str:
    """1 row, 2 rows."""
    return f"{count:,} {word}" + ("s" if count != 1 else "")


def bad_line(row: BadRow, *, file: Path) -> str:
    """A bad row of a file: where it stands, its field, and why."""
    where = f"{'row' if layout(file)[0] == 'parquet' else 'line'} {row.line}"
    return f"{where}, {row}" if row.field else f"{where} {row.reason}"


def told_lines(told: Counter[str], bad: int, *, out: Path, form: str) -> list[str]:
    """What was written, and what it no longer says."""
    lines = [f"{out}: {plural(told['rows'], 'row')} in the form {form}."]
    lines += [f"  {what}: {count:,}" for what, count in sorted(told.items()) if what != "rows"]
    if bad:
        lines.append(f"  bad rows are left out: {bad:,}")
    return lines


def share(rate: Mapping[str, Any]) -> str:
    """A share with its interval, or that nothing was counted."""
    if not rate["pairs"]:
        return "no pair tells"
    return f"{rate['share']:.3f} ({rate['low']:.3f} to {rate['high']:.3f}) of {plural(rate['pairs'], 'pair')}"


def summary_lines(found: Mapping[str, Any], *, limit: str) -> list[str]:
    """The counts of a file, a line each."""
    sizes = found["responses_per_row"]
    names = found["rows_per_annotator"]
    shown = list(names.items())[:8]
    lines = [
        (
            "rows",
            f"{found['rows']:,}" + (f" ({plural(found['bad_rows'], 'bad row')} left out)" if found["bad_rows"] else ""),
        ),
        ("prompts", f"{found['prompts']:,}"),
        ("pairs", f"{found['pairs']:,} with a preferred response, {plural(found['ties'], 'tie')}"),
        ("responses per row", ", ".join(f"{size}: {rows:,}" for size, rows in sizes.items())),
        ("duplicate rows", f"{found['duplicate_rows']:,}"),
        ("pairs of equal texts", f"{found['equal_pairs']:,}"),
    ]
    if limit:
        lines.append((f"equal within {limit}", f"{found['equal_pairs_after_truncation']:,}"))
    lines += [
        ("repeat the prompt", plural(found["pairs_that_repeat_the_prompt"], "pair")),
        ("longer one wins", share(found["longer_wins"])),
        ("first shown wins", share(found["first_wins"])),
        (
            "annotators",
            ", ".join(f"{name or 'unnamed'}: {rows:,}" for name, rows in shown)
            + (f", {plural(len(names) - len(shown), 'other')}" if len(names) > len(shown) else ""),
        ),
    ]
    return [found["file"], *(f"  {name:<22} {value}" for name, value in lines)]


def overlapped(found: Mapping[str, int], files: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many prompts two files share, and what of each file they are."""
    lines = [f"{plural(found['prompts'], 'prompt')} in both files, apart from case and outer white space"]
    for key, file in zip(("rows_of_first", "rows_of_second"), files, strict=True):
        lines.append(f"  {plural(found[key], 'row')} of {file['rows']:,} in {file['file']}")
    return lines
