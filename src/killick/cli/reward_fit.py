"""`killick reward fit`: from people's judgements to a reward model on one's own language model, or of a world."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from killick.cli.prefs_words import plural
from killick.cli.progress import watched
from killick.cli.reward_world import ceiling_line, fit_world
from killick.cli.stores import absent
from killick.flags import settings
from killick.preferences.formats.forms import FormName
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.reward.data import Judged
    from killick.recipes.reward.files import HeadConfig
    from killick.recipes.reward.sources import Source
    from killick.recipes.reward.trained import TrainedConfig

ABOUT = """Learn from people's judgements which answers they prefer.

    killick reward fit prefs.jsonl --model my-model --out rm

PREFS is any preference file (killick prefs --help shows the forms): pairs, rankings, scores, soft labels, margins. Its
prompts are split by their text into three parts: one to learn from, one to choose by, and one that is only asked at the
end. Pairs of a ranking are averaged first; a tie teaches one half; answers that the model cannot tell apart are left
out and counted. DIR of --model is a folder of any transformers language model; the reward model is the same model with
one output, and its folder opens in transformers (AutoModelForSequenceClassification). Scores have mean 0 and
deviation 1 over the answers that were learned from.

--train head fits a linear head to the frozen model's states: each answer is read once, then the fit takes seconds.
--train top goes on from there with the last --train-layers layers over a frozen trunk, --train full with all weights;
the part to choose by says when to stop, and whether that was better than the head alone.

With --from-store the judgements are labels of killick label: add --model DIR for a reward on text, or --world W for the
own reward model of a world whose samples were labelled (arithmetic, emphasis, answers). There accuracy is told beside
the ceiling that the annotators' own noise sets; a skip, a flag or an earlier revision does not count."""


@dataclass(frozen=True)
class Fit:
    """What to learn from, what on, and how.

    Attributes:
        prefs: a preference file.
        model: folder of the language model to build on, or the name of one that was fetched (smollm2).
        out: a new folder for the reward model. Of a world: without it nothing is kept.
        from_store: labels in place of a file: an SQLite file or a postgresql:// URL, as killick label keeps them.
        world: whose samples were labelled: arithmetic, emphasis or answers.
        train: what learns: a head on frozen states, the top layers too, or everything.
        train_layers: how many layers at the top learn, with --train top (Llama, SmolLM, Mistral, Qwen2, Qwen3).
        epochs: passes over the pairs, with --train top or full.
        batch: rankings (or single pairs) a step, with --train top or full.
        learning_rate: with --train top (5e-5 without) or full (1e-5).
        l2: decay of the head; without, the validation part chooses.
        centre: pull on the sum of a pair's scores towards 0.
        members: heads of an ensemble on one trunk, each fitted to prompts drawn with replacement; the model's own head
            is their mean.
        shares: expected shares of prompts to learn from, to choose by, and to be judged by.
        seed: of the split and of all that is drawn; killick prefs split --seed puts the same prompts on the same side.
        ties: a tie teaches one half, or is left out.
        max_length: tokens of prompt and answer together that are read; without, 1024, or the model's context where
            that is less. A prompt loses its beginning, an answer its end.
        answer_length: tokens of these that are kept free for an answer; without, half.
        chat: frame prompts by the tokenizer's chat template, or not; auto does where there is one.
        dtype: to compute in; bfloat16 is about three times as fast on CPUs that know it.
        device: auto, cpu, cuda (or cuda:1), mps.
        form: of the file's rows; found by the columns where none is named.
        skip_bad: leave out (and count) rows that are bad or that the model cannot read, instead of refusing the file.
    """

    prefs: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[PREFS]")] = None
    model: Path | None = None
    out: Path | None = None
    from_store: str | None = None
    world: str | None = None
    train: Literal["head", "top", "full"] = "head"
    train_layers: int = 6
    epochs: float = 2.0
    batch: int = 16
    learning_rate: float | None = None
    l2: float | None = None
    centre: float = 0.01
    members: int = 1
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    ties: Literal["half", "out"] = "half"
    max_length: int | None = None
    answer_length: int | None = None
    chat: Literal["auto", "on", "off"] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "auto"
    form: FormName | None = None
    skip_bad: tyro.conf.FlagCreatePairsOff[bool] = False

    def validate(self) -> None:
        """Refuse what does not go together.

        Raises:
            Refusal: naming the flags.
        """
        if (self.prefs is None) == (self.from_store is None):
            raise Refusal("killick reward fit takes a preference file or --from-store DB, one of the two.")
        if (self.model is None) == (self.world is None):
            raise Refusal(
                "Name what to build on: --model DIR (the folder of a language model), or --world W for labels of a "
                "world's samples."
            )
        if self.world is not None and self.from_store is None:
            raise Refusal("--world goes with --from-store: samples of a world are labelled by killick label --world.")
        if self.model is not None and self.out is None:
            raise Refusal("Name a new folder for the reward model: --out DIR.")
        if not 0 <= self.seed < 2**63:
            raise Refusal(f"--seed must lie in 0..2^63 - 1, not {self.seed}.")


