"""Interchange with the real thing: TRL trains on our rows, transformers scores with our reward folder and speaks with
our policy folder, and a reward folder that TRL trained scores here as it does there.

All of the other side runs in one process of a throwaway environment (`throwaway.py`, `trl_side.py`), once for all test
processes; where the environment cannot be made, the tests are skipped and say why.
"""

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from torch.testing import assert_close

from killick import cli
from killick.models.encoding import encode_ids, padded
from killick.models.judging import PretrainedReward
from killick.models.pretrained import PretrainedPolicy
from killick.models.texts import Texts
from killick.types import Rollout
from llamas import END, llama_folder
from throwaway import environment

pytest.importorskip("transformers", reason="interchange needs the extra hf")
pytest.importorskip("pyarrow", reason="interchange needs the extra prefs")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

THINGS = ("lamp", "park", "bird", "answer", "diary", "review", "other one", "that")
PROMPTS = [f"My {word} review of the {thing}: I" for thing in THINGS for word in ("honest", "best")]
GOOD, BAD = (
    (" thought it was good.", " feel happy about it."),
    (" saw that it was not.", " went and it was more than that, no."),
)
PLAIN = [
    {"prompt": prompt, "chosen": chosen, "rejected": rejected}
    for prompt in PROMPTS for chosen in GOOD for rejected in BAD
]  # fmt: skip
ASKED = ["Hi", "My honest review of the lamp: I", "x"]
SAID = ["it was good.", "a much longer answer, since lengths differ " * 2, ""]
STEPS = 32
Asked: TypeAlias = tuple[Path, dict[str, Any]]
"""The folder of all files, and what the other side found."""
TRAINED = ("plain", "plain, pad = eos", "messages", "messages, pad = eos")


def turns(row: dict[str, str]) -> dict[str, Any]:
    """The same row as messages; a margin, which both sides take."""
    said = {name: [{"role": "assistant", "content": row[name].strip()}] for name in ("chosen", "rejected")}
    return {"prompt": [{"role": "user", "content": row["prompt"]}], **said, "margin": 0.5}


def converted(folder: Path, name: str, *, rows: list[dict[str, Any]], ending: str) -> str:
    """Rows in another order of columns and another form, brought by `killick prefs convert` to what others read."""
    before, after = folder / f"{name}.before.jsonl", folder / f"{name}.{ending}"
    before.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = "messages" if isinstance(rows[0]["prompt"], list) else "plain"
    killick("prefs", "convert", before, after, "--to", "pairs", "--text", text)
    return str(after)


