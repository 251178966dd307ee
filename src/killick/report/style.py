"""How a figure looks and becomes bytes: one column wide, colours that everyone can tell apart, no window, no clock."""

import re
from collections.abc import Callable
from html import escape
from io import BytesIO
from threading import Lock
from typing import Any

from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

WIDTH = 3.5
"""Inches: one column of a paper, so that the letters keep their size in print."""
INK, RULE = "#1b1b1b", "#dadada"
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
"""Okabe and Ito 2008, without the yellow that white paper swallows."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "figure.titlesize": 8.5,
    "legend.fontsize": 6.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.2,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "text.parse_math": False,  # an arm may be called $x$
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "hatch.linewidth": 0.5,
    "figure.dpi": 250,
    "pdf.fonttype": 42,  # whole TrueType fonts, which printers and journals accept
    "svg.fonttype": "path",
    "axes.unicode_minus": False,
    "svg.hashsalt": "killick",
}
CLEAN: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}
DRAWING = Lock()
"""matplotlib keeps its settings and fonts for the whole process, so one thread draws at a time."""


def render(paint: Callable[[Figure], None], *, size: tuple[float, float]) -> dict[str, bytes]:
    """A painted figure as PDF, PNG and SVG; the same bytes each time, on any machine with or without a screen (O-54).

    Args:
        paint: draws into an empty figure.
        size: width and height in inches.
    """
    with DRAWING, style.context(["default", STYLE]):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        try:
            paint(figure)
            layout = figure.get_layout_engine()
            if layout is not None and figure.axes:
                layout.execute(figure)
            figure.set_layout_engine("none")  # the places found once hold for all
            return {kind: written(figure, kind) for kind in CLEAN}
        finally:
            figure.clear()


def written(figure: Figure, kind: str) -> bytes:
    """A figure whose layout stands, as a file; `savefig` would draw it once more for a layout that it has no more."""
    figure.dpi = STYLE["figure.dpi"]  # writing vectors sets it to 72
    metadata, buffer = CLEAN[kind], BytesIO()
    if kind == "png":
        FigureCanvasAgg(figure).print_png(buffer, metadata=metadata)
    elif kind == "pdf":
        FigureCanvasPdf(figure).print_pdf(buffer, metadata=metadata)
    else:
        FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)
    return buffer.getvalue()


def inline(svg: bytes, name: str, *, label: str) -> str:
    """An SVG for inside a page: ids of its own, ink and rules in the page's colours, a label for screen readers."""
    text = svg.decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'( id="| xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = text.replace(INK.lower(), "var(--ink)").replace(RULE, "var(--rule)").replace("fill: #ffffff", "fill: none")
    text = text.replace(COLOURS[1].lower(), "var(--blue)")
    text = re.sub(r' width="[^"]*pt"| height="[^"]*pt"', "", text, count=2)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def marks(index: int) -> dict[str, Any]:
    """Colour, dash and marker of the line number `index`: three signs, of which print or an eye may lose two."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
    }
