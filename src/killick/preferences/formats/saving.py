"""From records to a file, whole or not at all: a temporary name, synced, renamed; nothing is written over unasked."""

import csv
import gzip
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from killick.preferences.formats.cells import dumps, to_cells
from killick.preferences.formats.lines import BATCH, arrow, layout
from killick.refusal import Refusal


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a place where nothing can be written, before any work is done for it.

    Raises:
        Refusal: where there is a file (unless `force`), a folder, or no folder to be in.
    """
    if path.is_dir():
        raise Refusal(f"{path} is a folder; name a file in it.")
    if path.exists() and not force:
        raise Refusal(f"{path} exists, and nothing is written over; name another file, or add --force.")
    if not path.parent.is_dir():
        raise Refusal(f"There is no folder {path.parent} for {path.name}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise Refusal(f"The folder {path.parent} may not be written to.")


def check_folder(path: Path) -> None:
    """Refuse a folder that neither is there nor can be made.

    Raises:
        Refusal: where it is a file, or there is no folder to be in.
    """
    if path.exists() and not path.is_dir():
        raise Refusal(f"{path} is a file; name a folder.")
    if not path.exists() and not path.parent.is_dir():
        raise Refusal(f"There is no folder {path.parent} for {path.name}; make it first.")


@contextmanager
def replacing(path: Path, *, force: bool = False) -> Iterator[io.BufferedIOBase]:
    """A new file that takes its name when all is written and on the disk; on any error nothing has changed.

    Raises:
        Refusal: where it cannot be written.
    """
    check_free(path, force=force)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_free(path, force=force)
        os.replace(partial, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        partial.unlink(missing_ok=True)


def save(
    path: Path, records: Iterable[Mapping[str, Any]], *, columns: Sequence[str], schema: Any = None, force: bool = False
) -> None:
    """Write records in the layout that the file's name asks for.

    Args:
        path: ends in .jsonl, .csv (either with .gz behind it) or .parquet.
        records: each with some of the columns; for CSV, values that are no text become JSON.
        columns: all that there are, in the order of CSV.
        schema: of Parquet.
        force: write over a file that is there.

    Raises:
        Refusal: where it cannot be written.
    """
    kind, zipped = layout(path)
    with replacing(path, force=force) as file:
        if kind == "parquet":
            save_parquet(file, records, schema=schema)
            return
        whole: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if zipped else file
        text = io.TextIOWrapper(whole, encoding="utf-8", newline="", write_through=True)
        try:
            if kind == "jsonl":
                text.writelines(dumps(record) + "\n" for record in records)
            else:
                table = csv.DictWriter(text, columns, restval="", quoting=csv.QUOTE_ALL, lineterminator="\n")
                table.writeheader()
                table.writerows(to_cells(record) for record in records)
        except RecursionError as error:
            raise Refusal(f"{path.name}: a row is nested too deep to be written.") from error
        text.detach()
        if zipped:
            whole.close()


def save_parquet(file: io.BufferedIOBase, records: Iterable[Mapping[str, Any]], *, schema: Any) -> None:
    """Write records batch by batch."""
    pyarrow = arrow()
    rest = iter(records)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rest, BATCH)):
            writer.write_table(pyarrow.Table.from_pylist(batch, schema=schema))


def schema(columns: Sequence[str], *, messages: bool) -> Any:
    """The Parquet types of a form's columns.

    Raises:
        Refusal: where pyarrow is missing.
    """
    pa = arrow()
    turns = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])) if messages else pa.string()
    numbers = {"probability": pa.float64(), "margin": pa.float64(), "strength": pa.int64(), "choice": pa.int64()}
    lists = {
        "responses": pa.list_(turns),
        "ranking": pa.list_(pa.list_(pa.int64())),
        "scores": pa.list_(pa.float64()),
    }
    words = {"preference": pa.string(), "annotator": pa.string(), "group": pa.string(), "shown": pa.bool_()}
    types = numbers | lists | words
    return pa.schema([(name, types.get(name, turns)) for name in columns])
