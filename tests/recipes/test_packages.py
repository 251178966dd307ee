"""A package's files arrive in a folder by pip or by uv; what goes wrong is one sentence."""

import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from killick.recipes import packages
from killick.recipes.ledger import Note
from killick.recipes.packages import complaint, fetched, file_of, in_environment, installer, package_in, progress
from killick.types import Refusal
from packaged import Packaged, only_from, packaged

for module in ("transformers", "gguf"):
    pytest.importorskip(module, reason="the package in these tests is written with the extra hf")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Packaged:
    return packaged(tmp_path_factory.mktemp("packaged"))


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_pip_or_uv_brings_the_files_and_nothing_that_they_need(tool: str, tiny, tmp_path, monkeypatch) -> None:
    """The package asks for one that does not exist; the environment knows of neither after."""
    only_from(tiny.wheel.parent, monkeypatch, source=tiny.source)
    if tool == "uv":
        monkeypatch.setattr(packages, "find_spec", lambda _: None)
    assert (tool in installer()[0]) == (tool == "uv")
    notes = list(fetched("tiny-gguf==0.1", tmp_path / "at" / "package", size=tiny.source.size))
    assert notes == [Note("Fetching tiny-gguf==0.1, 0 MB.")]
    package = package_in(tmp_path / "at" / "package")
    assert file_of(package, ".gguf").read_bytes() == tiny.gguf.read_bytes()
    assert file_of(package, "LICENSE").read_text() == "Do as you like.\n"
    assert in_environment("tiny-gguf==0.1") is None
    with pytest.raises(Refusal, match=r"has 0 files that end in \.bin, where one is due"):
        file_of(package, ".bin")


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_package_that_cannot_be_had_is_one_sentence(tool: str, tiny, tmp_path, monkeypatch) -> None:
    only_from(tmp_path, monkeypatch, source=tiny.source)
    if tool == "uv":
        monkeypatch.setattr(packages, "find_spec", lambda _: None)
    with pytest.raises(Refusal, match=r"^tiny-gguf==0.1 could not be fetched \(.*\); check the network") as refused:
        list(fetched("tiny-gguf==0.1", tmp_path / "package", size=1))
    assert "\n" not in str(refused.value)
    assert "tiny-gguf" in str(refused.value).split("(")[1]


def test_a_complaint_is_the_last_line_without_hints_and_marks() -> None:
    """As pip and as two versions of uv write it."""
    pip = "WARNING: Retrying (connection refused)\nERROR: No matching distribution found for x==1\n"
    uv = "error: Failed to fetch\n  cause: Connection refused (os error 111)\n\nhint: Packages were unavailable.\n"
    older = "  No solution found:\n  ╰─▶ Because x was not found, it cannot be had.\n"
    broken = (
        "error: No solution\n  cause: Because x was not found and\n         you require it, none.\n\nhint: no index\n"
    )
    assert complaint(broken) == "Because x was not found and you require it, none"
    assert [complaint(said) for said in (pip, uv, older, "\n")] == [
        "No matching distribution found for x==1",
        "Connection refused (os error 111)",
        "Because x was not found, it cannot be had",
        "",
    ]


def test_without_pip_and_uv_it_says_so(monkeypatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _: None)
    monkeypatch.setattr("killick.recipes.packages.shutil.which", lambda *_, **__: None)
    with pytest.raises(Refusal, match="needs pip or uv"):
        installer()


def test_a_slow_download_tells_how_far_it_is(tmp_path, monkeypatch) -> None:
    """30 of 120 MB in the scratch folder: three times as long again as it took so far."""
    monkeypatch.setattr(packages, "SAID_EVERY", 0.3)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        try:
            began, lines = time.monotonic(), progress(child, tmp_path, size=120_000_000)
            assert next(lines) == Note("Waiting for the index (0 s).")
            with (tmp_path / "part").open("wb") as file:
                file.truncate(30_000_000)
            said = next(lines).text
            spent = time.monotonic() - began
        finally:
            child.kill()
    head, left = said.rsplit(" about ", 1)
    assert head == "30 of 120 MB,"
    assert abs(int(left.split(" s left")[0]) - 3 * spent) <= 1
    assert list(lines) == []


def test_a_package_of_the_environment_is_used_at_its_exact_version() -> None:
    here = in_environment(f"torch=={version('torch')}")
    assert here is not None
    assert here.name == "torch"
    assert in_environment("torch==0.0.1") is None
    assert in_environment("no-such-package==1") is None


def test_a_folder_without_a_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="holds no package"):
        package_in(tmp_path)
