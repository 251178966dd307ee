"""Imported where many processes will fork: all that a language model takes seconds to import is there once."""

from pathlib import Path
from tempfile import TemporaryDirectory

from aligning import setting, tiny
from killick.recipes.align import recipe as align
from straight import tell

with TemporaryDirectory() as place:
    tell(align, tiny(setting(Path(place)), steps=1))
