import re
import xml.etree.ElementTree as ElementTree

import pytest

from killick.report.style import COLOURS, DASHES, INK, MARKERS, inline, marks, render


def simple(figure):
    axes = figure.subplots()
    axes.plot([0, 1], [-1, 1], label="$a < b$ --> c")
    axes.legend()


@pytest.fixture(scope="module")
def files():
    return render(simple, size=(2, 1.5))


def test_a_figure_comes_as_pdf_png_and_svg(files):
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")
    assert b"<svg" in files["svg"]


def test_fonts_are_embedded_whole_as_truetype(files):
    assert b"/FontFile2" in files["pdf"]
    assert b"/Type3" not in files["pdf"]


def test_the_same_figure_is_the_same_bytes_without_a_clock(files):
    assert render(simple, size=(2, 1.5)) == files
    assert b"CreationDate" not in files["pdf"]


def test_inline_svg_is_whole_and_takes_the_colours_of_the_page(files):
    text = inline(files["svg"], "one", label='a "title" <here>')
    root = ElementTree.fromstring(text)
    assert root.attrib["aria-label"] == 'a "title" <here>'
    assert "width" not in root.attrib
    assert "viewBox" in root.attrib
    assert "var(--ink)" in text
    assert INK not in text
    assert "#ffffff" not in text


def test_inline_ids_are_unique_to_their_figure_and_every_reference_is_met(files):
    text = inline(files["svg"], "one", label="")
    ids = re.findall(r' id="([^"]+)"', text)
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("one-") for name in ids)
    assert {first or second for first, second in used} <= set(ids)


def test_a_figure_that_fails_lets_the_next_one_draw():
    with pytest.raises(ZeroDivisionError):
        render(lambda figure: 1 / 0, size=(2, 1.5))
    assert render(simple, size=(2, 1.5))["png"]


def test_lines_differ_in_colour_dash_and_marker_at_once():
    looks = [marks(index) for index in range(len(COLOURS))]
    assert len({look["color"] for look in looks}) == len({look["marker"] for look in looks}) == len(COLOURS)
    assert [look["linestyle"] for look in looks[: len(DASHES)]] == list(DASHES)
    assert marks(len(MARKERS)) == looks[0] | {"linestyle": DASHES[len(MARKERS) % len(DASHES)]}
