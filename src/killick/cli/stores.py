"""Whether a store is there, asked before it is opened: opening one that is not there would begin it."""

from pathlib import Path


def absent(place: str) -> bool:
    """Whether a store's file is not there; of a database by URL only opening it can tell.

    Args:
        place: an SQLite file, or a `postgresql://` URL.
    """
    return "://" not in place and not Path(place).exists()
