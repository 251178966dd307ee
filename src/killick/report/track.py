"""The ledger mirrored, row by row, to TensorBoard or trackio. The folder stays the truth."""

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from contextvars import Context
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

from killick.report.reading import slug
from killick.types import Refusal

KINDS = ("tensorboard", "trackio")


class Writer(Protocol):
    """What takes the numbers of one cell."""

    def log(self, numbers: dict[str, float], step: int) -> None:
        """Take them."""
        ...

    def close(self) -> None:
        """Write out what is left."""
        ...


class Tracker:
    """Sends each row to the writer of its cell, one arm at one seed, which is opened at its first row.

    Args:
        opening: (cell, first step) to a writer.
    """

    def __init__(self, opening: Callable[[str, int], Writer]):
        self.opening = opening
        self.writers: dict[str, Writer] = {}

    def log(self, row: Mapping[str, Any]) -> None:
        """Mirror one ledger row; what is no number (null, text) is left out."""
        cell, step = f"{slug(row['arm'])},seed={row['seed']}", int(row["step"])
        if cell not in self.writers:
            self.writers[cell] = self.opening(cell, step)
        numbers = {
            key: float(value)
            for key, value in row.items()
            if key not in ("arm", "seed", "step") and isinstance(value, (int, float))
        }
        self.writers[cell].log(numbers, step)

    def close(self) -> None:
        """Close every writer."""
        while self.writers:
            self.writers.popitem()[1].close()


class TensorBoard:
    """Scalars of one cell in a folder for TensorBoard; what an earlier process wrote from `step` on is purged."""

    def __init__(self, folder: Path, step: int):
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(folder), purge_step=step)

    def log(self, numbers: dict[str, float], step: int) -> None:
        """Write them."""
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush and close."""
        self.writer.close()


class Trackio:
    """Metrics of one cell as one trackio run, in trackio's own place; taken up again, it goes on under its name.

    Steps that an earlier process has logged are made again to the same numbers, so they are not logged twice.
    """

    def __init__(self, project: str, name: str, step: int):
        import trackio

        # trackio ends the current run when another begins; a context of its own keeps the cells apart. It also prints
        # five lines a run, which would drown the ledger on the console.
        with redirect_stdout(StringIO()):
            self.run = Context().run(
                trackio.init, project, name, resume="allow", embed=False, auto_log_gpu=False, auto_log_cpu=False
            )

        # Which step comes next is trackio's own note, without a public name; one that lacks it logs all. A cell that
        # begins at 0 is a new run, though one of its name may be there.
        self.logged = int(getattr(self.run, "_next_step", 0)) if step else 0

    def log(self, numbers: dict[str, float], step: int) -> None:
        """Hand them over."""
        if step >= self.logged:
            self.run.log(numbers, step)

    def close(self) -> None:
        """Wait until all is stored."""
        with redirect_stdout(StringIO()):
            self.run.finish()


def tracker(kind: str, folder: Path) -> Tracker:
    """A mirror for the ledger of the run in `folder`.

    Args:
        kind: `tensorboard`, which writes into `folder/tensorboard`, or `trackio`, which writes where it always does,
            into the project named as the folder.
        folder: of the run.

    Raises:
        Refusal: for another kind, or where the package is not here.
    """
    if kind not in KINDS:
        raise Refusal(f"There is no tracker {kind!r}; there are {' and '.join(KINDS)}.")
    try:
        if kind == "tensorboard":
            import tensorboard  # noqa: F401
        else:
            import trackio  # noqa: F401
    except ImportError as error:
        raise Refusal(f"--track {kind} needs the package {kind}, which is not here; pip install {kind}.") from error
    if kind == "tensorboard":
        return Tracker(lambda cell, step: TensorBoard(folder / "tensorboard" / cell, step))
    project = f"killick-{folder.resolve().name}"
    return Tracker(lambda cell, step: Trackio(project, cell, step))
