"""`killick reward score`: what one or several reward models give each text of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from killick.cli.output import show
from killick.cli.progress import watched
from killick.flags import settings
from killick.refusal import Refusal

ABOUT = """What one or several reward models give each text of a file.

    killick reward score rm answers.jsonl --out scored.jsonl
    killick reward score rm rm-2 answers.csv

FILE has the columns prompt and response (or responses, a list), or is a preference file, of which every response is
scored; it ends in .jsonl, .csv (either with .gz behind it) or .parquet. A prompt or a response may be a text or a list
of messages. DIR is the folder of killick reward fit, or any AutoModelForSequenceClassification with one label. Scores
of two models lie on scales of their own: compare the order, not the numbers."""
TEXTS = 20
"""Texts in the table; --out has them all."""


@dataclass(frozen=True)
class Score:
    """What asks, and what is asked about.

    Attributes:
        paths: folders of reward models, then the file.
        out: a new file for all rows with their scores: .jsonl, .csv (either with .gz behind it) or .parquet.
        members: also write what each head of an ensemble says.
        dtype: to compute in.
        device: auto, cpu, cuda (or cuda:1), mps.
        force: write over a file that is there.
    """

    paths: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR [DIR ...] FILE")]
    out: Path | None = None
    members: tyro.conf.FlagCreatePairsOff[bool] = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "auto"
    force: tyro.conf.FlagCreatePairsOff[bool] = False


def score(given: list[str]) -> None:
    """`killick reward score`: read, ask each model in turn, print, write."""
    options = settings("reward score", Score, given=given, about=ABOUT)
    if len(options.paths) < 2:
        raise Refusal("killick reward score takes the folder of a reward model (or several) and then a file.")
    *folders, file = options.paths
    if file.is_dir():
        raise Refusal(
            f"The last word is the file to be scored, and {file} is a folder; see killick reward score --help."
        )
    import torch

    from killick.models.judging import PretrainedReward
    from killick.preferences.formats.saving import check_free, save
    from killick.recipes.reward.scores import read_texts, rows, score_texts
    from killick.recipes.settings import find_device

    torch.set_num_threads(1)
    device = find_device(options.device)
    if options.out is not None:
        check_free(options.out, force=options.force)
    texts = read_texts(file)
    scores = {}
    for folder, name in zip(folders, names(folders), strict=True):
        judge = PretrainedReward.load(folder, dtype=getattr(torch, options.dtype)).to(device)
        scores[name] = watched(score_texts(judge, texts, name=name))
    told = list(rows(texts, scores, members=options.members))
    show(table(told, file=file))
    if options.out is not None:
        save(options.out, told, columns=list(told[0]), force=options.force)
        print(f"{options.out} holds {len(told):,} rows.")


def names(folders: Sequence[Path]) -> list[str]:
    """What to call each model: the folder's own name, or the whole path where two have the same.

    Raises:
        Refusal: where a folder is named twice.
    """
    if len(set(folders)) < len(folders):
        raise Refusal("A folder is named twice; each model is asked once.")
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def table(told: Sequence[dict[str, Any]], *, file: Path) -> dict[str, Any]:
    """The first texts with their scores, and the scores of all in a sentence for each model."""
    import torch

    columns = [name for name in told[0] if name.startswith("score") and not name.endswith("members")]
    words = []
    for column in columns:
        values = torch.tensor([row[column] for row in told], dtype=torch.double)
        low, high = (told[int(at)]["line"] for at in (values.argmin(), values.argmax()))
        spread = f"{values.mean():.3f} on average, deviation {values.std(correction=0):.3f}"
        words.append(f"{column}: {spread}, lowest at line {low}, highest at line {high}.")
    note = " ".join(words) + (f" The first {TEXTS} of {len(told):,} are shown." if len(told) > TEXTS else "")
    rows = [
        [row["line"], short(row["prompt"]), short(row["response"]), *(row[name] for name in columns)] for row in told
    ]
    return {"title": str(file), "note": note, "columns": ["line", "prompt", "response", *columns], "rows": rows[:TEXTS]}


def short(given: Any) -> str:
    """A text on one short line; of messages the last."""
    text = given if isinstance(given, str) else given[-1]["content"]
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:39] + "…"
