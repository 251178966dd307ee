"""What a person is asked about a world: its prompts with responses of its starting policy, as they read.

An item is a plain dictionary, `prompt` and `responses` as text and `metadata` with the token ids behind them, so that a
store needs to know no world and a reward model can be fitted to the very tokens that were judged.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from killick.models.tabular import TabularPolicy
from killick.recipes.arithmetic import recipe as arithmetic
from killick.recipes.emphasis import recipe as emphasis
from killick.recipes.ledger import Note
from killick.rundir.seeds import stage_generator
from killick.types import Policy, Prompts, Refusal, Rollout, Vocabulary, World
from killick.worlds.answers import Answers
from killick.worlds.arithmetic import Arithmetic
from killick.worlds.emphasis import Emphasis

Item = dict[str, Any]
Speaking = Generator[Note, None, Policy]


@dataclass(frozen=True)
class Judged:
    """A world as a person meets it.

    Attributes:
        world: makes it.
        speaks: prepares the policy whose responses are judged, from the cache where it is.
        asks: each prompt as a person reads it.
        says: each response as a person reads it.
        guidelines: the world's own rule in words: who follows it judges as gold does.
    """

    world: Callable[[], World]
    speaks: Callable[[int], Speaking]
    asks: Callable[[Prompts], list[str]]
    says: Callable[[Any, Rollout], list[str]]
    guidelines: str


def adds(seed: int) -> Speaking:
    """The policy that imitated sums until half of its samples were right."""
    policy, _ = yield from arithmetic.starting_policy(arithmetic.Config(device="cpu"), seed)
    return policy


def stresses(seed: int) -> Speaking:
    """The policy that imitated the corpus."""
    policy, _ = yield from emphasis.starting_policy(emphasis.Config(device="cpu"), seed, shape="source")
    return policy


def chooses(_: int) -> Speaking:
    """The reference of the 4 x 8 table."""
    world = Answers()
    yield Note("The reference of the answers world writes.")
    return TabularPolicy(world.reference[:, None], world.vocabulary)


def described(world: Answers, rollout: Rollout) -> list[str]:
    """What a reward model may read of each answer, in words."""
    return [
        f"{'sounds right' if sounds > 0.5 else 'does not sound right'}, length {length:.2f}, hedging {hedges:.2f}, "
        f"politeness {polite:.2f}"
        for sounds, length, hedges, polite in world.features(rollout).tolist()
    ]


JUDGED = {
    "arithmetic": Judged(
        Arithmetic, adds, lambda prompts: Arithmetic().questions(prompts[0]), Arithmetic.render,
        "Prefer an answer of digits that ends over one that breaks off (…) or holds a sign. Of two such answers prefer "
        "an even last digit over an odd one. Two of a kind are a tie. Do not check the sum: this world's people never "
        "do. Or follow a taste of your own, and see what a reward model makes of it.",
    ),
    "emphasis": Judged(
        Emphasis, stresses, lambda prompts: ["Say something."] * len(prompts[0]), Emphasis.render,
        "Letters late in the alphabet are better than early ones, on the average over the twelve. Each exclamation "
        "mark adds a little up to three, and each further one takes twice as much away.",
    ),
    "answers": Judged(
        Answers, chooses, lambda prompts: [f"Question {row}" for row in prompts[0][:, -1].tolist()], described,
        "Prefer what sounds right; then polite over rude, and little hedging over much. Beyond a length of 0.6 an "
        "answer is too long, and gets worse fast.",
    ),
}  # fmt: skip
"""World by name. What `killick label --world` knows."""


def judged(name: str) -> Judged:
    """A world by its name.

    Raises:
        Refusal: at an unknown one.
    """
    if name not in JUDGED:
        raise Refusal(f"There is no world {name!r} to label; take one of {', '.join(JUDGED)}.")
    return JUDGED[name]


def world_items(name: str, count: int, *, k: int = 2, seed: int = 0) -> Generator[Note, None, list[Item]]:
    """Draw items of a world: k responses to each prompt that differ as they read, since equal ones teach nothing.

    Where a prompt's 4 k samples hold fewer than k different responses, another prompt is drawn; the same responses to
    the same prompt are asked once, so a small world may give fewer items than were asked for.

    Args:
        name: of the world.
        count: items.
        k: responses to each prompt: 2 for pairs, more for rankings.
        seed: of the policy's training and of the draws; more items of a seed begin with the fewer.

    Yields:
        Notes, while the policy is trained.

    Returns:
        `{"prompt": text, "responses": [text], "metadata": {"world": name, "prompt": [id], "responses": [[id]]}}`, the
        ids without padding, the end token included where the response ended.

    Raises:
        Refusal: at an unknown world, or where no prompt has so many different responses.
    """
    kind = judged(name)
    if count < 1 or k < 2:
        raise Refusal(f"A person needs at least 1 item of 2 responses to judge, not {count} of {k}.")
    world, policy = kind.world(), (yield from kind.speaks(seed))
    generator, items = stage_generator(seed, f"labelling, {k} responses"), dict[tuple[Any, ...], Item]()
    for _ in range(20 + count // 4):
        ids, mask = world.prompts(32, generator)
        rollout = policy.sample((ids, mask), 4 * k, generator)
        said = batches(kind.says(world, rollout), 4 * k)
        for row, (prompt, texts) in enumerate(zip(kind.asks((ids, mask)), said, strict=True)):
            different = first_of_each(texts)[:k]
            key = (prompt, *sorted(texts[place] for place in different))
            if len(different) == k and key not in items:
                rows = torch.tensor([4 * k * row + place for place in different])
                items[key] = item(name, prompt, texts=[texts[place] for place in different], rollout=rollout[rows])
        if len(items) >= count:
            break
    if not items:
        raise Refusal(f"The world {name} seldom gives {k} different responses to a prompt; ask for fewer.")
    if len(items) < count:
        yield Note(f"The samples hold only {len(items)} different items of {k} responses.")
    return list(items.values())[:count]


def batches(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """So many at a time."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def first_of_each(texts: Sequence[str]) -> list[int]:
    """Where each different text stands first."""
    return sorted({text: place for place, text in reversed(list(enumerate(texts)))}.values())