def fit(given: list[str]) -> None:
    """`killick reward fit`: a reward on text, or of a world."""
    asked = settings("reward fit", Fit, given=given, about=ABOUT)
    asked.validate()
    if asked.world is not None and asked.from_store is not None:
        fit_world(asked.from_store, asked.world, out=asked.out, seed=asked.seed)
    elif asked.model is not None and asked.out is not None:
        from killick.recipes.fetching import found

        fit_text(asked, found(asked.model), out=asked.out)


def fit_text(asked: Fit, model: Path, *, out: Path) -> None:
    """From judgements to the folder of a reward model, with everything that may be refused looked at first."""
    import torch

    from killick.models.judging import PretrainedReward
    from killick.recipes.fetching import found as found_model
    from killick.recipes.reward.data import Reading, judge_rows
    from killick.recipes.reward.files import check_out, fit_head, save
    from killick.recipes.reward.trained import fit_trained, forget
    from killick.recipes.settings import find_device

    torch.set_num_threads(1)
    head, layers = configs(asked)
    check_out(out)
    device = find_device(asked.device)
    found = source(asked)
    judge = PretrainedReward.begin(
        found_model(model), limit=asked.max_length, time=asked.answer_length, dtype=getattr(torch, asked.dtype),
        chat={"auto": None, "on": True, "off": False}[asked.chat],
    ).to(device)  # fmt: skip
    reading = Reading(
        judge.limit, judge.time, shares=asked.shares, seed=asked.seed, ties=asked.ties, skip=asked.skip_bad
    )
    judged = judge_rows(found.placed, judge.texts, reading=reading)
    print("\n".join(before_lines(found, judged, asked=asked)), flush=True)
    work = (
        fit_head(judge, judged, config=head)
        if layers is None
        else (fit_trained(judge, judged, config=layers, head=head, out=out))
    )
    try:
        facts = watched(work)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("What was done is kept: the same command goes on from there.") from None
    facts = described(asked, found, judge=judge) | facts | ceiling_facts_of(found, judged)
    facts["left_out"] = dict(found.left)
    save(judge, out, facts=facts, learned=judged.learned)
    forget(out)
    print("\n".join(after_lines(facts, out=out, asked=asked)))


def configs(asked: Fit) -> tuple["HeadConfig", "TrainedConfig | None"]:
    """Settings of the head, and of the layers where some are trained.

    Raises:
        Refusal: where they cannot be, or do not go together.
    """
    from killick.recipes.reward.files import HeadConfig
    from killick.recipes.reward.trained import TrainedConfig

    head = HeadConfig(l2=asked.l2, centre=asked.centre, members=asked.members, seed=asked.seed)
    head.validate()
    if asked.train == "head":
        return head, None
    if asked.members > 1:
        raise Refusal(f"--members makes heads on one frozen trunk; it goes with --train head, not {asked.train}.")
    layers = TrainedConfig(
        asked.train, asked.train_layers, epochs=asked.epochs, batch=asked.batch, learning_rate=asked.learning_rate,
        centre=asked.centre, seed=asked.seed,
    )  # fmt: skip
    layers.validate()
    return head, layers


