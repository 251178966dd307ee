"""killick: RLHF from preferences to policy, with the anchor in view.

The public names, loaded when they are first used, so that `killick --help` imports nothing heavy.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Adam": "optimiser",
    "Agreement": "preferences.agreement",
    "AnnotatorAgreement": "preferences.agreement",
    "Answers": "worlds.answers",
    "Arithmetic": "worlds.arithmetic",
    "BadRow": "preferences.rows",
    "BadRows": "preferences.files",
    "BradleyTerry": "preferences.labelers",
    "Comparison": "types",
    "Counts": "rewards.counts",
    "Critic": "models.value",
    "Emphasis": "worlds.emphasis",
    "Ensemble": "rewards.ensemble",
    "FitConfig": "rewards.fit",
    "FitState": "rewards.fit",
    "Head": "rewards.head",
    "Labeler": "types",
    "Leaning": "preferences.agreement",
    "Leash": "algorithms.leash",
    "Noise": "preferences.noise",
    "NonFinite": "types",
    "PPOConfig": "algorithms.ppo_config",
    "PPOState": "algorithms.ppo",
    "PlackettLuce": "preferences.labelers",
    "Policy": "types",
    "Pooled": "rewards.pooled",
    "Preference": "types",
    "PreferenceRow": "preferences.rows",
    "PretrainedPolicy": "models.pretrained",
    "Ranking": "types",
    "Reader": "models.reader",
    "Refusal": "refusal",
    "ReinforceConfig": "algorithms.reinforce",
    "ReinforceState": "algorithms.reinforce",
    "Reward": "types",
    "Rollout": "types",
    "SFTConfig": "algorithms.sft",
    "SFTState": "algorithms.sft",
    "SGD": "optimiser",
    "Scalar": "rewards.scalar",
    "Standardised": "rewards.fit",
    "Step": "types",
    "TabularPolicy": "models.tabular",
    "TabularReward": "rewards.tabular",
    "TextPairs": "preferences.text_pairs",
    "Transformer": "models.transformer",
    "TransformerConfig": "models.transformer",
    "TransformerPolicy": "models.policy",
    "Turn": "preferences.rows",
    "Value": "types",
    "Verdict": "preferences.verdicts",
    "Vocabulary": "types",
    "World": "types",
    "accuracy": "rewards.fit",
    "agreement": "preferences.agreement",
    "ask_disagreement": "preferences.active",
    "ask_information": "preferences.active",
    "ask_random": "preferences.active",
    "best_of_n": "algorithms.best_of_n",
    "ceiling": "preferences.labelers",
    "check_speaks": "types",
    "collect": "algorithms.collecting",
    "exact_law": "algorithms.best_of_n",
    "fit": "rewards.fit",
    "judged_pairs": "preferences.rows",
    "load_run": "report.frame",
    "log_partition": "algorithms.tilt",
    "mlp": "rewards.layers",
    "neighbours": "preferences.pairing",
    "pairs": "preferences.pairing",
    "part": "preferences.pairing",
    "pool_weights": "algorithms.best_of_n",
    "ppo": "algorithms.ppo",
    "read_preferences": "preferences.files",
    "reinforce": "algorithms.reinforce",
    "restore": "state",
    "scan_preferences": "preferences.files",
    "sft": "algorithms.sft",
    "snapshot": "state",
    "standardise": "rewards.fit",
    "text_pairs": "preferences.text_pairs",
    "tilt": "algorithms.tilt",
    "write_preferences": "preferences.files",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'killick' has no attribute {name!r}")
    return getattr(import_module(f"killick.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
