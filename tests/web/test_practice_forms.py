"""The forms of the practice API: their examples fit, and their limits are the ones that are told."""

import pytest
from pydantic import BaseModel, ValidationError

from killick.web import practice_forms as forms
from killick.web.strict import Form

KINDS = [
    kind for kind in vars(forms).values() if isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not Form
]
SHOWN = [kind for kind in KINDS if kind.model_config.get("json_schema_extra")]


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
def test_every_example_fits_its_form(kind: type[BaseModel]) -> None:
    (example,) = kind.model_json_schema()["examples"]
    assert kind(**example)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_infinite_goes_in(kind: type[BaseModel]) -> None:
    """What is sent is strict; what is given back never holds more than its fields."""
    if issubclass(kind, Form):
        assert kind.model_config["extra"] == "forbid"
        assert kind.model_config["strict"]
        assert kind.model_config["allow_inf_nan"] is False


def test_the_limits_are_the_last_that_pass() -> None:
    assert forms.Generate(prompt="x" * forms.PROMPT, n=forms.ANSWERS, temperature=forms.HOTTEST, seed=forms.SEEDS)
    item = forms.Copied(product="x" * forms.PRODUCT, text="x" * forms.TEXT)
    assert forms.BrandCheck(items=[item] * forms.ITEMS)
    for over in ({"n": forms.ANSWERS + 1}, {"temperature": 10.1}, {"temperature": 0.0}, {"max_tokens": 61}):
        with pytest.raises(ValidationError):
            forms.Generate.model_validate({"prompt": "x", **over})
