"""What the source of the brand world says, and the bands in which we take our figures to agree.

`expected` is the source's value and never moves. A band's half-width is the larger of the precision to which the
source gives its figure and two standard deviations over our seeds 0 to 4 (docs/recipes.md). The flaws of the first
answer are a setting: the chat model was made so that it has about that many. Everything else is measured.
"""

from killick.recipes.claims import Claim, Measure, stage


def found(part: str, name: str, *, place: int | None = None) -> Measure:
    """Read what a stage found of one part, or one place of it."""

    def measure(_: object, stages: object) -> float:
        value = stages[part][name]  # type: ignore[index]
        return float(value if place is None else value[place])

    return measure


CLAIMS = [
    Claim("pairs", None, "pairs from 360 prompts", "293", 293, 285.3, 300.7, "pairs", stage("pairs")),
    Claim("rm-accuracy", None, "held-out pair accuracy of the head", "69 %", 0.69, 0.603, 0.777, "share",
          found("head", "accuracy")),
    Claim("first-flaws", None, "flaws of the first answer", "1.78", 1.78, None, None, "flaws",
          found("of_four", "first", place=0), "setting"),
    Claim("head-flaws", None, "flaws of the head's best of four", "1.39", 1.39, 1.349, 1.431, "flaws",
          found("of_four", "head", place=0)),
    Claim("reviewer-flaws", None, "flaws of the reviewer's best of four", "0.99", 0.99, 0.866, 1.114, "flaws",
          found("of_four", "reviewer", place=0)),
]  # fmt: skip
