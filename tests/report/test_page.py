import json
import re
from html.parser import HTMLParser

import pytest

from desks import chromium_browser
from folders import claim, lines, put, run_folder, sample_rows
from killick.report.page import answers, claim_row, page, spent
from killick.report.reading import read_run

chromium = pytest.fixture(scope="module")(chromium_browser)
HOSTILE = "<script>alert(1)</script>\"'&--><img src=x onerror=alert(1)>"


class Seen(HTMLParser):
    """Tags, and every address that the page would fetch or lead to."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href", "srcset", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)


def parse(text):
    seen = Seen()
    seen.feed(text)
    return seen


@pytest.fixture
def shown(tmp_path):
    return read_run(run_folder(tmp_path, steps=80))


def test_the_page_says_question_verdict_claims_answers_settings_environment_and_citation(shown):
    text = page(shown, [], question="What becomes of a reward that counts digits?")
    words = ("What becomes of", "1 of 2 claims hold", "does not hold", "a setting", "at least 40.00", "at most -0.90")
    answered = ("<b>84</b>", "<b>4444</b>", "ppo.n", "packages.torch", "@software{killick", "abc123", "CPU seconds")
    for told in words + answered:
        assert told in text, told


def test_it_fetches_nothing_and_leads_only_to_the_papers(shown):
    seen = parse(page(shown, []))
    assert all(address.startswith(("#", "https://arxiv.org/abs/")) for address in seen.addresses)
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)


def test_what_stands_in_the_folder_is_never_read_as_html(tmp_path):
    folder = run_folder(tmp_path, steps=3, arms=("beta=0",))
    samples = sample_rows("b", 0, steps=3)
    hostile = [row | {"prompt": HOSTILE, "response": HOSTILE, "arm": HOSTILE} for row in samples]
    (folder / "samples.jsonl").write_text(lines(hostile), encoding="utf-8")
    put(folder / "config.json", {"recipe": HOSTILE, HOSTILE: HOSTILE})
    put(folder / "environment.json", {HOSTILE: HOSTILE, "packages": {"killick": HOSTILE}})
    words = dict.fromkeys(("text", "source", "unit", "arm", "kind"), HOSTILE)
    put(folder / "results.json", {"claims": [claim(**words)]})
    text = page(read_run(folder), [], problems=[HOSTILE], question=HOSTILE)
    plain = parse(page(read_run(run_folder(tmp_path / "plain", steps=3, arms=("beta=0",))), []))
    assert set(parse(text).tags) <= set(plain.tags) | {"p"}
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_a_run_without_claims_samples_or_settings_has_a_page(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("", encoding="utf-8")
    text = page(read_run(tmp_path), [])
    assert "This run is not finished" in text
    assert "The ledger has no row yet" in text
    assert "Answers through training" not in text
    assert "Where the time went" not in text


def test_light_dark_phone_and_print_have_their_styles(shown):
    text = page(shown, [])
    for told in (
        "prefers-color-scheme: dark",
        "@media print",
        "max-width: 40rem",
        'name="viewport"',
        "default-src 'none'",
    ):
        assert told in text


def test_every_variable_of_the_style_is_set(shown):
    text = page(shown, [])
    assert set(re.findall(r"var\((--\w+)\)", text)) <= set(re.findall(r"(--\w+):", text))


@pytest.mark.parametrize(
    ("low", "high", "band"),
    [(None, None, "-"), (1, None, "at least 1"), (None, 0.5, "at most 0.50"), (0.25, 0.5, "0.25 to 0.50")],
)
def test_bands_in_words(low, high, band):
    assert claim_row(claim(low=low, high=high))["band"] == band


def test_a_claim_in_words():
    row = claim_row(claim(spread=0.5, holds=True, kind="ours", arm=None))
    assert (row["measured"], row["holds"], row["kind"], row["arm"]) == ("38.20 ± 0.50", "holds", "our own", "-")
    assert claim_row({"holds": None})["holds"] == "a setting"


def test_time_is_summed_by_part_the_dearest_first(tmp_path):
    folder = run_folder(tmp_path, steps=3, arms=("beta=0",))
    rows = [("sampling", 1, 2), ("update", 4, 5), ("sampling", 0.5, 0.25)]
    (folder / "timing.jsonl").write_text(
        lines([{"arm": "beta=0", "seed": 0, "step": 1, "part": part, "cpu_s": cpu, "wall_s": wall}
               for part, cpu, wall in rows]), encoding="utf-8",
    )  # fmt: skip
    shown = read_run(folder)
    assert spent(shown.timing) == [("update", 4, 5), ("sampling", 1.5, 2.25), ("all", 5.5, 7.25)]
    assert "Where the time went" in page(shown, [])
    assert spent([]) == []


TABLE = {"title": "Ends", "note": "The last row is best.", "columns": ["arm", "gold", "step"],
         "rows": [["beta=0", 1.5, 25], ["beta=0.5", -0.12345, None]]}  # fmt: skip


def test_tables_stand_in_a_section_of_their_own_and_scroll_inside(tmp_path):
    folder = run_folder(tmp_path, steps=3, arms=("beta=0",))
    assert "Table by table" not in page(read_run(folder), [])
    put(folder / "results.json", {"claims": [], "tables": [TABLE]})
    text = page(read_run(folder), [])
    section = text[text.index("<h2>Table by table</h2>") : text.index("<h2>Settings</h2>")]
    assert '<h3>Ends</h3>\n<p>The last row is best.</p>\n<div class="scroll"><table' in section
    assert '<th>arm</th><th class="n">gold</th><th class="n">step</th>' in section
    assert '<td>beta=0</td><td class="n">1.500</td><td class="n">25</td>' in section
    assert '<td>beta=0.5</td><td class="n">-0.123</td><td class="n">-</td>' in section


def test_a_tables_words_are_never_read_as_html(tmp_path):
    folder = run_folder(tmp_path, steps=3, arms=("beta=0",))
    table = {"title": HOSTILE, "note": HOSTILE, "columns": [HOSTILE], "rows": [[HOSTILE]]}
    put(folder / "results.json", {"claims": [], "tables": [table]})
    text = page(read_run(folder), [])
    assert not {"script", "img"} & set(parse(text).tags)
    assert "&lt;script&gt;" in text


def test_answers_are_of_the_first_seed_by_arm_and_step():
    rows = [row for seed in (3, 1) for row in sample_rows("beta=0", seed, steps=20)]
    found = answers(rows)
    assert list(found) == ["beta=0"]
    assert list(found["beta=0"]) == [0, 10]
    assert all(row["seed"] == 1 for row in found["beta=0"][0])
    assert answers([]) == {}


def test_where_all_answers_are_kept_a_page_shows_a_few_at_a_few_steps():
    """Six a step; of a hundred steps 24, the first and the last among them."""
    rows = [{"arm": "a", "seed": 0, "step": step, "n": n} for step in range(100) for n in range(9)]
    found = answers(rows)["a"]
    assert len(found) == 24
    assert {0, 99} <= set(found)
    assert all([row["n"] for row in shown] == list(range(6)) for shown in found.values())


def test_on_a_phone_a_table_shows_that_it_goes_on_and_answers_stand_below_each_other(chromium, tmp_path):
    """A shade at the edge of a table that is wider than the page; answers need no wider one."""
    folder = run_folder(tmp_path, steps=3)
    names = [f"a long column {place}" for place in range(9)]
    wide = {"title": "Wide", "note": "", "columns": names, "rows": [[place / 7 for place in range(9)]]}
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    put(folder / "results.json", results | {"tables": [wide]})
    (tmp_path / "page.html").write_text(page(read_run(folder), []), encoding="utf-8")
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    tab = context.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    for name, over in ((".told", True), (".answers", False)):
        table = tab.locator(name).first
        box = table.locator("xpath=..")
        assert box.evaluate("(box) => box.scrollWidth > box.clientWidth") == over
        assert box.evaluate("(box) => getComputedStyle(box).backgroundImage").count("gradient") == 4
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    context.close()
