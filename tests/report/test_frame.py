import sys

import pytest

from folders import run_folder
from killick.report.frame import load_run
from killick.types import Refusal


def test_the_ledger_becomes_a_table(tmp_path):
    pytest.importorskip("pandas")
    frame = load_run(str(run_folder(tmp_path, arms=("beta=0", "beta=1"), steps=5)))
    assert list(frame.columns[:6]) == ["arm", "seed", "step", "proxy", "gold", "kl"]
    assert frame.groupby("arm").size().to_dict() == {"beta=0": 5, "beta=1": 5}
    assert frame["gold"].dtype == float


def test_without_pandas_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Refusal, match="pip install pandas"):
        load_run(run_folder(tmp_path, steps=2))
