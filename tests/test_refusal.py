"""A refusal is one class under every name, and costs no import of torch."""

import subprocess
import sys

import killick
from killick import refusal, types


def test_it_is_one_class_under_every_name() -> None:
    assert killick.Refusal is types.Refusal is refusal.Refusal


def test_what_needs_no_tensors_loads_no_torch() -> None:
    """Preference files are read in a fraction of the second that torch takes to load."""
    code = "import sys, killick.preferences.files, killick.preferences.text_pairs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