def killick(*words: object) -> None:
    """A command, in this process; pictures are drawn in tests of their own."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("killick.report.drawing.draw", lambda *_, **__: [])
        cli.main([str(word) for word in words])
    signal.signal(signal.SIGTERM, before)


def aligned(folder: Path, model: Path, *, reward: Path) -> Path:
    """A policy folder as `killick align` leaves it after one step."""
    prompts = folder.with_name(f"{folder.name}.txt")
    prompts.write_text("\n".join(PROMPTS) + "\n", encoding="utf-8")
    killick("align", "--model", model, "--reward", reward, "--prompts", prompts, "--beta", "0.1", "--steps", 1,
            "--responses", 8, "--tokens", 6, "--evaluated", 2, "--answers", 1, "--learning-rate", "0.01",
            "--out", folder)  # fmt: skip
    return folder / "policy"


def jobs(folder: Path) -> dict[str, dict[str, Any]]:
    """What is asked of the other side, and the folders and files that it needs."""
    ranked = [
        {"prompt": row["prompt"], "responses": [row["rejected"], row["chosen"]], "ranking": [1, 0]} for row in PLAIN
    ]
    rows = {
        "plain": converted(folder, "plain", rows=ranked, ending="jsonl"),
        "messages": converted(folder, "messages", rows=[turns(row) for row in PLAIN], ending="parquet"),
    }
    asked: dict[str, dict[str, Any]] = {}
    for name in TRAINED:
        form, _, ends = name.partition(", ")
        base = llama_folder(
            folder / f"base {name}", template=form == "messages", pad=END if ends else "<|pad|>", layers=2
        )
        asked[name] = {"kind": "train", "rows": rows[form], "model": str(base), "out": str(folder / f"trained {name}"),
                       "scratch": str(folder / f"scratch {name}"), "steps": STEPS}  # fmt: skip
    base = llama_folder(folder / "base", pad=END, seed=5)
    killick("reward", "fit", rows["plain"], "--model", base, "--l2", "0.1", "--out", folder / "reward")
    asked["reward"] = {
        "kind": "score",
        "folder": str(folder / "reward"),
        "prompts": ASKED,
        "answers": SAID,
        "chat": True,
    }
    policy = aligned(folder / "aligned", base, reward=folder / "reward")
    asked["policy"] = {"kind": "speak", "folder": str(policy), "prompts": ASKED, "time": 12}
    return asked


@pytest.fixture(scope="session")
def other_side(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """The folder of all files, and what TRL and transformers found: asked once, by whichever test process is first."""
    python = environment()
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "interchange"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "answers.json").exists():
            (shared / "jobs.json").write_text(json.dumps(jobs(shared)), encoding="utf-8")
            script = Path(__file__).with_name("trl_side.py")
            words: list[str | Path] = [python, "-W", "ignore", script, shared / "jobs.json", shared / "answers.json"]
            known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            done = subprocess.run(words, env=known | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
    return shared, json.loads((shared / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TRAINED)
def test_our_rows_train_in_trl(other_side: Asked, name: str) -> None:
    """Rankings turned into pairs as JSON lines; messages with a margin as Parquet. It learns what they say."""
    found = other_side[1][name]
    assert other_side[1]["trl"] == "1.16.0"
    assert {"prompt", "chosen", "rejected"} <= set(found["columns"])
    assert found["margin"] == name.startswith("messages")
    assert len(found["chosen"]) == len(PLAIN)
    assert found["accuracy"] > 0.95
    assert found["loss"][-1] < found["loss"][0] / 2


@pytest.mark.parametrize("name", TRAINED)
def test_a_reward_folder_that_trl_trained_scores_here_as_there(other_side: Asked, name: str) -> None:
    """Every row's two scores, to 1e-5: the frame, the end and the place where the score is read are TRL's own."""
    folder, answers = other_side
    model = PretrainedReward.load(folder / f"trained {name}")
    strip = str.strip if name.startswith("messages") else str
    for side in ("chosen", "rejected"):
        scores = model.scores([row["prompt"] for row in PLAIN], [strip(row[side]) for row in PLAIN])
        assert_close(scores, torch.tensor(answers[name][side]), atol=1e-5, rtol=0)


def test_our_reward_folder_scores_the_same_in_transformers(other_side: Asked) -> None:
    """One that `killick reward fit` wrote; texts of unequal length in one batch, one of them empty, to 1e-5."""
    folder, answers = other_side
    scores = PretrainedReward.load(folder / "reward").scores(ASKED, SAID)
    assert_close(torch.tensor(answers["reward"]), scores, atol=1e-5, rtol=0)
    assert scores.std() > 0.01


def test_our_policy_folder_speaks_in_transformers(other_side: Asked) -> None:
    """One that `killick align` wrote; each token that `generate` takes greedily is the most probable one here."""
    folder, answers = other_side
    policy = folder / "aligned" / "policy"
    texts = Texts.load(policy)
    speaker = PretrainedPolicy.load(policy, texts.vocabulary(12))
    said = [row[: row.index(texts.eos) + 1] if texts.eos in row else row for row in answers["policy"]]
    responses, mask = padded(said, texts.pad)
    prompts = encode_ids([texts.prompt(prompt) for prompt in ASKED], pad=texts.pad)
    ended = torch.tensor([texts.eos in row for row in said])
    rollout = Rollout(*prompts, responses, mask, torch.zeros(responses.shape), ended)
    with torch.no_grad():
        _, full = speaker.logprobs(rollout)
    assert torch.equal(full.argmax(-1)[mask], responses[mask])
    assert len({tuple(row) for row in said}) > 1


def test_best_of_chooses_by_a_reward_folder_that_trl_trained(other_side: Asked, tmp_path: Path) -> None:
    """The winner of each prompt, with the number that TRL gave it."""
    folder, answers = other_side
    lines = [json.dumps({"prompt": row["prompt"], "responses": [row["chosen"], row["rejected"]]}) for row in PLAIN]
    (tmp_path / "variants.jsonl").write_text("\n".join(lines), encoding="utf-8")
    reward = folder / "trained plain, pad = eos"
    killick("best-of", "--candidates", tmp_path / "variants.jsonl", "--reward", reward, "--out", tmp_path / "out")
    winners = [json.loads(line) for line in (tmp_path / "out" / "winners.jsonl").read_text().splitlines()]
    known = {(row["prompt"], row[side]): score for side in ("chosen", "rejected")
             for row, score in zip(PLAIN, answers["plain, pad = eos"][side], strict=True)}  # fmt: skip
    assert len(winners) == len(PROMPTS)
    for row in winners:
        best = max(score for (prompt, _), score in known.items() if prompt == row["prompt"])
        assert row["reward"] == pytest.approx(best, abs=1e-5)
        assert row["response"] in GOOD


def test_align_optimises_for_a_reward_folder_that_trl_trained(other_side: Asked, tmp_path: Path) -> None:
    """Every sample's proxy is that model's number for its text."""
    folder, _ = other_side
    reward = folder / "trained messages, pad = eos"
    policy = aligned(tmp_path / "run", folder / "base", reward=reward)
    assert (policy / "model.safetensors").exists()
    told = [json.loads(line) for line in (tmp_path / "run" / "samples.jsonl").read_text().splitlines()]
    scores = PretrainedReward.load(reward).scores([row["prompt"] for row in told], [row["response"] for row in told])
    assert_close(torch.tensor([row["proxy"] for row in told]), scores, atol=1e-4, rtol=0)
