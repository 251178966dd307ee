"""`killick tilt`: the leashed optimum in closed form, over the source's answers or a person's own table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from killick.cli.output import show, write_csv, write_picture
from killick.flags import settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.algorithms.listed import Measured
    from killick.worlds.listed import AnswerTable

ABOUT = """The policy that earns most reward at beta per nat of KL, p_ref x exp(reward / beta): computed, not trained.

Without --table it shows the two answers and the five answers of docs/best-of-n.md. With it,
your own CSV: a line of column names, then a line for each answer. p_ref (its probability before, summing to 1) and
reward (what the optimiser sees) are needed; answer (its text), gold (what people want, in the unit of reward) and
gaming (1 where an answer games the reward) may be missing. Without a column gaming, the answers whose reward is above
their gold are the gaming ones."""
SOURCE_TWO, SOURCE_FIVE = (10.0, 1.0, 0.5, 0.25), (10.0, 2.0, 1.0, 0.5, 0.25, 0.1)
LISTED = 20
"""Answers shown one by one; a longer table shows those that the longest leash likes best."""


@dataclass(frozen=True)
class Tilt:
    """What to show.

    Attributes:
        betas: reward units per nat; those of the source where none are given.
        ns: answers drawn by the best-of-n beside it.
        table: a CSV file with the columns p_ref and reward, and answer, gold, gaming where you have them.
        out: a folder for leash.png, leash.pdf and leash.csv.
    """

    betas: tuple[float, ...] = ()
    ns: tuple[int, ...] = (2, 4, 8, 16, 64)
    table: Path | None = None
    out: Path | None = None

    def validate(self) -> None:
        """Refuse what no leash has.

        Raises:
            Refusal: at a beta or an n that cannot be.
        """
        for beta in self.betas:
            if not 0 <= beta < float("inf"):
                raise Refusal(f"--betas must be 0 or more and finite, not {beta:g}.")
        for n in self.ns:
            if not 1 <= n <= 1_000_000:
                raise Refusal(f"--ns must lie in 1..1000000, not {n}.")


def tilt(given: list[str]) -> None:
    """`killick tilt`: print the tables, and draw them where --out names a folder."""
    options = settings("tilt", Tilt, given=given, about=ABOUT)
    options.validate()
    from killick.worlds.listed import FIVE, TWO
    from killick.worlds.listed_csv import read_table

    if options.table is None:
        show(answers_table(TWO, options.betas or SOURCE_TWO, title="Two answers"))
        table = FIVE
    else:
        table = read_table(content(options.table))
        print("\n".join(table.notes) + "\n" if table.notes else "", end="")
    betas = options.betas or SOURCE_FIVE
    title = "Five answers" if options.table is None else f"{len(table.answers)} answers of {options.table.name}"
    show(answers_table(table, betas, title=title))
    rows = policies(table, betas, ns=options.ns)
    show(policies_table(rows, rule=table.rule))
    print(best_words(table, rows))
    if options.out is not None:
        draw(table, betas, ns=options.ns, rows=rows, out=options.out)


def content(path: Path) -> bytes:
    """A file's bytes, or why there are none."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refusal(f"--table {path} cannot be read ({error.strerror}).") from error


def answers_table(table: "AnswerTable", betas: Sequence[float], *, title: str) -> dict[str, Any]:
    """Each answer: what it has, and how often the policy of each beta gives it."""
    from killick.algorithms.tilt import tilt as optimum

    policies = [optimum(table.reference.log(), table.reward, beta=beta).exp().tolist() for beta in betas]
    columns = {"p_ref": table.reference.tolist(), "reward": table.reward.tolist()}
    if table.gold is not None:
        columns["gold"] = table.gold.tolist()
    columns |= {f"beta {beta:g}": policy for beta, policy in zip(betas, policies, strict=True)}
    rows = [list(row) for row in zip(table.answers, *columns.values(), strict=True)]
    note = "Under each beta, how often the optimum gives the answer: p_ref x exp(reward / beta), made to sum to 1."
    if len(rows) > LISTED:
        loosest = 1 + list(columns).index(f"beta {min(betas):g}")
        rows = sorted(rows, key=lambda row: -row[loosest])[:LISTED]
        note += f" Of {len(table.answers)} answers the {LISTED} that beta {min(betas):g} gives most often."
    return {"title": title, "note": note, "columns": ["answer", *columns], "rows": rows}


Policies = list[tuple[str, float | None, "Measured"]]
"""Name, KL bound (best-of-n has one), and what the policy gives."""


def policies(table: "AnswerTable", betas: Sequence[float], *, ns: Sequence[int]) -> Policies:
    """The reference, the optimum of each beta, and best-of-n."""
    from killick.algorithms.listed import measure, measure_best_of, measure_tilted
    from killick.ops.kl import best_of_n_bound

    return [
        ("reference", None, measure(table.reference.log(), table)),
        *((f"beta {beta:g}", None, measure_tilted(table, beta=beta)) for beta in betas),
        *((f"best of {n}", best_of_n_bound(n), measure_best_of(table, n=n)) for n in ns),
    ]


def policies_table(rows: Policies, *, rule: str) -> dict[str, Any]:
    """What each policy amounts to."""
    note = (
        "KL in nats; the bound of best-of-n is log n - (n - 1)/n; win rate is against the reference; gaming is the "
        f"share of gaming answers in percent: {rule}."
    )
    columns = ["policy", "reward", "gold", "KL", "KL bound", "gaming %", "win rate"]
    return {"title": "Reward, gold and KL", "note": note, "columns": columns, "rows": [
        [name, found.proxy, found.gold, found.kl, bound, None if found.gaming is None else 100 * found.gaming,
         found.win_rate]
        for name, bound, found in rows
    ]}  # fmt: skip


def best_words(table: "AnswerTable", rows: Policies) -> str:
    """The most gold that any beta gives, and which best-of-n gives more."""
    if table.gold is None:
        return "Without a column gold nobody knows which beta is best."
    from killick.algorithms.listed import best_beta, every_beta, measure_tilted

    beta = best_beta(table)
    best = measure_tilted(table, beta=beta)
    assert best.gold is not None
    if beta == every_beta(table)[0]:
        most = f"No beta gives more gold than the reference itself ({rows[0][2].gold:.4f})"
    else:
        most = f"No beta gives more gold than {best.gold:.4f} (beta {beta:.3g}, KL {best.kl:.3f} nats)"
    more = [
        f"{name} ({found.gold:.4f})"
        for name, bound, found in rows
        if bound is not None and found.gold is not None and found.gold > best.gold + 1e-9
    ]
    return f"{most}; {'more gold has ' + ', '.join(more) if more else 'nor does any best-of-n here'}."


def draw(table: "AnswerTable", betas: Sequence[float], *, ns: Sequence[int], rows: Policies, out: Path) -> None:
    """Write leash.png, leash.pdf and leash.csv; older ones of these names are replaced."""
    from killick.report.leash import leash

    head = ["policy", "reward", "gold", "kl", "kl_bound", "gaming", "win_rate"]
    told = [
        [name, found.proxy, found.gold, found.kl, bound, found.gaming, found.win_rate] for name, bound, found in rows
    ]
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_csv(out / "leash.csv", head, rows=told)
        write_picture(out / "leash", leash(table, betas=betas, ns=ns))
    except OSError as error:
        raise Refusal(f"{out} cannot be written ({error.strerror}); name another folder.") from error
    print(f"{out} holds leash.png, leash.pdf and leash.csv.")
