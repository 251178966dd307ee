"""What a person sees while cells run: a live table on a terminal, plain lines anywhere else."""

import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from killick.ops.stats import smoothed

HOLDS = {None: "setting", True: "yes", False: "NO"}
SHOWN = ("proxy", "gold", "kl", "entropy", "length", "finished")
LOOK = "held_"
"""What the columns of a look at held-out prompts begin with; a row has them at some steps."""


class Plain:
    """One line for a note, one for every tenth step of a cell: fit for a file or a pipe (O-55)."""

    def __init__(self, cells: Mapping[str, int]):
        self.cells, self.clock = cells, Clock(sum(cells.values()))
        self.head = False

    def note(self, cell: str, text: str) -> None:
        """Say something about a cell."""
        print(f"[{cell}] {text}", flush=True)

    def row(self, cell: str, row: Mapping[str, Any]) -> None:
        """Take up a ledger row."""
        self.clock.tick()
        look = looked(row)
        if row["step"] % 10 and row["step"] != self.cells[cell] - 1 and not look:
            return
        if not self.head:
            print("  ".join([f"{'cell':>28}", f"{'step':>5}", *(f"{name:>8}" for name in SHOWN), f"{'left':>7}"]))
            self.head = True
        print("  ".join([f"{cell:>28}", f"{row['step']:>5}", *cells_of(row), f"{self.clock.left():>7}"]), flush=True)
        if look:
            print("  ".join([f"{'held-out prompts':>28}", f"{'':>5}", *cells_of(look)]), flush=True)


class Live:
    """A table that is redrawn in place: one line a cell, with a bar, and the time left below."""

    def __init__(self, cells: Mapping[str, int]):
        from rich.live import Live as Screen

        self.cells, self.clock = cells, Clock(sum(cells.values()))
        self.rows: dict[str, Mapping[str, Any]] = {}
        self.looks: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self.said = ""
        self.screen = Screen(self.table(), refresh_per_second=4)

    def __enter__(self) -> "Live":
        self.screen.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.screen.update(self.table())
        self.screen.__exit__(*error)

    def table(self) -> Any:
        """The picture of now."""
        from rich.markup import escape
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table(
            caption=f"{escape(self.said)}\n{self.clock.rate()}, {self.clock.left()} left", caption_justify="left"
        )
        for name in ("cell", "step", *SHOWN, ""):
            table.add_column(name, justify="left" if name == "cell" else "right", no_wrap=True)
        for cell, steps in self.cells.items():
            row = self.rows.get(cell)
            numbers = [number(row[name]) for name in SHOWN] if row else [""] * len(SHOWN)
            step = row["step"] + 1 if row else 0
            table.add_row(cell, f"{step}/{steps}", *numbers, ProgressBar(steps, step, width=16))
            if cell in self.looks:
                at, look = self.looks[cell]
                table.add_row(
                    "  held-out prompts", f"at {at}", *(number(look[name]) for name in SHOWN), "", style="dim"
                )
        return table

    def note(self, cell: str, text: str) -> None:
        """Say something about a cell below the table."""
        self.said = f"{cell}: {text}"
        self.screen.update(self.table())

    def row(self, cell: str, row: Mapping[str, Any]) -> None:
        """Take up a ledger row."""
        self.clock.tick()
        self.rows[cell] = row
        if look := looked(row):
            self.looks[cell] = row["step"], look
        self.screen.update(self.table())


class Clock:
    """Rate and time left, from the first row on."""

    def __init__(self, total: int):
        self.total, self.seen, self.began = total, 0, 0.0

    def tick(self) -> None:
        """One row has come."""
        if not self.seen:
            self.began = time.monotonic()
        self.seen += 1

    def rate(self) -> str:
        """Steps a second so far."""
        spent = time.monotonic() - self.began
        return f"{(self.seen - 1) / spent:.1f} steps/s" if self.seen > 1 and spent > 0 else "starting"

    def left(self) -> str:
        """Time left at this rate."""
        if self.seen < 2:
            return "-"
        seconds = (time.monotonic() - self.began) / (self.seen - 1) * (self.total - self.seen)
        return duration(seconds)


def duration(seconds: float) -> str:
    """A time span, short."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def looked(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of held-out prompts; nothing where it says nothing."""
    found = {name: row.get(LOOK + name) for name in SHOWN}
    return found if found["proxy"] is not None else {}


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """The numbers of a plain line."""
    return [f"{number(row[name]):>8}" for name in SHOWN]


