"""An alignment run on a random little Llama: every row, every look, the policy that comes out, and what stays still."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from aligning import brevity, judge_folder, letters, setting, tiny
from killick.algorithms.reference import digest
from killick.models.pretrained import PretrainedPolicy
from killick.models.texts import Texts
from killick.recipes.align import recipe as align
from killick.recipes.align.config import Config
from killick.recipes.prompts import divide, read_prompts
from killick.types import Refusal
from straight import Told, done, tell

LOOKS = ["proxy", "gold", "gold_error", "gain_error", "proxy_error", "win", "kl", "entropy", "length", "finished"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return setting(tmp_path_factory.mktemp("setting"))


@pytest.fixture(scope="module")
def told(place: Path) -> Told:
    """Two arms, for all who only look."""
    return tell(align, tiny(place, beta=(0.0, 1.0)))


def begun(config: Config) -> tuple[Any, Iterator[Any], Any]:
    """The first cell of a run, prepared and not yet moved."""
    prepared, _ = done(align.prepare(config, config.seed))
    state, seen = align.begin(config, align.cells(config)[0], prepared=prepared)
    return state, seen, prepared


def test_every_step_has_a_row_and_so_has_the_policy_that_the_last_one_leaves(told: Told) -> None:
    assert [(row["arm"], row["step"]) for row in told.rows] == [
        (arm, step) for arm in ("beta=0", "beta=1") for step in range(4)
    ]
    for row in told.rows:
        assert {"proxy", "gold", "kl", "kl_k1", "beta", "entropy", "length", "finished"} <= row.keys()
        assert ("policy_loss" in row) == (row["step"] < 3)
        assert row["kl"] >= -1e-6
        assert (row["kl"] > 1e-4) == (row["step"] > 0)
        if row["step"] < 3:
            assert row["ratio_error"] < 1e-5  # the first minibatch is read at the very weights that sampled
            assert (row["steps_planned"], row["steps_done"]) == (4, 4)


def test_every_second_step_and_the_last_policy_are_looked_at_on_held_out_prompts(told: Told) -> None:
    for row in told.rows:
        seen = {name for name in row if name.startswith("held_")}
        assert seen == ({f"held_{name}" for name in LOOKS} if row["step"] in (0, 2, 3) else set())
    first = told.rows[0]
    assert first["held_kl"] == pytest.approx(0, abs=1e-5)
    assert (first["held_win"], first["held_gain_error"]) == (0.5, 0.0)
    assert told.rows[3]["held_kl"] > 1e-3


def test_what_was_found_before_the_arms_tells_the_prompts_of_either_side(told: Told, place: Path) -> None:
    sides = divide(read_prompts(place / "prompts.txt"), share=0.25, seed=0)
    found = told.found["0"]
    assert (found["prompts"], found["held_out"], found["evaluated"]) == (len(sides.train), len(sides.held_out), 5)
    assert found["prompts"] + found["held_out"] == 48
    assert told.notes == [f"{len(sides.train)} prompts to learn from, 5 held out to look at, as plain text."]


def test_every_answer_of_a_look_stands_beside_the_references_with_scores_of_its_text(told: Told, place: Path) -> None:
    held_out = divide(read_prompts(place / "prompts.txt"), share=0.25, seed=0).held_out[:5]
    rows = [row for row in told.samples if row["arm"] == "beta=0"]
    assert [row["step"] for row in rows] == [0] * 10 + [2] * 10 + [3] * 10
    for start in (0, 10, 20):
        assert [row["prompt"] for row in rows[start : start + 10]] == held_out * 2
    for row in rows:
        assert row["proxy"] == pytest.approx(letters(row["response"]))
        assert row["gold"] == pytest.approx(brevity(row["response"]), abs=1e-6)
        assert row["reference_proxy"] == pytest.approx(letters(row["reference"]))
        assert row["reference_gold"] == pytest.approx(brevity(row["reference"]), abs=1e-6)
    assert all(row["response"] == row["reference"] for row in rows[:10])  # before the first step it is the reference
    assert any(row["response"] != row["reference"] for row in rows[20:])
    look = next(row for row in told.rows if row["arm"] == "beta=0" and row["step"] == 3)
    assert look["held_gold"] == pytest.approx(sum(row["gold"] for row in rows[20:]) / 10, abs=1e-6)


def test_the_optimiser_never_asks_a_held_out_prompt(place: Path) -> None:
    config = tiny(place, steps=6)
    _, _, prepared = begun(config)
    trained, held_out = prepared.watched.train.rows, prepared.watched.held_out.rows
    assert trained.keys() & held_out.keys() == set()
    asked = set()
    inner = prepared.watched.proxy.score

    def score(prompts: Any, answers: Any) -> Any:
        asked.add((len(prompts), *prompts))
        return inner(prompts, answers)

    watched = replace(prepared.watched, proxy=replace(prepared.watched.proxy, score=score))
    _, seen = align.begin(config, align.cells(config)[0], prepared=prepared._replace(watched=watched))
    assert len(list(seen)) == 7
    rollouts = [set(each[1:]) for each in asked]
    assert all(each <= set(trained.values()) or each <= set(held_out.values()) for each in rollouts)
    assert any(each <= set(held_out.values()) for each in rollouts)


def test_model_reference_and_trunk_stay_as_they_are_while_policy_and_critic_move(place: Path) -> None:
    """O-40 and O-41, over four steps at a high rate."""
    state, seen, prepared = begun(tiny(place, steps=4))
    before = {name: digest(part.parameters()) for name, part in parts(state, prepared).items()}
    assert len(list(seen)) == 5
    after = {name: digest(part.parameters()) for name, part in parts(state, prepared).items()}
    assert {name for name in before if before[name] != after[name]} == {"policy", "value"}
    assert set(state.state_dict()["ppo"]["policy"]) == {name for name, _ in state.ppo.policy.named_parameters()}
    assert len(state.state_dict()["ppo"]["policy"]) < len(list(prepared.model.parameters())) / 2


def parts(state: Any, prepared: Any) -> dict[str, Any]:
    return {
        "model": prepared.model, "reference": state.ppo.reference, "policy": state.ppo.policy, "value": state.ppo.value
    }  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        {"baseline": "leave-one-out"},
        {"baseline": "group-mean", "per_prompt": 2},
        {"baseline": "batch-mean"},
        {"train_layers": "full", "learning_rate": 1e-3},
        {"beta": (), "target_kl": 0.5},
        {"micro_batches": 2, "missing_eos_penalty": 1.0, "stop_kl": 5.0, "temperature": 0.7},
        {"held_out": 0.0, "gold": None},
        {"dtype": "bfloat16", "gold": None},
    ],
    ids=lambda settings: "-".join(map(str, settings)),
)
def test_every_way_of_training_moves_the_policy_and_keeps_its_numbers_finite(
    place: Path, settings: dict[str, Any]
) -> None:
    config = tiny(place, **settings)
    told = tell(align, config)
    assert [row["step"] for row in told.rows] == [0, 1, 2, 3]
    assert abs(told.rows[0]["kl"]) < 1e-6
    assert told.rows[3]["kl"] > 1e-3
    assert ("value_loss" in told.rows[0]) == (config.baseline == "critic")
    assert all((row["gold"] is None) == (config.gold is None) for row in told.rows)
    if config.target_kl:
        assert [row["arm"] for row in told.rows] == ["beta=0.1+target=0.5"] * 4
        assert told.rows[3]["beta"] != told.rows[0]["beta"] == 0.1
    if not config.held_out:
        assert not any(name.startswith("held_out") for row in told.rows for name in row)
        assert [row["step"] for row in told.samples] == [0] * 6 + [2] * 6 + [3] * 6


def test_responses_to_a_prompt_stand_together_and_are_as_many_as_were_asked_for(place: Path) -> None:
    for baseline, n in (("critic", 1), ("leave-one-out", 4)):
        config = tiny(place, baseline=baseline)
        assert (config.n, config.ppo().batch) == (n, 8 // n)


def test_a_policy_learns_to_please_the_reward(place: Path) -> None:
    """Vowels: the proxy of twenty steps of 32 answers rises by far more than its noise."""
    settings = {"steps": 20, "responses": 32, "tokens": 8, "every": 20, "learning_rate": 2e-2}
    told = tell(align, tiny(place, baseline="leave-one-out", gold=None, evaluated=12, answers=8, **settings))
    first, last = told.rows[0], told.rows[-1]
    assert last["held_proxy"] - first["held_proxy"] > 4 * last["held_proxy_error"]


@pytest.mark.parametrize("train_layers", [1, "full"])
def test_a_critic_from_the_reward_model_moves_and_the_reward_model_does_not(place: Path, train_layers: Any) -> None:
    """O-41: scores of fixed texts are the same to the bit after five steps."""
    judge = judge_folder(place)
    config = tiny(place, reward=(str(judge),), critic_from="reward", steps=5, train_layers=train_layers, gold=None)
    state, seen, prepared = begun(config)
    texts = (["a", "b"], ["one", "two"])
    score = prepared.watched.proxy.score
    before, critic = score(*texts), digest(state.ppo.value.parameters())
    assert len(list(seen)) == 6
    assert torch.equal(score(*texts), before)
    assert digest(state.ppo.value.parameters()) != critic


@pytest.mark.parametrize("reward", [("aligning:letters",), ("judge", "aligning:letters")])
def test_a_critic_needs_one_reward_model_to_begin_from(place: Path, reward: tuple[str, ...]) -> None:
    judge_folder(place)
    given = tuple(str(place / each) if each == "judge" else each for each in reward)
    assert "--critic-from reward needs one --reward" in refused(tiny(place, reward=given, critic_from="reward"))


# What comes out


def test_the_policy_that_is_delivered_speaks_as_the_one_that_was_trained(place: Path, tmp_path: Path) -> None:
    config = tiny(place)
    state, seen, prepared = begun(config)
    assert len(list(seen)) == 4
    for _ in range(2):  # done again, as after a kill, it writes the same bytes
        align.deliver(config, align.cells(config)[0], state=state, prepared=prepared, folder=tmp_path)
        files = {path.name: path.read_bytes() for path in (tmp_path / "policy").iterdir()}
        assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= files.keys()
    assert {path.name: path.read_bytes() for path in (tmp_path / "policy").iterdir()} == files
    assert [path.name for path in tmp_path.iterdir()] == ["policy"]
    texts = Texts.load(tmp_path / "policy")
    assert texts.digest == prepared.watched.texts.digest
    loaded = PretrainedPolicy.load(tmp_path / "policy", state.ppo.policy.vocabulary)
    prompts = prepared.watched.held_out.all()
    rollout = state.ppo.policy.sample(prompts, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(loaded.logprobs(rollout)[0], state.ppo.policy.logprobs(rollout)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("choose", ["held-out-gold", "held-out-reward"])
def test_the_best_by_a_look_is_kept_on_request(place: Path, tmp_path: Path, choose: str) -> None:
    config = tiny(place, choose=choose, every=1, steps=4)
    state, seen, prepared = begun(config)
    rows, weights = [], []
    for event in seen:  # a look is taken before its step's update; so are these
        rows.append(event.row)
        weights.append({name: tensor.clone() for name, tensor in state.kept["weights"].items()})
    scores = [row["held_gold" if choose == "held-out-gold" else "held_proxy"] for row in rows]
    best = max(range(5), key=scores.__getitem__)
    assert state.kept["step"] == best
    assert state.kept["score"] == pytest.approx(scores[best])
    align.deliver(config, align.cells(config)[0], state=state, prepared=prepared, folder=tmp_path)
    for name, tensor in weights[best].items():
        assert torch.equal(state.ppo.policy.state_dict()[name], tensor)


def test_several_arms_have_a_folder_each(place: Path, tmp_path: Path) -> None:
    config = tiny(place, beta=(0.0, 0.5))
    assert align.policy_folder(config, "beta=0", folder=tmp_path) == tmp_path / "policy" / "beta=0"
    assert align.policy_folder(tiny(place), "beta=0", folder=tmp_path) == tmp_path / "policy"


# What cannot be


def refused(config: Config) -> str:
    with pytest.raises(Refusal) as error:
        tell(align, config)
    return str(error.value)


def test_a_reward_that_gives_no_number_stops_the_run_with_its_step_and_answer(place: Path) -> None:
    said = refused(tiny(place, reward=("aligning:broken",)))
    assert said.startswith("At step 0: --reward aligning:broken, answer ")


def test_prompts_that_leave_no_room_for_an_answer_are_refused_by_number(place: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.txt"
    long.write_text("short\n" * 1 + "word " * 200 + "\n" + "other\n" * 3, encoding="utf-8")
    assert "tokens, and the model's context leaves 122 beside an answer" in refused(tiny(place, prompts=str(long)))
    assert "no prompt fits beside --tokens 128" in refused(tiny(place, tokens=128))


def test_dialogues_need_a_template(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "dialogues.jsonl"
    turns = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "%s?"}]'
    file.write_text("".join('{"prompt": %s}\n' % (turns % noun) for noun in "abcdefgh"), encoding="utf-8")
    assert "chat template" in refused(tiny(place, prompts=str(file)))
    framed = setting(tmp_path / "framed", template=True)
    told = tell(align, tiny(framed, prompts=str(file), steps=1))
    assert told.found["0"]["chat"] is True
    assert told.samples[0]["prompt"].startswith("system: Be brief.\n\nuser: ")


@pytest.mark.parametrize("pad", ["<|im_end|>", None])
def test_a_model_that_pads_with_its_end_token_or_not_at_all_trains_as_any_other(
    tmp_path: Path, pad: str | None
) -> None:
    """O-20: end tokens are counted by the sampler, never by the padding."""
    told = tell(align, tiny(setting(tmp_path, pad=pad), steps=2, tokens=30))
    for row in told.rows:
        assert 0 <= row["finished"] <= 1
        assert 1 <= row["length"] <= 30
        assert (row["length"] < 30) == (row["finished"] > 0)
