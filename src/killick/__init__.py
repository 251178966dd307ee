"""killick: RLHF from preferences to policy, with the anchor in view.

The public names, loaded when they are first used, so that `killick --help` imports nothing heavy.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Adam": "optimiser",
    "Answers": "worlds.answers",
    "Arithmetic": "worlds.arithmetic",
    "Asking": "models.asking",
    "BradleyTerry": "preferences.labelers",
    "Brand": "worlds.brand",
    "Chat": "models.chat",
    "Comparison": "types",
    "Counts": "rewards.counts",
    "Critic": "models.value",
    "Curve": "algorithms.best_of_n",
    "CurvePoint": "algorithms.best_of_n",
    "Emphasis": "worlds.emphasis",
    "Ensemble": "rewards.ensemble",
    "FitConfig": "rewards.fit",
    "FitState": "rewards.fit",
    "Flaw": "worlds.brand",
    "Head": "rewards.head",
    "Labeler": "types",
    "Leash": "algorithms.leash",
    "NonFinite": "types",
    "PPOConfig": "algorithms.ppo_config",
    "PPOState": "algorithms.ppo",
    "PlackettLuce": "preferences.labelers",
    "Policy": "types",
    "Pooled": "rewards.pooled",
    "Preference": "types",
    "PretrainedPolicy": "models.pretrained",
    "Ranking": "types",
    "Reader": "models.reader",
    "Refusal": "types",
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
    "Transformer": "models.transformer",
    "TransformerConfig": "models.transformer",
    "TransformerPolicy": "models.policy",
    "Value": "types",
    "Vocabulary": "types",
    "Words": "models.words",
    "World": "types",
    "accuracy": "rewards.fit",
    "best_of_n": "algorithms.best_of_n",
    "best_of_n_curve": "algorithms.best_of_n",
    "ceiling": "preferences.labelers",
    "check_speaks": "types",
    "collect": "algorithms.collecting",
    "exact_law": "algorithms.best_of_n",
    "fit": "rewards.fit",
    "load": "models.chat",
    "load_run": "report.frame",
    "log_partition": "algorithms.tilt",
    "mlp": "rewards.layers",
    "neighbours": "preferences.pairing",
    "pairs": "preferences.pairing",
    "part": "preferences.pairing",
    "pool_weights": "algorithms.best_of_n",
    "ppo": "algorithms.ppo",
    "reinforce": "algorithms.reinforce",
    "restore": "state",
    "review": "worlds.brand",
    "sft": "algorithms.sft",
    "snapshot": "state",
    "standardise": "rewards.fit",
    "tilt": "algorithms.tilt",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'killick' has no attribute {name!r}")
    return getattr(import_module(f"killick.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
