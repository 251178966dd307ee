"""Plant one wrong formula at a time in a copy of killick's arithmetic and loops, and see whether a test notices.

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
SOURCE = ROOT / "src" / "killick"
ROOMS = ("ops", "algorithms")
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
    ("logprobs.py", "else logits / temperature", "else logits * temperature", "temperature upside down"),
    ("logprobs.py", "if temperature != 1.0:", "if temperature == 0:", "temperature dropped"),
    (
        "logprobs.py",
        "logits if logits.dtype == torch.float64 else logits.float()",
        "logits",
        "half precision stays half",
    ),
    ("logprobs.py", "logits < kth_largest", "logits <= kth_largest", "the k-th token is barred"),
    ("logprobs.py", "(before < top_p)", "(before <= top_p + 1e-3)", "the nucleus takes one token too many"),
    ("logprobs.py", "before = reached - shares", "before = reached", "the nucleus ends too early"),
    ("logprobs.py", "if forbidden:", "if len(forbidden) > 1:", "a single forbidden token allowed"),
    (
        "logprobs.py",
        "log_probs.where(log_probs != -torch.inf, 0.0)",
        "log_probs",
        "0 times infinity in the entropy",
    ),
    ("logprobs.py", "right=True", "right=False", "a leading token of probability 0 at a uniform number of 0"),
    (
        "logprobs.py",
        "above(cumulative, uniform * cumulative[:, -1:])",
        "above(cumulative, uniform)",
        "the last sum taken for exactly 1",
    ),
    (
        "logprobs.py",
        "right=True).clamp(max=cumulative.shape[1] - 1)",
        "right=True)",
        "NaN row drawn outside the vocabulary",
    ),
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
    ("advantages.py", "torch.where(mask, rewards, 0.0) @ weights", "rewards @ weights", "padding enters the return"),
    (
        "advantages.py",
        "torch.where(mask, torch.where(mask, rewards, 0.0) @ weights, 0.0)",
        "torch.where(mask, rewards, 0.0) @ weights",
        "advantages on padding",
    ),
    ("advantages.py", "kept = torch.where(mask, values, 0.0)", "kept = values", "value on padding as bootstrap"),
    ("advantages.py", "pad(kept[:, 1:], (0, 1))", "pad(kept[:, :-1], (1, 0))", "the value before instead of the next"),
    ("advantages.py", "gamma=gamma * gae_lambda", "gamma=gae_lambda", "gamma left out of the weights"),
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
    ("losses.py", "-masked_mean(logprobs, mask)", "masked_mean(logprobs, mask)", "sign of the likelihood"),
    ("losses.py", "-masked_mean(logprobs, mask)", "-logprobs.mean()", "likelihood of padding"),
    (
        "losses.py",
        "-masked_mean(logprobs, mask)",
        "-masked_mean(logprobs, mask, dim=1).mean()",
        "likelihood by rows",
    ),
    ("stats.py", "tie_credit * (chosen == rejected)", "(chosen == rejected)", "tie counted as right"),
    ("stats.py", "last - (counts - 1) / 2", "last", "ties share their last rank"),
    ("stats.py", "last - (counts - 1) / 2", "last - counts / 2", "ranks half a step low"),
    ("stats.py", "a - a.mean(), b - b.mean()", "a, b", "ranks not centred"),
    ("stats.py", "if scale > 0 else 0.0", "if scale > 0 else 1.0", "a constant side taken for agreement"),
    ("stats.py", "(1 - level) / 2, (1", "1 - level, (1", "whole tail on one side"),
    ("stats.py", "[rows].mean(1)", "[rows].median(1).values", "median instead of mean"),
]

# fmt: off
LOOPS = [
    ("ppo.py", "clip_(state.parameters, config.max_grad_norm)", "clip_(state.parameters, 1e9)",
     "gradient never clipped"),
    ("ppo.py", "config.value_coefficient * critic", "critic", "value coefficient dropped"),
    ("ppo.py", "rows = torch.randperm(len(rows), generator=state.generator, device=rows.device)",
     "rows = torch.arange(len(rows))", "minibatches never shuffled"),
    ("ppo.py", "parts = rows.tensor_split(config.minibatches)",
     "parts = torch.randint(len(rows), (config.minibatches, -(-len(rows) // config.minibatches)))",
     "minibatches with replacement"),
    ("ppo.py", "state.leash.adapt(state.beta, found.mean_kl)", "state.leash.adapt(state.beta, found.mean_kl / 4)",
     "leash fed a quarter of the KL"),
    ("ppo.py", "found.mean_kl)", "float(found.log_ratio.sum(1).mean()))", "leash fed the sampled KL"),
    ("ppo.py", "state.beta, stats)", "state.leash.beta, stats)", "record shows the first beta"),
    ("ppo.py", 'terms["ptx_loss"] = supervise',
     'state.optimiser.zero_grad()\n            terms["ptx_loss"] = supervise', "ptx term clears PPO's gradient"),
    ("ppo.py", "(state.config.ptx_coefficient * loss).backward()", "loss.backward()", "ptx coefficient dropped"),
    ("ppo.py", "min(1.0, (before + 1) / (config.warmup * planned))", "min(1.0, before / (config.warmup * planned))",
     "warm-up starts at a rate of 0"),
    ("ppo.py", "state.value_rate * fall", "state.config.learning_rate * fall", "critic learns at the policy's rate"),
    ("ppo.py", "state.value_rate * fall", "state.value_rate * rise * fall", "critic warms up with the policy"),
    ("ppo.py", "            break\n", "            continue\n", "early stop leaves one minibatch out only"),
    ("ppo.py", "            skipped += 1\n            continue\n", "            skipped += 1\n            break\n",
     "ratio limit ends the update"),
    ("ppo.py", '"step_kl": masked_sum(', '"step_kl": 0.5 * masked_sum(', "step KL halved"),
    ("ppo.py", "k3(torch.zeros_like(log_ratio), log_ratio)", "k3(log_ratio, torch.zeros_like(log_ratio))",
     "step KL of the other direction"),
    ("ppo.py", "torch.where(unit, bound(log_ratio.abs()).exp(), 1.0).max()", "bound(log_ratio.abs()).exp().max()",
     "ratio limit sees padding"),
    ("ppo.py", "bound(log_ratio.abs()).exp(), 1.0)", "bound(log_ratio).exp(), 1.0)", "small ratios pass the limit"),
    ("ppo.py", "bound(log_ratio.abs()).exp(), 1.0).max()", "bound(log_ratio.abs()).exp(), 1.0).mean()",
     "ratio limit of the mean"),
    ("ppo.py", "masked_sum(errors, mask) / counted", "masked_sum(errors, mask) / mask.sum()",
     "mean of the pieces' means"),
    ("ppo.py", "masked_sum(log_ratio, mask, dim=1)[:, None]",
     "(masked_sum(log_ratio, mask, dim=1) / mask.sum(1))[:, None]", "sequence ratio per token"),
    ("ppo.py", "[parameter for parameter in judging if parameter not in shared]", "judging",
     "shared weights moved twice"),
    ("ppo.py", "old=piece.values,", "old=state.value(piece.rollout).detach(),", "old values recomputed"),
    ("ppo.py", "state.step * planned + index", "state.step * planned", "rates move once an iteration"),
    ("ppo.py", "(outside & unit)", "outside", "clip fraction counts padding"),
    ("ppo_targets.py", "        earned = advantages + values\n    if config.whiten:\n"
     "        advantages = whiten(advantages, units(mask, config))\n",
     "    if config.whiten:\n        advantages = whiten(advantages, units(mask, config))\n"
     "    if values is not None:\n        earned = advantages + values\n", "returns of whitened advantages"),
    ("ppo_targets.py", "mask=mask, gamma=config.gamma, gae_lambda", "mask=mask, gamma=1.0, gae_lambda",
     "gamma 1 with a critic"),
    ("ppo_targets.py", "returns(rewards, mask, gamma=config.gamma)", "returns(rewards, mask, gamma=1.0)",
     "gamma 1 without a critic"),
    ("ppo_targets.py", "gae_lambda=config.gae_lambda", "gae_lambda=1.0", "lambda 1"),
    ("ppo_targets.py", "(~found.rollout.finished)", "found.rollout.finished", "penalty for ending"),
    ("ppo_targets.py", "baseline(total, config)", "baseline(scores, config)", "KL left out of the comparison"),
    ("ppo_targets.py", "values = torch.where(mask, value(found.rollout), 0.0)", "values = value(found.rollout)",
     "critic's padding kept"),
    ("ppo_targets.py", "leave_one_out(scores, config.n)", "batch_mean(scores)", "one baseline for both"),
    ("ppo_targets.py", "whiten(advantages, units(mask, config))", "whiten(advantages, torch.ones_like(advantages) > 0)",
     "whitening counts padding"),
    ("collecting.py", "log_ratio = k1(old, before)", "log_ratio = k1(before, old)", "KL charge of the wrong sign"),
    ("collecting.py", "exact_kl, full, reference_full", "exact_kl, reference_full, full", "KL of the other direction"),
    ("collecting.py", "(self.kl_k1 if self.kl is None else self.kl).mean()",
     "(self.kl_k1 if self.kl is None else self.kl).sum()", "KL of the batch, not of a response"),
    ("collecting.py", "return self.log_ratio.sum(1)", "return self.log_ratio.mean(1)", "sampled KL per token"),
    ("collecting.py", 'check_finite("scores are", scores, step=step)\n', "pass\n", "scores not checked"),
    ("leash.py", "-0.2), 0.2)", "-0.2), 0.5)", "error clipped too late"),
    ("leash.py", "kl / self.target - 1", "kl - self.target", "error in nats"),
    ("leash.py", "if not math.isfinite(kl):", "if kl == math.inf:", "NaN ends the control"),
    ("tilt.py", "(reference + (reward - best) / beta)", "(reward / beta)", "reference forgotten"),
    ("tilt.py", "reward.where(possible, -torch.inf)", "reward", "impossible answer taken for the best"),
    ("tilt.py", "(reference + (reward - best) / beta)", "(reference + reward / beta)", "overflow of the exponent"),
    ("best_of_n.py", "(below + tied) ** n - below**n", "n * below ** (n - 1) * tied", "ties and steps forgotten"),
    ("best_of_n.py", "kept * p / tied", "kept / tied * tied", "equal scores counted whole"),
    ("best_of_n.py", "/ (within - below) * values", "* values", "tied ranks share nothing"),
    ("best_of_n.py", "tops[1]]))", "tops[0]]))", "turn without an interval"),
    ("best_of_n.py", "[1]) < self.points[-1].n", "[1]) <= self.points[-1].n", "gold that rises to the end turns"),
    ("best_of_n.py", "max(self.top, self.top_interval[1])", "self.top", "a turn that is not sure"),
    ("best_of_n.py", "below >= n - 1", "below >= n", "first possible rank left out"),
    ("reinforce.py", "found.scores - state.beta * found.kl_k1", "found.scores", "leash let go"),
    ("reinforce.py", "advantages / -len(found", "advantages / len(found", "descent instead of ascent"),
    ("reinforce.py", "        state.optimiser.zero_grad()\n", "", "old gradients kept"),
    ("reinforce.py", 'if config.baseline == "group-mean"', 'if config.baseline == "leave-one-out"',
     "baselines swapped"),
]
# fmt: on

TESTS = {
    "losses.py": ("ops/test_losses.py", "ops/test_losses_ppo.py"),
    "ppo.py": ("algorithms/test_ppo_update.py", "algorithms/test_saved_states.py", "algorithms/test_ppo.py"),
}
"""Where a formula has more than its twin test; the quick ones stand first."""

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


def room(file: str) -> str:
    """The folder of a mutated file."""
    return next(name for name in ROOMS if (SOURCE / name / file).exists())


def try_copy(tests: tuple[str, ...], edit: tuple[str, str, str] | None = None) -> tuple[int, str]:
    """Pytest's exit status and output on a fresh copy of the package, with one edit (file, old, new).

    Runs in a process of its own, which has `PRELOADED` already but no killick. The Hugging Face policy is left out: it
    walks the same loop as the others, and costs four seconds to import.
    """
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, Path(folder, "killick"), ignore=shutil.ignore_patterns("__pycache__"))
        if edit is not None:
            path = Path(folder, "killick", room(edit[0]), edit[0])
            path.write_text(path.read_text(encoding="utf-8").replace(edit[1], edit[2]), encoding="utf-8")
        Path(folder, "is_the_copy.py").write_text(PLUGIN, encoding="utf-8")
        os.chdir(ROOT)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(folder, "hypothesis"))
        sys.dont_write_bytecode = True
        sys.path.insert(0, folder)
        options = ["-x", "-q", "-k", "not hugging", "-p", "no:cacheprovider", "-p", "is_the_copy"]
        options += ["--import-mode=importlib", "--assert=plain"]
        options += ["-o", f"pythonpath={folder} {ROOT / 'tests'}", "-o", "addopts="]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            status = pytest.main([*(f"tests/{test}" for test in tests), *options])
        return int(status), output.getvalue()


def verdict(mutation: tuple[str, str, str, str]) -> str:
    """`caught`, `SURVIVED`, or `BROKEN` where the tests could not run at all."""
    file, old, new, _ = mutation
    status, _ = try_copy(TESTS.get(file, (f"{room(file)}/test_{file}",)), (file, old, new))
    return {0: "SURVIVED", 1: "caught"}.get(status, "BROKEN")


def stale() -> list[str]:
    """Sentences about faults whose text does not stand in the source exactly once, so that they cannot be planted."""
    counts = [
        ((SOURCE / room(file) / file).read_text(encoding="utf-8").count(old), file, old, what)
        for file, old, _, what in MUTATIONS + LOOPS
    ]
    return [
        f"{file}: the text of '{what}' stands {n} times, not once: {old!r}" for n, file, old, what in counts if n != 1
    ]


def main() -> int:
    """Check the texts, then the unmutated copy, then every mutation."""
    mutations, lost = MUTATIONS + LOOPS, stale()
    if lost:
        print("\n".join(lost))
        return 1
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    verdicts = []
    with context.Pool(WORKERS, maxtasksperchild=1) as pool:
        unmutated = pool.map_async(try_copy, [(name,) for name in reversed(ROOMS)], chunksize=1)
        words = pool.imap(verdict, mutations, chunksize=1)
        for status, output in unmutated.get():
            if status != 0:
                print(output)
                print("The unmutated copy does not pass.")
                return 1
            print(f"unmutated copy: {output.splitlines()[-1]}", flush=True)
        for mutation, word in zip(mutations, words, strict=True):
            verdicts.append(word)
            print(f"{word:8}  {mutation[0]:14}  {mutation[3]}", flush=True)
    caught = verdicts.count("caught")
    print(f"{caught} of {len(mutations)} mutations caught")
    return 0 if verdicts.count("SURVIVED") <= 1 and "BROKEN" not in verdicts else 1


if __name__ == "__main__":
    raise SystemExit(main())
