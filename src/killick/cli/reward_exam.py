"""`killick reward exam`: may one optimise against a reward model, and how far?"""

import json
import time
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from killick.cli.output import show as shown
from killick.flags import settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from killick.recipes.exam.recipe import Examined
    from killick.rundir.folder import RunFolder

ABOUT = """Examine a reward model before anything is optimised against it, and say in plain words whether that is safe,
and how far.

    killick reward exam rm prefs.jsonl --policy my-model

REWARD is a folder of killick reward fit (or any transformers reward model with one label), module:function, vader or a
URL, as in killick best-of. PREFS is a preference file; pairs whose prompts the reward model has learned from are left
out. What is looked at: accuracy on the other pairs beside the ceiling that the labels' own noise sets; whether gaps of
scores mean what they claim; whether it knows more than length; whether its members agree; and probes, which are
answers that nobody would call good (none at all, one said twice, filler, half of one, the prompt again, a pet phrase).
With --policy, a folder of a language model, that model answers held-out prompts: how its scores spread, and what best
of n gives. With --gold, what people really want of those answers is read along.

The exam is a run folder: results.json, pairs.jsonl, samples.jsonl, figures and report.html. The verdict's rules are in
docs/rewards.md."""
WEIGHTS = {"stop": "AGAINST", "limit": "LIMITS", "good": "for", "note": "note"}


@dataclass(frozen=True)
class Exam:
    """What is examined, on what.

    Attributes:
        reward: the reward model.
        prefs: a preference file.
        policy: folder of the language model that is to be optimised, or the name of one that was fetched.
        gold: what people want: vader, sincere, module:function, a folder or a URL.
        out: the exam's folder; a new one under runs/exam where none is named.
        n: answers of the policy to a prompt.
        prompts: held-out prompts that it answers, at most.
        tokens: of an answer of the policy, at most.
        temperature: of its sampling.
        dtype: that a reward folder computes in; bfloat16 is about three times as fast on CPUs that know it.
        device: auto, cpu, cuda (or cuda:1), mps.
        seed: of everything drawn.
        skip_bad: leave out (and count) rows that are bad or whose prompts a model cannot read, instead of refusing the
            file.
    """

    reward: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="REWARD")]
    prefs: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PREFS")]
    policy: Path | None = None
    gold: str | None = None
    out: Path | None = None
    n: int = 16
    prompts: int = 32
    tokens: int = 64
    temperature: float = 1.0
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: str = "auto"
    seed: int = 0
    skip_bad: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False

    def validate(self) -> None:
        """Refuse what cannot be.

        Raises:
            Refusal: naming the flag.
        """
        if not 2 <= self.n <= 1024:
            raise Refusal(f"--n must lie in 2..1024, not {self.n}: best of one chooses nothing.")
        if not 2 <= self.prompts <= 10_000:
            raise Refusal(f"--prompts must lie in 2..10000, not {self.prompts}.")
        if self.tokens < 1:
            raise Refusal(f"--tokens must be 1 or more, not {self.tokens}.")
        if not 0 < self.temperature < float("inf"):
            raise Refusal(f"--temperature must be above 0 and finite, not {self.temperature:g}.")
        if not 0 <= self.seed < 2**63:
            raise Refusal(f"--seed must lie in 0..2^63 - 1, not {self.seed}.")
        if self.gold is not None and self.policy is None:
            raise Refusal("--gold is read off the answers of a policy; name one with --policy.")


def exam(given: list[str]) -> None:
    """`killick reward exam`: enter a folder, examine, write, draw, tell."""
    asked = settings("reward exam", Exam, given=given, about=ABOUT)
    asked.validate()
    import torch

    from killick.rundir.folder import RunFolder

    torch.set_num_threads(1)
    config = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(asked).items()}
    config.pop("out")
    began = time.monotonic(), time.process_time()
    if asked.out is not None and (asked.out / "results.json").exists():
        with closing(RunFolder(asked.out, "exam", config)) as folder:
            print("This exam is finished; it is drawn again.")
            tell(folder.path)
            return
    work = opened(asked)  # before a folder is made: a wrong word should leave nothing behind
    with closing(RunFolder(asked.out, "exam", config)) as folder:
        print(f"Run folder: {folder.path}", flush=True)
        try:
            examined = work()
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(
                f"An exam is kept when it is whole; give the same words with --out {folder.path} to begin again."
            ) from stop
        write(folder, examined, asked=asked, began=began)
        tell(folder.path)


