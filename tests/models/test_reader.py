"""The reader: the body of another network, copied, whose states have read their token."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from killick.models.decoding import sequence
from killick.models.reader import Reader, summary
from killick.models.transformer import TransformerConfig
from killick.types import Refusal
from speakers import SMALL, rollout_of, speaker


def test_the_state_after_a_token_is_the_one_that_predicts_the_next() -> None:
    """The network's own head on it gives the log-probs of token t + 1, for all t but the last (1e-6)."""
    policy = speaker()
    rollout = rollout_of(policy)
    states = Reader(policy.network)(rollout)
    assert states.shape == (*rollout.responses.shape, 16)
    speaking = policy.network(*sequence(rollout)).view(*rollout.responses.shape, -1)
    assert_close(states[:, :-1], speaking[:, 1:], atol=1e-6, rtol=0)


def test_a_state_has_read_its_token_and_no_later_one() -> None:
    """Change response token 2: states 0 and 1 stay, state 2 moves."""
    policy = speaker()
    rollout, reader = rollout_of(policy), Reader(policy.network)
    other = rollout.responses.clone()
    other[:, 2] = (other[:, 2] + 1) % 7
    before, after = reader(rollout), reader(replace(rollout, responses=other))
    assert_close(after[:, :2], before[:, :2], atol=1e-6, rtol=0)
    assert float((after[:, 2] - before[:, 2]).detach().abs().amax(1).min()) > 1e-4


@pytest.mark.parametrize("config", [SMALL, TransformerConfig.llama(9, 9, 12, hidden=16, heads=2, feed_forward=24)])
def test_a_reader_is_a_copy_without_the_head(config: TransformerConfig) -> None:
    """Equal weights, no shared storage, all of them trainable even if the other is frozen; the other keeps its head."""
    policy = speaker(config).requires_grad_(False)
    reader = Reader(policy.network)
    mine, theirs = reader.network.state_dict(), policy.network.state_dict()
    assert {name for name in theirs if name not in mine} == {name for name in theirs if name.startswith("head.")}
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    places = {p.untyped_storage().data_ptr() for p in policy.parameters()}
    assert not places & {p.untyped_storage().data_ptr() for p in reader.parameters()}
    assert all(p.requires_grad for p in reader.parameters())
    assert policy.network.head.weight.shape == (9, 16)


def test_a_context_that_cannot_hold_the_last_token_is_refused() -> None:
    """4 prompt and 5 response tokens: a policy needs 8, a reader 9."""
    policy = speaker(replace(SMALL, context=8))
    with pytest.raises(Refusal, match="9 tokens is longer than the context of 8"):
        Reader(policy.network)(rollout_of(policy))


def test_a_summary_is_the_mean_state_joined_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row from the states themselves, whatever the batches that are read (here of 5 rows)."""
    monkeypatch.setattr("killick.models.reader.BATCH", 5)
    policy = speaker()
    rollout, reader = rollout_of(policy), Reader(policy.network)
    states, found = reader(rollout), summary(reader, rollout, limit=9)
    assert found.shape == (12, 32)
    for row in range(12):
        real = states[row, : int(rollout.lengths[row])].detach()
        assert_close(found[row], torch.cat((real.mean(0), real[-1])), atol=1e-6, rtol=0)


def test_what_lies_beyond_the_limit_is_not_read() -> None:
    """4 prompt tokens and a limit of 6 leave two of the answer: the third changes nothing, and the state joined is the
    second's. With two of the prompt's tokens padding four of the answer are read."""
    policy = speaker()
    rollout, reader = rollout_of(policy), Reader(policy.network)
    long = rollout[rollout.lengths >= 4]
    other = long.responses.clone()
    other[:, 2] = (other[:, 2] + 1) % 7
    changed = replace(long, responses=other)
    before = summary(reader, long, limit=6)
    assert_close(summary(reader, changed, limit=6), before, atol=1e-6, rtol=0)
    assert_close(before[:, 16:], reader(long)[:, 1].detach(), atol=1e-6, rtol=0)
    seen = long.prompt_mask.clone()
    seen[:, :2] = False
    padded, moved = (replace(each, prompt_mask=seen) for each in (long, changed))
    assert float((summary(reader, padded, limit=6) - summary(reader, moved, limit=6)).abs().max()) > 1e-4


def test_a_limit_that_leaves_no_token_is_refused() -> None:
    policy = speaker()
    with pytest.raises(Refusal, match="no token lies within 4 tokens"):
        summary(Reader(policy.network), rollout_of(policy), limit=4)
