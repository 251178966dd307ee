"""What the practice API takes and gives, field by field, with the limits that /docs shows."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from killick.web.strict import Form

ITEMS, TEXT, PROMPT, PRODUCT, ANSWERS, TOKENS = 1000, 50_000, 2000, 200, 64, 60
"""At most: items of a body, characters of a text, of a prompt, of a product; answers and tokens of each."""
HOTTEST = 10.0
SEEDS = 2**53 - 1
"""The largest that every reader of JSON takes for itself."""

PROMPTED = "Describe the Kestrel rain jacket ."
COPY = "Meet the Kestrel rain jacket . It is made of wool , warm wool . We repair it free for life ."

Prompt = Annotated[str, Field(min_length=1, max_length=PROMPT)]
Copy = Annotated[str, Field(max_length=TEXT)]


def shown(example: dict[str, Any]) -> ConfigDict:
    """What /docs fills in."""
    return ConfigDict(json_schema_extra={"examples": [example]})


class Pair(BaseModel):
    """Two answers to a prompt, and which one the reviewer prefers: texts without end tokens."""

    prompt: str
    chosen: str
    rejected: str


class Preferences(BaseModel):
    """Pairs, and how many there are in all."""

    model_config = shown(
        {"data": [{"prompt": PROMPTED, "chosen": COPY, "rejected": "It is made of steel ."}], "total": 293}
    )
    data: list[Pair]
    total: int = Field(description="Pairs that the filter lets through, on this page or not.")


class Copied(Form):
    """A text about a product."""

    product: str = Field(min_length=1, max_length=PRODUCT, description="Name and kind, as in Kestrel rain jacket.")
    text: Copy


class BrandCheck(Form):
    """Texts to review."""

    model_config = shown({"items": [{"product": "Kestrel rain jacket", "text": COPY}]})
    items: list[Copied] = Field(max_length=ITEMS)


class Reviewed(BaseModel):
    """What the reviewer finds: one line for each guideline that is broken."""

    flaws: list[str]


class BrandChecked(BaseModel):
    """What the reviewer finds in each text, in their order."""

    model_config = shown(
        {"results": [{"flaws": ["repetition: a sentence repeats wool", "material: a rain jacket is not made of wool"]}]}
    )
    results: list[Reviewed]


class Generate(Form):
    """A prompt to answer."""

    model_config = shown({"prompt": PROMPTED, "n": 2, "temperature": 0.8, "seed": 1})
    prompt: Prompt = Field(description="Plain text; the marks of the chat are put around it.")
    model: str = Field(default="tiny-gpt-chat", max_length=100)
    n: int = Field(default=1, ge=1, le=ANSWERS, description="Answers.")
    temperature: float = Field(default=0.8, ge=0.01, le=HOTTEST)
    seed: int | None = Field(
        default=None, ge=0, le=SEEDS, description="The same seed gives the same answers; none draws one."
    )
    max_tokens: int = Field(default=TOKENS, ge=1, le=TOKENS, description="Of each answer, its end included.")


class Written(BaseModel):
    """An answer, and whether the model ended it by itself."""

    text: str
    finished: bool


class Generated(BaseModel):
    """Answers to a prompt, and the seed that gives them again."""

    model_config = shown({"answers": [{"text": COPY, "finished": True}], "seed": 1})
    answers: list[Written]
    seed: int


class Answered(Form):
    """A prompt and an answer to it."""

    prompt: Annotated[str, Field(min_length=1, max_length=TEXT)]
    answer: Copy


class Score(Form):
    """Answers to score."""

    model_config = shown({"model": "reviewer", "items": [{"prompt": PROMPTED, "answer": COPY}]})
    model: str = Field(default="reviewer", max_length=100, description="A reward model of /v1/models.")
    items: list[Answered] = Field(max_length=ITEMS)


class Scored(BaseModel):
    """A score in the reward model's own unit, or why there is none."""

    reward: float | None
    reason: str | None = None


class Scores(BaseModel):
    """One score for each answer, in their order."""

    model_config = shown({"results": [{"reward": -2.0, "reason": None}]})
    results: list[Scored]


class Named(BaseModel):
    """A model by name."""

    name: str
    kind: str = Field(description="language: /v1/generate takes it; reward: /v1/reward does.")


class Models(BaseModel):
    """What there is."""

    model_config = shown(
        {"data": [{"name": "tiny-gpt-chat", "kind": "language"}, {"name": "reviewer", "kind": "reward"}]}
    )
    data: list[Named]