def opened(asked: Exam) -> Any:
    """Everything that is asked, loaded; a call that examines."""
    import torch

    from killick.cli.progress import watched
    from killick.models.texts import Texts
    from killick.recipes.exam.asking import Setup
    from killick.recipes.exam.held import read_held
    from killick.recipes.exam.judges import open_examinee, open_speak, single
    from killick.recipes.exam.recipe import examine
    from killick.recipes.fetching import found
    from killick.recipes.scores.loading import load_score
    from killick.recipes.settings import find_device

    if not asked.prefs.exists():
        raise Refusal(f"There is no preference file {asked.prefs}.")
    device = find_device(asked.device)
    examinee = open_examinee(asked.reward, dtype=getattr(torch, asked.dtype), device=device)
    gold = None if asked.gold is None else single(load_score(asked.gold, flag="--gold"))
    speak, readers = None, [] if examinee.model is None else [examinee.model.texts.prompt]
    if asked.policy is not None:
        policy = found(asked.policy)
        speak = open_speak(policy, n=asked.n, tokens=asked.tokens, temperature=asked.temperature, device=device)
        readers.append(Texts.load(policy).prompt)
    held = read_held(asked.prefs, examinee.learned, readers=readers, skip_bad=asked.skip_bad)
    if examinee.model is not None and (cut := examinee.model.cut(held.prompts, held.answers)):
        held.facts["told"] += f" {cut}"
    print(held.facts["told"])
    setup = Setup(examinee.judge, speak, gold, examinee.nats, asked.n, asked.prompts, asked.seed)
    return lambda: watched(examine(held, setup))


def write(folder: "RunFolder", examined: "Examined", *, asked: Exam, began: tuple[float, float]) -> None:
    """Write every pair and answer, then the results, after which the exam is finished."""
    from killick.rundir.durable import replace_file
    from killick.rundir.ledger import line

    for name, rows in (("pairs", examined.pairs), ("samples", examined.samples)):
        text = "".join(line(row) + "\n" for row in rows)
        replace_file(folder.path / f"{name}.jsonl", text.encode())
    spent = {"cpu_s": round(time.process_time() - began[1], 2), "wall_s": round(time.monotonic() - began[0], 2)}
    folder.finish({"recipe": "exam", "reward": asked.reward, "file": asked.prefs.name, **spent, **examined.facts})


def tell(folder: Path, *, show: bool = False) -> None:
    """Draw an exam's folder, and say what is in it; where asked to, show its page in the browser."""
    from killick.report.exam import draw_exam
    from killick.report.exam_tables import exam_tables

    problems = draw_exam(folder)
    facts = json.loads((folder / "results.json").read_bytes())
    print()
    for table in exam_tables(facts):
        if not table["title"].startswith("Read"):  # texts want a page
            shown(table)
    print("\n".join(verdict_lines(facts["verdict"])))
    for problem in problems:
        print(problem)
    print(f"\nThe report is {folder / 'report.html'}.")
    if show:
        webbrowser.open((folder / "report.html").resolve().as_uri())


def verdict_lines(verdict: Mapping[str, Any]) -> Sequence[str]:
    """The verdict, why, and what is not known."""
    from textwrap import wrap

    lines = [f"{WEIGHTS[each['weight']]:<8}{each['text']}" for each in verdict["reasons"]]
    lines += [f"{'unknown':<8}{text}" for text in verdict["unknown"]]
    told = [part for line in lines for part in wrap(line, 110, subsequent_indent=" " * 8)]
    return [*told, "", *wrap(f"VERDICT: {verdict['headline']}", 110)]
