"""Flags: one for each setting, parsed as typed, and one sentence for whatever is none."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tyro.conf import Positional

from killick.flags import flags, gathered, nearest, parse, settings, taken
from killick.recipes.answers import recipe as answers
from killick.recipes.arithmetic import recipe as arithmetic


def test_the_nearest_word_is_offered_only_if_it_is_near() -> None:
    """Edit distance decides."""
    assert nearest("answer", ["answers", "emphasis"]) == " (did you mean answers?)"
    assert nearest("zebra", ["answers", "emphasis"]) == ""


def test_a_flag_that_is_given_again_adds_its_values() -> None:
    """A parser alone would keep the last and say nothing."""
    words = ["--reward", "a", "b", "--n", "4", "--reward=c", "x", "--reward", "d", "--out", "y"]
    assert gathered(words, "--reward") == ["--reward", "a", "b", "c", "d", "--n", "4", "x", "--out", "y"]
    assert gathered(["--n", "4"], "--reward") == ["--n", "4"]
    assert gathered(["--reward"], "--reward") == ["--reward"]
    assert gathered(["--rewards", "a"], "--reward") == ["--rewards", "a"]


def test_a_flag_is_taken_out_with_its_value_wherever_it_stands() -> None:
    """Without it there is the other value; at the very end it has none, and stays for the caller to refuse."""
    for words in (["--out", "x", "a", "b"], ["a", "--out", "x", "b"], ["a", "b", "--out", "x"]):
        assert taken(words, "--out", otherwise="y") == (["a", "b"], "x")
    assert taken(["a", "b"], "--out", otherwise="y") == (["a", "b"], "y")
    assert taken(["a", "--out"], "--out", otherwise="y") == (["a", "--out"], "y")


def test_every_setting_is_a_flag_nested_ones_with_a_dot() -> None:
    """And the run's own flags come first."""
    found = list(flags(arithmetic.Config()))
    assert found[:5] == ["--out", "--quick", "--strict", "--open", "--track"]
    assert {"--betas", "--sft-accuracy", "--ppo.clip-range", "--network.feed-forward"} <= set(found)
    assert len(found) == len(set(found))


def test_words_become_settings_of_their_types() -> None:
    """Over the defaults, or over the smaller ones of --quick."""
    given = ["--betas", "0", "0.3", "--ppo.clip-range", "0.1", "--seeds", "3", "--out", "here", "--strict"]
    parsed = parse("arithmetic", arithmetic, given=given)
    assert (parsed.config.betas, parsed.config.seeds, parsed.config.ppo.clip_range) == ((0.0, 0.3), (3,), 0.1)
    assert parsed.config.sft == arithmetic.Config().sft
    assert (parsed.out, parsed.strict, parsed.quick, parsed.open, parsed.track) == (
        Path("here"),
        True,
        False,
        False,
        None,
    )
    assert parse("arithmetic", arithmetic, given=["--quick"]).config == arithmetic.Config().quick()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--beta", "1"], "killick run answers has no option --beta (did you mean --betas?); see --help."),
        (["--seeds", "x"], "see killick run answers --help."),
    ],
)
def test_what_does_not_parse_is_one_sentence(given: list[str], words: str) -> None:
    with pytest.raises(ValueError, match="killick run answers") as found:
        parse("answers", answers, given=given)
    assert words in str(found.value)
    assert len(str(found.value).splitlines()) == 1


@dataclass(frozen=True)
class Job:
    """What a command takes.

    Attributes:
        file: what it reads.
        count: how many.
    """

    file: Positional[Path]
    count: int = 4


def test_a_command_has_flags_from_a_dataclass_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """What has no flag is told by its place, and the class's own words are the help."""
    assert settings("job", Job, given=["here", "--count", "3"], about="Does it.") == Job(Path("here"), 3)
    with pytest.raises(SystemExit) as stop:
        settings("job", Job, given=["--help"], about="Does it.")
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("killick job", "Does it.", "what it reads", "how many", "--count"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["here", "--cout", "3"], "killick job has no option --cout (did you mean --count?); see --help."),
        (["here", "there"], "killick job takes no 'there' there; see --help."),
        (["here", "--count", "x"], "see killick job --help."),
        ([], "see killick job --help."),
        (["here", "--count"], "--count"),
    ],
)
def test_what_a_command_cannot_take_is_one_sentence(given: list[str], words: str) -> None:
    with pytest.raises(ValueError, match="killick job") as found:
        settings("job", Job, given=given, about="")
    assert words in str(found.value)
    assert len(str(found.value).splitlines()) == 1
