"""`killick best-of`: keep the best of n answers by any score, and see what choosing among more would do."""

from pathlib import Path

from killick.cli.best_of_sampled import sampled
from killick.cli.best_of_settings import BestOf
from killick.cli.best_of_words import tell, write
from killick.flags import gathered, settings
from killick.refusal import Refusal

ABOUT = """Score answers, keep the best for each prompt, and spot-check the winners: n answers of your own model, or
variants that you have.

    killick best-of --model DIR --prompts prompts.jsonl --reward judge --gold my_rubric:people --n 16 --out DIR
    killick best-of --candidates mails.csv --reward my_rubric:score --show-winners 20

PROMPTS is JSONL, CSV or Parquet with a column prompt (a text or messages), a preference file, or text with one prompt a
line. The answers are kept: stopped or killed, the same command with --out DIR goes on to the same bytes, and
--candidates DIR/candidates.jsonl lets any other reward choose among them.

CANDIDATES is JSONL, an object a line: {"prompt": ..., "response": ...} or {"prompt": ..., "responses": [...]}; or CSV
with the columns prompt and response (or text). Without prompts all responses are one pool.

A reward or gold is a reward folder (killick reward fit, or any AutoModelForSequenceClassification with one label);
module:function, a function of a text, or of prompt and response, that returns a number (the current folder is
importable); vader or sincere; http://host:port?model=NAME, a server in the shape of the practice API; or the folder of
the brand's reward head (killick models make brand-head --out DIR). Several rewards add up, and 0.5*NAME weighs one.
--gold people puts each winner beside the model's first answer on the labelling page; run the command again to read what
people said.

The table for n = 1, 2, 4, ... estimates what best-of-n gives, unbiased from the pool you have. With --gold, a second
opinion of what people really want, it shows whether choosing by the reward still helps, and at which n it turns."""


def best_of(given: list[str]) -> None:
    """`killick best-of`: score, choose, tell, and write where --out names a folder."""
    options = settings("best-of", BestOf, given=gathered(given, "--reward"), about=ABOUT)
    options.validate()
    if options.candidates is None:
        sampled(options, given)
    else:
        from_file(options, options.candidates)


def from_file(options: BestOf, path: Path) -> None:
    """Choose among the variants of a file."""
    from killick.recipes.best_of.candidates import read_pools
    from killick.recipes.best_of.recipe import choices, curve, reach, scored
    from killick.recipes.scores.loading import load_score, load_scores
    from killick.rundir.seeds import stage_generator

    try:
        data = path.read_bytes()
    except OSError as error:
        raise Refusal(f"--candidates {path} cannot be read ({error.strerror}).") from error
    pools = read_pools(data, name=path.name)
    reward = load_scores(options.reward, flag="--reward")
    gold = None if options.gold is None else load_score(options.gold, flag="--gold")
    if options.out is not None:
        made(options.out)  # before anything is scored: a judge may be dear
    scores = scored(pools, reward)
    golds = None if gold is None else scored(pools, gold)
    chosen = choices(pools, scores, golds=golds)
    ns = options.ns or reach([len(pool.responses) for pool in pools])
    along = curve(chosen, ns=ns, generator=stage_generator(options.seed, "best-of-n resamples"))
    tell(chosen, along, winners=options.show_winners)
    if options.out is not None:
        write(options.out, chosen, along=along)


def made(folder: Path) -> None:
    """Make a folder that can be written into."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"--out {folder} cannot be made ({error.strerror}); name another folder.") from error
