"""The public names: every one loads, none loads before it is used."""

import subprocess
import sys
from importlib import import_module

import pytest

import killick


@pytest.mark.parametrize("name", killick.__all__)
def test_every_public_name_loads_and_is_what_its_home_defines(name: str) -> None:
    """And carries a docstring, as a public thing does."""
    thing = getattr(killick, name)
    home = import_module(f"killick.{killick._HOMES[name]}")
    assert thing is getattr(home, name)
    assert thing.__doc__
    assert thing.__module__ == home.__name__


def test_the_public_names_are_sorted_once_each_and_shown() -> None:
    """What `dir` shows is what there is."""
    assert killick.__all__ == sorted(set(killick.__all__))
    assert dir(killick) == killick.__all__


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    """As in any module, so that `hasattr` and `from killick import x` work."""
    with pytest.raises(AttributeError, match="'killick' has no attribute 'nothing'"):
        _ = killick.nothing
    assert not hasattr(killick, "utils")


def test_importing_killick_imports_neither_torch_nor_numpy() -> None:
    """A command line that only helps must not wait for them."""
    code = "import sys, killick; dir(killick); sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
