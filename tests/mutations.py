"""Plant one wrong formula at a time in a copy of killick/ops and see whether its twin test notices.

    python tests/mutations.py

Each mutation is (file, old text, new text, what it is); the old text stands exactly once in its file. The installed
package is never touched: every run imports its own copy, and a plugin stops the run if it does not.
Exits 1 if more than one mutation survives, if a text is not found once, or if the unmutated copy fails.
"""

import contextlib
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
PRELOADED = ["torch", "torch.distributed.tensor", "scipy.stats", "hypothesis", "pytest"]
"""Imported once and shared by all runs (torch.testing loads the second of them on its first use)."""

MUTATIONS = [
    ("masked.py", "kept = torch.where(mask, values, 0.0)", "kept = values * mask", "NaN on padding times 0"),
    (
        "masked.py",
        "count = mask.sum() if dim is None",
        "count = torch.tensor(mask.numel()) if dim is None",
        "padding counted below the line",
    ),
    ("masked.py", "count.clamp(min=1)", "count", "0 / 0 for no value"),
    (
        "masked.py",
        "centred = torch.where(mask, values - mean, 0.0)",
        "centred = values - mean",
        "whitening sees padding",
    ),
    ("masked.py", "(mask.sum() - 1).clamp(min=1)", "mask.sum().clamp(min=1)", "n instead of n - 1"),
    ("masked.py", "deviation < 1e-6 * mean.abs().clamp(min=1.0)", "deviation < 1e-12", "floor that rounding passes"),
    ("masked.py", "deviation < 1e-6 * mean.abs().clamp(min=1.0)", "deviation < 1e-6", "floor that ignores the mean"),
    ("masked.py", "mean.abs()", "mean", "floor that ignores negative means"),
    ("masked.py", "torch.where(mask, scaled + mean, 0.0)", "scaled + mean", "kept mean lands on padding"),
    ("logprobs.py", "else logits / temperature)", "else logits * temperature)", "temperature upside down"),
    ("logprobs.py", "(logits if temperature == 1.0 else logits / temperature)", "logits", "temperature dropped"),
    (
        "logprobs.py",
        "logits if logits.dtype == torch.float64 else logits.float()",
        "logits",
        "half precision stays half",
    ),
    ("logprobs.py", "if forbidden:", "if len(forbidden) > 1:", "a single forbidden token allowed"),
    (
        "logprobs.py",
        "log_probs.where(log_probs != -torch.inf, 0.0)",
        "log_probs",
        "0 times infinity in the entropy",
    ),
    ("logprobs.py", "right=True", "right=False", "a leading token of probability 0 at a uniform number of 0"),
    ("logprobs.py", "uniform * cumulative[:, -1:]", "uniform", "the last sum taken for exactly 1"),
    ("logprobs.py", ".clamp(max=log_probs.shape[-1] - 1)", "", "NaN row drawn outside the vocabulary"),
    ("kl.py", ".clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)", ".clamp(max=LOG_RATIO_LIMIT)", "only one side bounded"),
    (
        "kl.py",
        "((log_ratio.abs() > LOG_RATIO_LIMIT) & mask).sum()",
        "(log_ratio.abs() > LOG_RATIO_LIMIT).sum()",
        "bounded padding counted",
    ),
    ("kl.py", "(log_ratio.abs() > LOG_RATIO_LIMIT)", "(log_ratio > LOG_RATIO_LIMIT)", "bounded below not counted"),
    ("kl.py", "return policy - reference", "return reference - policy", "sign of k1"),
    ("kl.py", "(policy - reference).square() / 2", "(policy - reference).square()", "k2 without its half"),
    (
        "kl.py",
        "d = bound(policy - reference)\n    return torch.expm1(-d) + d",
        "d = policy - reference\n    return bound(torch.expm1(-d) + d)",
        "bound after exp",
    ),
    ("kl.py", "torch.expm1(-d) + d", "torch.expm1(d) - d", "k3 of the other direction"),
    ("kl.py", "torch.expm1(-d) + d", "(-d).exp() - 1 + d", "k3 loses its digits"),
    ("kl.py", "torch.expm1(-d) + d", "torch.expm1(-d).detach() + d", "k3 detached in its exponential"),
    (
        "kl.py",
        "torch.where(possible, p.exp(), 0.0)",
        "torch.where(possible, reference.exp(), 0.0)",
        "weights of the reference",
    ),
    ("kl.py", "math.log(n) - (n - 1) / n", "math.log(n) - (n - 1) / (n + 1)", "wrong fraction in the best-of-n bound"),
    ("advantages.py", "lengths[:, None] - 1", "lengths[:, None] % mask.shape[1]", "score one place late"),
    ("advantages.py", "if bool((lengths == 0).any()):", "if bool((lengths == 0).all()):", "one empty row let through"),
    ("advantages.py", "beta * torch.where(mask, log_ratio, 0.0)", "beta * log_ratio", "KL charged on padding"),
    (
        "advantages.py",
        "place_score(scores, mask) - beta",
        "place_score(scores, mask) + beta",
        "KL paid instead of charged",
    ),
    ("advantages.py", "time[:, None] >= time,", "time[:, None] > time,", "return without its own reward"),
    ("advantages.py", "torch.where(mask, values, 0.0) @ weights", "values @ weights", "padding enters the return"),
    (
        "advantages.py",
        "torch.where(mask, torch.where(mask, values, 0.0) @ weights, 0.0)",
        "torch.where(mask, values, 0.0) @ weights",
        "advantages on padding",
    ),
    ("advantages.py", "kept = torch.where(mask, values, 0.0)", "kept = values", "value on padding as bootstrap"),
    ("advantages.py", "pad(kept[:, 1:], (0, 1))", "pad(kept[:, :-1], (1, 0))", "the value before instead of the next"),
    ("advantages.py", "mask, gamma * gae_lambda", "mask, gae_lambda", "gamma left out of the weights"),
    ("advantages.py", "rewards + gamma * following", "rewards + following", "gamma left out of the difference"),
    ("advantages.py", "(n - 1)).flatten()", "n).flatten()", "leave-one-out over n"),
    ("advantages.py", "if n < 2:", "if n < 1:", "leave-one-out of one"),
    (
        "losses.py",
        "not in (torch.float32, torch.float64)",
        "not in (torch.float16, torch.float32, torch.float64)",
        "subtraction in half precision",
    ),
    (
        "losses.py",
        "softplus(-difference) + (1 - label)",
        "-torch.sigmoid(difference).log() + (1 - label)",
        "log of a sigmoid",
    ),
    ("losses.py", "(1 - label) * difference", "label * difference", "label on the wrong side"),
    ("losses.py", "difference = chosen - rejected - margin", "difference = chosen - rejected + margin", "margin added"),
    (
        "losses.py",
        "times / counts.clamp(min=1) / times.sum()",
        "times / (times * counts).sum()",
        "pairs pooled over rankings",
    ),
    (
        "losses.py",
        "return torch.maximum(-advantages * ratio,",
        "return torch.minimum(-advantages * ratio,",
        "PPO takes the better price",
    ),
    (
        "losses.py",
        "    ratio = bound(log_ratio).exp()\n    return torch.maximum",
        "    ratio = log_ratio.exp()\n    return torch.maximum",
        "ratio without a bound",
    ),
    (
        "losses.py",
        "ratio.clamp(1 - clip_range, 1 + clip_range)",
        "ratio.clamp(1 / (1 + clip_range), 1 + clip_range)",
        "lower clip of the log-ratio kind",
    ),
    (
        "losses.py",
        "(advantages < 0) & (ratio < 1 - clip_range)",
        "(advantages > 0) & (ratio < 1 - clip_range)",
        "clip fraction on the wrong side",
    ),
    ("losses.py", "torch.maximum(loss, (near", "torch.minimum(loss, (near", "value clip takes the better error"),
    ("losses.py", "near = old + (values - old)", "near = old + (values - old).detach()", "value clip detached"),
    ("losses.py", "return -logprobs", "return logprobs", "sign of the likelihood"),
    ("stats.py", "tie_credit * (chosen == rejected)", "(chosen == rejected)", "tie counted as right"),
    ("stats.py", "last - (counts - 1) / 2", "last", "ties share their last rank"),
    ("stats.py", "last - (counts - 1) / 2", "last - counts / 2", "ranks half a step low"),
    ("stats.py", "a - a.mean(), b - b.mean()", "a, b", "ranks not centred"),
    ("stats.py", "if scale > 0 else 0.0", "if scale > 0 else 1.0", "a constant side taken for agreement"),
    ("stats.py", "(1 - level) / 2, (1", "1 - level, (1", "whole tail on one side"),
    ("stats.py", "[rows].mean(1)", "[rows].median(1).values", "median instead of mean"),
]

