"""Draws formulas as SVG inside the page, so that the page needs no network."""

import re
from html import escape
from typing import Any

from docutils import nodes
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath

EM = 100
FONT = FontProperties(math_fontfamily="stix")
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}


def outline(formula: str) -> str:
    """Return `formula`, in the notation of TeX, as an SVG with the height of the text around it."""
    # Matplotlib has no sizes such as `\big`, and one sign for both sides of a norm.
    plain = re.sub(r"\\[lr]Vert\b", r"\\Vert", re.sub(r"\\[bB]igg?[lr]?(?![a-zA-Z])", "", formula))
    supported = " ".join(plain.split())
    path = TextPath((0, 0), f"${supported}$", size=EM, prop=FONT)
    box = path.get_extents().padded(2)
    view = f"{box.x0:.0f} {-box.y1:.0f} {box.width:.0f} {box.height:.0f}"
    style = f"height:{box.height / EM:.2f}em;vertical-align:{box.y0 / EM:.2f}em"
    path_data = "".join(
        "Z"
        if code == Path.CLOSEPOLY
        else LETTERS[code] + " ".join(f"{x:.1f} {-y:.1f}" for x, y in points.reshape(-1, 2))
        for points, code in path.iter_segments(simplify=False, curves=True)
    )
    return (
        f'<svg class="formula" viewBox="{view}" style="{style}" role="img" '
        f'aria-label="{escape(formula)}"><path fill="currentColor" d="{path_data}"/></svg>'
    )


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula into a line."""
    translator.body.append(outline(node.astext()))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula in a paragraph of its own."""
    svg = outline(node.astext().replace(r"\frac", r"\dfrac"))
    translator.body.append(f'<p class="formula">{svg}</p>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "outline", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True}
