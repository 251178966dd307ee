"""A store's file is there or not; a URL is for the database to answer."""

from pathlib import Path

from killick.cli.stores import absent


def test_a_file_is_absent_until_it_is_there_and_a_url_never(tmp_path: Path) -> None:
    place = tmp_path / "labels.db"
    assert absent(str(place))
    place.touch()
    assert not absent(str(place))
    assert not absent("postgresql://nobody@nowhere/none")
