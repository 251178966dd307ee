"""A person's own models in the practice API: the numbers that they give everywhere else."""

from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

from killick.cli.practising import TAKEN
from killick.cli.practising_own import Own, judges, speaks
from killick.cli.serving import app
from killick.models.asking import Unread
from killick.models.encoding import encode_texts
from killick.models.judging import PretrainedReward
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.preferences.rows import PreferenceRow, Turn
from killick.recipes.reward.data import Placed, Reading, judge_rows
from killick.recipes.scores.loading import load_score
from killick.types import Refusal
from llamas import llama_folder
from recipes.scores.test_loading import judge_folder

PROMPTS, ANSWERS = ["Say hello.", "Why?", "Say hello.", "word " * 300], ["Hello.", "", "Say <|im_end|> now.", "Long."]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    llama_folder(folder / "mine")
    judge_folder(folder / "judge")
    return folder


@pytest.fixture(scope="module")
def own(made: Path) -> Own:
    return Own(speaks([made / "mine"], taken=TAKEN), judges([made / "judge"], taken=TAKEN))


def test_scores_are_those_of_the_folder_alone_or_together(made: Path, own: Own) -> None:
    """O-09: empty answers, texts that spell an end token and prompts that are cut among them."""
    expected = load_score(str(made / "judge"), flag="--reward")(PROMPTS, ANSWERS).tolist()
    judge = own.rewards["judge"]
    assert judge(PROMPTS, ANSWERS) == pytest.approx(expected, abs=1e-6)
    alone = [judge([prompt], [answer])[0] for prompt, answer in zip(PROMPTS, ANSWERS, strict=True)]
    assert alone == pytest.approx(expected, abs=1e-6)
    found = judge(["Say <|im_end|>.", "Why?"], ["a", "a"])
    assert isinstance(found[0], Unread)
    assert found[0].field == "prompt"
    assert found[1] == pytest.approx(judge(["Why?"], ["a"])[0])


def test_the_server_offers_them_by_name(made: Path, own: Own) -> None:
    client = TestClient(app(own=own), base_url="http://127.0.0.1:8000")
    names = {(row["name"], row["kind"]) for row in client.get("/v1/models").json()["data"]}
    assert {("mine", "language"), ("judge", "reward"), ("reviewer", "reward")} <= names
    items = [{"prompt": prompt, "answer": answer} for prompt, answer in zip(PROMPTS, ANSWERS, strict=True)]
    reply = client.post("/v1/reward", json={"model": "judge", "items": items})
    expected = load_score(str(made / "judge"), flag="--reward")(PROMPTS, ANSWERS).tolist()
    assert [row["reward"] for row in reply.json()["results"]] == pytest.approx(expected, abs=1e-6)
    asked = {"model": "mine", "prompt": "Say hello.", "n": 2, "seed": 1, "max_tokens": 6}
    first, again = (client.post("/v1/generate", json=asked).json() for _ in range(2))
    assert first == again
    assert len(first["answers"]) == 2
    wrong = client.post("/v1/generate", json=asked | {"prompt": "<|im_end|>"})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "body.prompt")


def test_names_and_folders_that_cannot_be(made: Path, tmp_path: Path) -> None:
    (tmp_path / "reviewer").symlink_to(made / "judge")
    (tmp_path / "deeper").mkdir()
    with pytest.raises(Refusal, match=r"--reward .*: the name 'judge' is not to be had"):
        judges([made / "judge"], taken=["judge"])
    with pytest.raises(Refusal, match=r"--model .*: the name 'mine' is not to be had"):
        speaks([made / "mine", made / "mine"], taken=TAKEN)
    with pytest.raises(Refusal, match=r"lacks the weights score\.weight"):
        judges([made / "mine"], taken=TAKEN)
    with pytest.raises(Refusal, match="holds a model that judges"):
        speaks([made / "judge"], taken=TAKEN)


def test_one_text_has_the_same_ids_and_score_on_every_path(made: Path) -> None:
    """O-09: the fit's encoding, reward score and best-of, a rollout of align, HTTP."""
    begun = PretrainedReward.begin(made / "mine")
    answers = ((Turn("assistant", "Yes."),), (Turn("assistant", "No."),))
    rows = [PreferenceRow((Turn("user", f"Ask {number}."),), answers, (0, 1)) for number in range(20)]
    judged = judge_rows(
        [Placed("here", row) for row in rows], begun.texts,
        reading=Reading(begun.limit, begun.time, shares=(0.6, 0.2, 0.2)),
    )  # fmt: skip
    begun.model.score.weight.data = torch.linspace(-1, 1, begun.model.score.in_features)[None]
    begun.save(made / "fitted")
    judge = PretrainedReward.load(made / "fitted")
    fitted = judged.preference.rollout
    asked = [prompt[0].content for prompt, _ in judged.texts]
    said = [answer[0].content for _, answer in judged.texts]
    read = judge.read(asked, said)
    assert torch.equal(fitted.prompts, read.prompts)
    assert torch.equal(fitted.responses, read.responses)
    expected = judge.scores(asked, said)
    assert torch.equal(load_score(str(made / "fitted"), flag="--reward")(asked, said), expected.double())
    speaks = Texts.load(made / "mine")
    spoken = encode_texts(asked, said, texts=speaks, limit=100, time=50).rollout
    assert len(set(expected.tolist())) == len(asked)
    assert torch.equal(judge.over(PromptSet(asked, speaks, limit=100), speaks)(spoken), expected)
    offered = Own({}, judges([made / "fitted"], taken=TAKEN))
    client = TestClient(app(own=offered), base_url="http://127.0.0.1:8000")
    items = [{"prompt": prompt, "answer": answer} for prompt, answer in zip(asked, said, strict=True)]
    reply = client.post("/v1/reward", json={"model": "fitted", "items": items[:20]})
    assert [row["reward"] for row in reply.json()["results"]] == pytest.approx(expected[:20].tolist(), abs=1e-5)
