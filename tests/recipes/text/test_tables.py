"""The tables of the text recipe, from a made-up ledger."""

from typing import Any

from killick.recipes.text.tables import tables

HEAD = {"pairs": 10, "learned_accuracy": 0.9, "accuracy": 0.6, "interval": [0.5, 0.7], "ceiling": 0.8,
        "correlation": 0.4}  # fmt: skip
POINT = {"n": 1, "kl_bound": 0.0, "proxy": 0.0, "proxy_interval": [-1, 1], "gold": 0.2, "gold_interval": [0.1, 0.3]}
FOUND = {
    str(seed): {
        "heads": dict.fromkeys(("proxy", "other", "few", "many"), HEAD),
        "best_of_n": {"proxy": {"points": [POINT]}, "gold": {"points": [POINT | {"gold": 0.5}]}},
    }
    for seed in (10, 9)
}


def row(step: int, seed: int = 9) -> dict[str, Any]:
    held = {"proxy": 1.0, "gold": 0.3, "gold_error": 0.02, "kl": 2.0, "distinct": 1 - step / 10,
            "phrase": f"a b {step}", "phrase_share": 0.5, "longest": None, "longest_share": None}  # fmt: skip
    return {"arm": "beta=0", "seed": seed, "step": step, "proxy": 1.5, "gold": 0.1, "watching_other": 1.0,
            "watching_few": 0.5, "watching_many": 1.2,
            **{f"held_{name}": None if step % 2 else value for name, value in held.items()}}  # fmt: skip


def test_each_table_has_its_rows_and_none_for_rollouts_without_an_evaluation() -> None:
    shown = tables([row(step) for step in range(5)], FOUND)
    rewards, held, hack, watching, best = shown
    assert [line[:2] for line in rewards.rows[:4]] == [
        [9, "the proxy"], [9, "other labels"], [9, "a fifth of the labels"], [9, "twice the labels"],
    ]  # fmt: skip
    assert len(rewards.rows) == 8
    assert [line[2] for line in held.rows] == [line[2] for line in watching.rows] == [0, 2, 4]
    assert hack.rows == [["beta=0", 9, "a b 4", 0.5, "none", None, 1.0, 0.6]]
    assert watching.rows[0] == ["beta=0", 9, 0, 1.5, 1.0, 0.5, 1.2, 0.1]
    assert best.rows[0] == [9, 1, 0.0, 0.0, -1, 1, 0.2, 0.1, 0.3, 0.5]


def test_a_run_without_rows_tells_of_its_stages_only() -> None:
    assert [table.title for table in tables([], FOUND)] == [
        "Reward models beside their ceiling", "Best-of-n on held-out prompts",
    ]  # fmt: skip
    assert len(tables([row(0)], FOUND)) == 4


def test_a_gold_with_the_reward_models_own_hole_says_why_nothing_falls() -> None:
    rows = [row(step) for step in range(3)]
    plain, alike = (tables(rows, {"9": FOUND["9"] | {"gold": gold}})[1].note for gold in ("sincere", "vader"))
    assert alike.startswith(plain)
    assert "the same hole" in alike.removeprefix(plain)