PLUGIN = """
import pathlib
import pytest
from hypothesis import Phase, settings

# A caught mutation need not be shrunk to its smallest example.
settings.register_profile("no shrinking", phases=[Phase.explicit, Phase.generate], database=None)
settings.load_profile("no shrinking")

def pytest_collection_finish():
    import killick.ops
    here = pathlib.Path(__file__).resolve().parent
    if here not in pathlib.Path(killick.ops.__file__).resolve().parents:
        raise pytest.UsageError(f"{killick.ops.__file__} is not the copy in {here}")
"""


def try_copy(test: str, edit: tuple[str, str, str] | None = None) -> tuple[int, str]:
    """Pytest's exit status and output on a fresh copy of the package, with one edit (file, old, new).

    Runs in a process of its own, which has `PRELOADED` already but no killick.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src" / "killick", Path(folder, "killick"), ignore=shutil.ignore_patterns("__pycache__"))
        if edit is not None:
            path = Path(folder, "killick", "ops", edit[0])
            path.write_text(path.read_text(encoding="utf-8").replace(edit[1], edit[2]), encoding="utf-8")
        Path(folder, "is_the_copy.py").write_text(PLUGIN, encoding="utf-8")
        os.chdir(ROOT)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder, "hypothesis"))
        sys.dont_write_bytecode = True
        sys.path.insert(0, folder)
        options = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "is_the_copy",
            "--import-mode=importlib",
            "--assert=plain",
        ]
        options += ["-o", f"pythonpath={folder}", "-o", "addopts="]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = pytest.main([test, *options])
        return int(status), output.getvalue()


def verdict(mutation: tuple[str, str, str, str]) -> str:
    """`caught`, `SURVIVED`, or `BROKEN` where the tests could not run at all."""
    file, old, new, _ = mutation
    status, _ = try_copy(f"tests/ops/test_{file}", (file, old, new))
    return {0: "SURVIVED", 1: "caught"}.get(status, "BROKEN")


def main() -> int:
    """Check the texts, then the unmutated copy, then every mutation."""
    for file, old, _, what in MUTATIONS:
        found = (ROOT / "src" / "killick" / "ops" / file).read_text(encoding="utf-8").count(old)
        if found != 1:
            print(f"{file}: the text of '{what}' stands {found} times, not once: {old!r}")
            return 1
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    verdicts = []
    with context.Pool(WORKERS, maxtasksperchild=1) as pool:
        status, output = pool.apply(try_copy, ("tests/ops",))
        if status != 0:
            print(output)
            print("The unmutated copy does not pass.")
            return 1
        print(f"unmutated copy: {output.splitlines()[-1]}", flush=True)
        for mutation, word in zip(MUTATIONS, pool.imap(verdict, MUTATIONS, chunksize=1), strict=True):
            verdicts.append(word)
            print(f"{word:8}  {mutation[0]:13}  {mutation[3]}", flush=True)
    caught = verdicts.count("caught")
    print(f"{caught} of {len(MUTATIONS)} mutations caught")
    return 0 if verdicts.count("SURVIVED") <= 1 and "BROKEN" not in verdicts else 1


if __name__ == "__main__":
    raise SystemExit(main())