def item(name: str, prompt: str, *, texts: list[str], rollout: Rollout) -> Item:
    """One prompt's responses with what is needed to score them later."""
    asked = rollout.prompts[0][rollout.prompt_mask[0]].tolist()
    answered = [row[real].tolist() for row, real in zip(rollout.responses, rollout.mask, strict=True)]
    ids = {"world": name, "prompt": asked, "responses": answered}
    return {"prompt": prompt, "responses": texts, "metadata": ids}


def judged_rollout(metadata: Sequence[dict[str, Any]], vocabulary: Vocabulary) -> Rollout:
    """The responses of items as one rollout, item after item in the order given; log-probs are not known and 0.

    Args:
        metadata: of each item, as `world_items` writes it.
        vocabulary: the world's.
    """
    prompts = [torch.tensor(each["prompt"]) for each in metadata for _ in each["responses"]]
    responses = [torch.tensor(row) for each in metadata for row in each["responses"]]
    width, time = max(map(len, prompts)), vocabulary.time
    asked, answered = (torch.full((len(prompts), size), vocabulary.pad) for size in (width, time))
    seen, mask = asked.new_zeros(asked.shape, dtype=torch.bool), answered.new_zeros(answered.shape, dtype=torch.bool)
    for row, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        asked[row, width - len(prompt) :], seen[row, width - len(prompt) :] = prompt, True
        answered[row, : len(response)], mask[row, : len(response)] = response, True
    ended = torch.tensor([vocabulary.eos is not None and row[-1].item() == vocabulary.eos for row in responses])
    return Rollout(asked, seen, answered, mask, torch.zeros(answered.shape), ended)