def number(value: float | None) -> str:
    """Three decimals, or a dash; what would have more than nine digits before the point, as a power of ten."""
    return "-" if value is None else f"{value:.3f}" if abs(value) < 1e9 else f"{value:.3e}"


def told(value: str | int | float | None) -> str:
    """A cell of a table: words and counts as they are, other numbers with three decimals.

    What is no printable character becomes a space: a person's text must not steer the terminal.
    """
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else " " for letter in value)
    return str(value) if isinstance(value, int) else number(value)


def table_lines(table: Mapping[str, Any], width: int = 100) -> list[str]:
    """A recipe's table as lines of at most `width` characters where its words allow it: title, note, head, rows.

    Numbers stand to the right. Where the whole is too wide, the widest columns of words are broken into lines.
    """
    grid = [table["columns"], *([told(value) for value in row] for row in table["rows"])]
    numeric = [not any(isinstance(row[place], str) for row in table["rows"]) for place in range(len(grid[0]))]
    widths = [max(len(row[place]) for row in grid) for place in range(len(grid[0]))]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > 12:
        widths[widths.index(max(widths))] -= 1
    lines = [table["title"], *textwrap.wrap(table["note"], width), ""]
    for row in grid:
        broken = [textwrap.wrap(text, room) or [""] for text, room in zip(row, widths, strict=True)]
        for part in range(max(map(len, broken))):
            cells = [cell[part] if part < len(cell) else "" for cell in broken]
            lines.append("  ".join(
                cell.rjust(room) if right else cell.ljust(room)
                for cell, room, right in zip(cells, widths, numeric, strict=True)
            ).rstrip())  # fmt: skip
    return lines


@contextmanager
def console(cells: Mapping[str, int]) -> Iterator[Plain | Live]:
    """A live table where a person looks at a terminal, plain lines elsewhere."""
    if sys.stdout.isatty():
        with Live(cells) as live:
            yield live
    else:
        yield Plain(cells)


def claims_table(claims: Sequence[Mapping[str, Any]]) -> list[str]:
    """Claims as lines: what the source says, the band, what came out, whether it holds."""
    lines = [("claim", "source", "band", "here", "holds")]
    for claim in claims:
        arm = f"{claim['arm']}: " if claim["arm"] else ""
        low, high = ("" if claim[end] is None else f"{claim[end]:g}" for end in ("low", "high"))
        band = f"{low} to {high}" if low and high else f"from {low}" if low else f"to {high}" if high else "-"
        band = "-" if claim["kind"] == "setting" else band
        here = "-" if claim["measured"] is None else f"{claim['measured']:.3g}"
        here += "" if claim["spread"] is None else f" ±{claim['spread']:.2g}"
        lines.append((arm + claim["text"], claim["source"], band, here, HOLDS[claim["holds"]]))
    widths = [max(len(line[place]) for line in lines) for place in range(5)]
    return [
        "  ".join([line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in (1, 2, 3)), line[4]]) for line in lines
    ]


def verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each arm in one sentence: the three numbers, and where gold (smoothed over five steps) was at its best."""
    out, arms = [], dict[str, dict[int, list[Mapping[str, Any]]]]()
    for row in rows:
        arms.setdefault(row["arm"], {}).setdefault(row["step"], []).append(row)
    for arm, groups in arms.items():
        steps = sorted(groups)
        mine = [groups[step] for step in steps]
        proxy = [fmean(row["proxy"] for row in group) for group in mine]
        kl = [row["kl"] for row in mine[-1] if row["kl"] is not None]
        far = f" at a KL of {fmean(kl):.2f} nats" if kl else ""
        ends = [row["finished"] for row in mine[-1] if row["finished"] is not None]
        ended = f", and {fmean(ends):.0%} of the responses end by themselves" if ends else ""
        out.append(
            f"{arm}: the proxy went from {proxy[0]:+.2f} to {proxy[-1]:+.2f}{far}; {gold_words(steps, mine)}{ended}."
        )
    return out


def gold_words(steps: Sequence[int], groups: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """How gold began, where it was best, and how it ended."""
    if any(row["gold"] is None for group in groups for row in group):
        return "gold was not measured"
    gold = [fmean(row["gold"] for row in group) for group in groups]
    smooth = smoothed(gold)
    best = max(range(len(smooth)), key=smooth.__getitem__)
    return (
        f"gold began at {gold[0]:+.2f}, was best around step {steps[best]} ({smooth[best]:+.2f}) and ended at "
        f"{gold[-1]:+.2f}"
    )
