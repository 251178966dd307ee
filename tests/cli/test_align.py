"""`killick align` as a user runs it: the estimate, the folder, going on, and one sentence for what cannot be."""

import json
from pathlib import Path

import pytest

from aligning import SHORT, setting, words
from commands import Command, command
from killick.models.folders import open_causal

run = pytest.fixture(command)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return setting(tmp_path_factory.mktemp("setting"))


def test_two_arms_side_by_side_leave_a_ledger_a_verdict_and_a_model_each(
    place: Path, run: Command, tmp_path: Path
) -> None:
    told = run(*words(place, "--beta", "0", "0.5", "--out", "run", "--workers", "2"))
    assert told.status == 0, told.err
    assert "Measuring one short step" in told.out
    assert "2 cells on 2 processes; about " in told.out
    assert "GB of memory a process" in told.out
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [(row["arm"], row["step"]) for row in rows] == [(arm, k) for arm in ("beta=0", "beta=0.5") for k in range(3)]
    results = json.loads(Path("run/results.json").read_text())
    assert results["verdict"] in told.out
    assert "beta=0.5: on held-out prompts the proxy went from" in results["verdict"]
    assert [table["title"] for table in results["tables"]] == [
        "Held-out prompts, beta=0", "Held-out prompts, beta=0.5"
    ]  # fmt: skip
    for arm in ("beta=0", "beta=0.5"):
        assert f"The policy of {arm} is run/policy/{arm}." in told.out
        assert open_causal(Path("run/policy") / arm).config.model_type == "llama"
    again = run(*words(place, "--beta", "0", "0.5", "--out", "run"))
    assert "This run is finished; it is drawn again." in again.out
    assert "Measuring" not in again.out


def test_the_folder_of_another_run_is_refused_with_the_difference(place: Path, run: Command, tmp_path: Path) -> None:
    assert run(*words(place, "--beta", "0", "--steps", "1", "--out", "run")).status == 0
    told = run(*words(place, "--beta", "0.5", "--steps", "1", "--out", "run"))
    assert told.status == 2
    assert "holds a run of other settings: beta is [0.0] there and [0.5] here" in told.err
    other = tmp_path / "prompts.txt"
    other.write_text((place / "prompts.txt").read_text() + "One more\n")
    told = run("align", "--model", str(place / "model"), *SHORT, "--beta", "0", "--steps", "1", "--out", "run",
               "--prompts", str(other))  # fmt: skip
    assert "content.prompts is" in told.err
    Path("other").mkdir()
    Path("other/file").touch()
    assert "holds something that is no run" in run(*words(place, "--beta", "0", "--out", "other")).err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([], "Name a leash: --beta 0.1"),
        (["--beta", "0.1", "--target-kl", "5"], "give one of them"),
        (["--beta", "0.1", "--model", "nowhere"], "--model nowhere is no folder of a language model"),
        (["--beta", "0.1", "--prompts", "nowhere.txt"], "nowhere.txt cannot be read"),
        (["--beta", "0.1", "--reward", "nowhere"], "--reward nowhere"),
        (["--beta", "0.1", "--reward", "MODEL"], "lacks the weights"),
        (["--beta", "0.1", "--gold", "aligning:nothing"], "aligning has no nothing"),
        (["--beta", "0.1", "--held-out", "0.001"], "None of 48 prompts falls into the held-out share"),
        (["--beta", "0.1", "--train-layers", "9"], "3 layers"),
        (["--beta", "0.1", "--chat", "on"], "no chat template"),
        (["--beta", "0.1", "--tokens", "500"], "no prompt fits beside --tokens 500"),
        (["--beta", "0.1", "--betas", "0"], "no option --betas (did you mean --beta?)"),
        (["--beta", "much"], "see killick align --help"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_leaves_no_folder(
    place: Path, run: Command, more: list[str], sentence: str
) -> None:
    given = [str(place / "model") if word == "MODEL" else word for word in more]
    told = run(*words(place, "--out", "run", *given))
    assert told.status == 2
    assert sentence in told.err
    assert len(told.err.strip().splitlines()) == 1
    assert not Path("run").exists()


def test_help_teaches(run: Command) -> None:
    told = run("align", "--help")
    assert told.status == 0
    for each in ("--beta", "--target-kl", "--critic-from", "--choose", "two arms side by side", "reward units per nat"):
        assert each in " ".join(told.out.split())
