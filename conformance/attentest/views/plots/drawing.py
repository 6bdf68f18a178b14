"""Helpers of all plots: figures, axes, colours, and files.

Everything is readable on light and on dark paper: there is no background, frames and texts are
grey, and the colours can be told apart by the colour-blind.
"""

import io
from typing import TYPE_CHECKING, Any

from attentest.results.optional import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = ("svg", "png")
"""The formats of a plot."""

GREY = "#808080"

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""The palette of Okabe and Ito, without black and without a yellow that white paper swallows."""

LEGEND: dict[str, Any] = {"frameon": False, "labelcolor": GREY}
"""The style of a legend."""


def figure(width: float, height: float) -> "Figure":
    """Return an empty figure of so many inches."""
    empty: Figure = needed("matplotlib.figure").Figure((width, height), layout="constrained")
    return empty


def literal(name: str) -> str:
    """Return `name` as matplotlib has to be given it to show it letter by letter.

    Between dollars it reads formulas, and what begins with an underscore it keeps out of legends.
    """
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def style_axes(axes: "Axes") -> "Axes":
    """Return `axes` with a grey frame on two sides and a faint grid."""
    axes.patch.set_alpha(0)
    axes.tick_params(colors=GREY, which="both")
    axes.grid(color=GREY, alpha=0.25, linewidth=0.5)
    for side, spine in axes.spines.items():
        spine.set_color(GREY)
        spine.set_visible(side in ("left", "bottom"))
    return axes


def render(figure: "Figure", kind: str) -> bytes:
    """Return `figure` as a file of `kind`: "svg", in which texts are texts, or "png".

    The same figure gives the same bytes.
    """
    file = io.BytesIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) if kind == "svg" else {}
    with needed("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "attentest"}):
        figure.savefig(
            file, format=kind, transparent=True, dpi=150, bbox_inches="tight", metadata=metadata
        )
    return file.getvalue()