def source(asked: Fit) -> "Source":
    """The judgements that are meant.

    Raises:
        Refusal: where there are none.
    """
    from killick.recipes.reward.sources import from_file, from_labels

    if asked.prefs is not None:
        return from_file(asked.prefs, form=asked.form, skip_bad=asked.skip_bad)
    try:
        from killick.preferences.store import Store
    except ImportError as error:
        raise Refusal(
            f"killick reward fit needs the extra prefs ({error.name} is missing): pip install 'killick[prefs]'."
        ) from error
    place = str(asked.from_store)
    if absent(place):
        raise Refusal(f"There is no store {place}; killick label FILE begins one.")
    with Store(place) as store:
        return from_labels(store.export(), name=place)


def described(asked: Fit, found: "Source", *, judge: Any) -> dict[str, Any]:
    """What was fitted, on what, and how it reads."""
    from importlib.metadata import version

    return {
        "kind": "reward model on text", "killick": version("killick"), "source": found.name, "form": found.kind,
        "model": str(asked.model), "judgements": len(found.placed), "seed": asked.seed, "shares": list(asked.shares),
        "ties_teach": asked.ties, "limit": judge.limit, "time": judge.time, "chat": judge.texts.chat,
        "dtype": asked.dtype,
    }  # fmt: skip


def ceiling_facts_of(found: "Source", judged: "Judged") -> dict[str, Any]:
    """The ceiling that soft labels name, or the annotators' own noise sets where more than one judged the same."""
    from killick.preferences.noise import noise
    from killick.recipes.reward.fit import ceiling_facts, soft_ceiling

    verdicts = found.verdicts()
    ceiling = soft_ceiling(judged.of(2)[0]) or ceiling_facts(noise(verdicts)[1] if verdicts else None)
    return ceiling | {
        "annotators": sorted({verdict.annotator for verdict in verdicts}),
        "ties": sum(len(set(verdict.place)) == 1 for verdict in verdicts),
    }


def before_lines(found: "Source", judged: "Judged", *, asked: Fit) -> list[str]:
    """What is learned from, a line each."""
    pairs = [int((judged.part == number).sum()) for number in range(3)]
    sides = ", ".join(
        f"{plural(count, 'pair')} of {plural(len(prompts), 'prompt')} {what}"
        for count, prompts, what in zip(
            pairs, judged.prompts, ("to learn from", "to choose by", "to be judged by"), strict=True
        )
    )
    lines = [f"{found.name}: {plural(len(found.placed), 'judgement')} ({found.kind}); {sides} (seed {asked.seed})."]
    told = {**found.left, **judged.counts}
    if told:
        words = ", ".join(f"{count:,} {what}" for what, count in told.items())
        lines.append(f"Left out or cut: {words}.")
    return lines


def after_lines(facts: dict[str, Any], *, out: Path, asked: Fit) -> list[str]:
    """What came out, and what to do next."""
    few = " (too few prompts for the interval to be trusted)" if facts["held_prompts"] < 10 else ""
    ties = f"; {plural(facts['held_ties'], 'tie')} not counted" if facts["held_ties"] else ""
    prefs = asked.prefs if asked.prefs is not None else "PREFS"
    members = f", its head the mean of {facts['members']}" if facts["members"] > 1 else ""
    return [
        f"accuracy  {facts['accuracy']:.3f}  [{facts['accuracy_low']:.3f}, {facts['accuracy_high']:.3f}]  95 %, on "
        f"{plural(facts['held_pairs'], 'pair')} of {plural(facts['held_prompts'], 'prompt')} that it has not seen"
        f"{few}{ties}; {facts['learned_accuracy']:.3f} on those that it learned from",
        ceiling_line(facts),
        f"The reward model is in {out}{members}.",
        f"Before anything is optimised against it:  killick reward exam {out} {prefs} --policy {asked.model}",
    ]
