"""Digests of what stands behind a path."""

from pathlib import Path

from killick.recipes.contents import digest, digests


def test_a_digest_follows_what_the_files_hold_and_what_they_are_called(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / "deeper").mkdir(parents=True)
        (folder / "a").write_text("x", encoding="utf-8")
    assert digest(one) == digest(other)
    (other / "a").rename(other / "b")
    assert digest(one) != digest(other)
    assert digest(one / "a") == digest(other / "b")
    (other / "b").write_text("y", encoding="utf-8")
    assert digest(one / "a") != digest(other / "b")
    assert len(digest(one)) == 12


def test_only_paths_have_one(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert list(digests({"model": str(tmp_path / "a"), "gold": "vader", "none": ""})) == ["model"]
