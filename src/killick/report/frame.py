"""A run's ledger as a table."""

from pathlib import Path
from typing import TYPE_CHECKING

from killick.report.reading import read_ledger
from killick.types import Refusal

if TYPE_CHECKING:
    import pandas


def load_run(folder: str | Path) -> "pandas.DataFrame":
    """The ledger of a run as a pandas DataFrame: one row per arm, seed and step, NaN where nothing was measured.

    Args:
        folder: of a run, finished or not.

    Raises:
        Refusal: where there is no ledger, a damaged one, or no pandas.
    """
    try:
        import pandas
    except ImportError as error:
        raise Refusal("load_run gives a pandas DataFrame, and pandas is not here; pip install pandas.") from error
    return pandas.DataFrame(read_ledger(Path(folder)))
