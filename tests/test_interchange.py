"""Interchange with the real thing: TRL trains on our rows, transformers scores with our reward folder and speaks with
our policy folder, and a reward folder that TRL trained scores here as it does there.

All of the other side runs in one process of a throwaway environment (`throwaway.py`, `trl_side.py`), once for all test
processes; where the environment cannot be made, the tests are skipped and say why.
"""

import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from killick import cli
from killick.models.encoding import encode_ids, padded
from killick.models.judging import PretrainedReward
from killick.models.pretrained import PretrainedPolicy
from killick.models.texts import Texts
from killick.types import Rollout
from llamas import END, llama_folder, tokenizer
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
    cli.main(["prefs", "convert", str(before), str(after), "--to", "pairs", "--text", text])
    return str(after)


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
    judge(folder / "reward")
    asked["reward"] = {
        "kind": "score",
        "folder": str(folder / "reward"),
        "prompts": ASKED,
        "answers": SAID,
        "chat": True,
    }
    policy(folder / "policy")
    asked["policy"] = {"kind": "speak", "folder": str(folder / "policy"), "prompts": ASKED, "time": 12}
    return asked


def judge(folder: Path) -> None:
    """A reward folder as killick writes it, of a model whose padding token is its end token."""
    from transformers import AutoModelForSequenceClassification

    base = llama_folder(folder.with_name("judge's base"), pad=END)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    PretrainedReward(model, Texts.load(base)).save(folder)


def policy(folder: Path) -> None:
    """A policy folder as killick writes it."""
    base = llama_folder(folder.with_name("policy's base"), pad=END, seed=5)
    texts = Texts.load(base)
    PretrainedPolicy.load(base, texts.vocabulary(12)).save(folder)
    texts.save(folder)


@pytest.fixture(scope="session")
def other_side(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
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
            words = [python, "-W", "ignore", script, shared / "jobs.json", shared / "answers.json"]
            known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
            done = subprocess.run(words, env=known | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[-3000:]
    return shared, json.loads((shared / "answers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TRAINED)
def test_our_rows_train_in_trl(other_side: tuple[Path, dict[str, Any]], name: str) -> None:
    """Rankings turned into pairs as JSON lines; messages with a margin as Parquet. It learns what they say."""
    found = other_side[1][name]
    assert other_side[1]["trl"] == "1.16.0"
    assert {"prompt", "chosen", "rejected"} <= set(found["columns"])
    assert found["margin"] == name.startswith("messages")
    assert len(found["chosen"]) == len(PLAIN)
    assert found["accuracy"] > 0.95
    assert found["loss"][-1] < found["loss"][0] / 2


@pytest.mark.parametrize("name", TRAINED)
def test_a_reward_folder_that_trl_trained_scores_here_as_there(other_side: tuple[Path, dict[str, Any]], name) -> None:
    """Every row's two scores, to 1e-5: the frame, the end and the place where the score is read are TRL's own."""
    folder, answers = other_side
    model = PretrainedReward.load(folder / f"trained {name}")
    strip = str.strip if name.startswith("messages") else str
    for side in ("chosen", "rejected"):
        scores = model.scores([row["prompt"] for row in PLAIN], [strip(row[side]) for row in PLAIN])
        assert_close(scores, torch.tensor(answers[name][side]), atol=1e-5, rtol=0)


def test_our_reward_folder_scores_the_same_in_transformers(other_side: tuple[Path, dict[str, Any]]) -> None:
    """Texts of unequal length in one batch, an empty answer among them, to 1e-5."""
    folder, answers = other_side
    scores = PretrainedReward.load(folder / "reward").scores(ASKED, SAID)
    assert_close(torch.tensor(answers["reward"]), scores, atol=1e-5, rtol=0)
    assert scores.std() > 0.01


def test_our_policy_folder_speaks_in_transformers(other_side: tuple[Path, dict[str, Any]]) -> None:
    """Each token that `generate` takes greedily is the most probable one here."""
    folder, answers = other_side
    texts = Texts.load(folder / "policy")
    speaker = PretrainedPolicy.load(folder / "policy", texts.vocabulary(12))
    said = [row[: row.index(texts.eos) + 1] if texts.eos in row else row for row in answers["policy"]]
    responses, mask = padded(said, texts.pad)
    prompts = encode_ids([texts.prompt(prompt) for prompt in ASKED], pad=texts.pad)
    ended = torch.tensor([texts.eos in row for row in said])
    rollout = Rollout(*prompts, responses, mask, torch.zeros(responses.shape), ended)
    with torch.no_grad():
        _, full = speaker.logprobs(rollout)
    assert torch.equal(full.argmax(-1)[mask], responses[mask])
    assert len({tuple(row) for row in said}) > 1
    assert tokenizer().decode(said[0])
