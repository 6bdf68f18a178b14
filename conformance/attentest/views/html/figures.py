"""Figures of a report: plots of matplotlib as SVG elements of the page."""

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from attentest.views.plots.drawing import GREY, render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 7
"""Inches from which a figure gets the whole width of the page."""

_KEPT = {"svg", "g", "path", "text", "tspan", "defs", "clipPath", "rect", "use", "image", "circle"}
_INK = {"#000000", "black", "#000", GREY}
"""The colours of axes and words: black, and the grey of figures for light and dark pages."""

_SIZE = re.compile(r"font(?:-size)?:\s*(?:\w+\s+)*?([\d.]+px)")


def inline(figure: "Figure", name: str, title: str) -> str:
    """Return `figure` as an SVG element that can be part of a page with others.

    Its ids begin with `name`. Styles become attributes, which a strict policy lets through, and
    ink becomes the colour of the text around it; `title` is what it is to those who cannot see.
    """
    root = ElementTree.fromstring(render(figure, "svg"))
    for parent in list(root.iter()):
        for child in list(parent):
            if _local(child.tag) not in _KEPT:
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = _attributes(element, name)
    for size in ("width", "height", "version"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": title, "fill": "currentColor"}
    root.attrib["class"] = "figure wide" if figure.get_figwidth() > WIDE else "figure"
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(element: Element, name: str) -> dict[str, str]:
    given = {_local(key): value for key, value in element.attrib.items()}
    given |= _unstyled(given.pop("style", ""))
    return {
        key: _rewritten(key, value, name)
        for key, value in given.items()
        if key not in ("font", "font-family")
    }


def _unstyled(style: str) -> dict[str, str]:
    """Return the declarations of a style as attributes; of a font its size alone."""
    parts = (part.partition(":") for part in style.split(";") if ":" in part)
    attributes = {key.strip(): value.strip() for key, _, value in parts}
    size = _SIZE.search(style)
    return attributes | ({"font-size": size[1]} if size else {})


def _rewritten(key: str, value: str, name: str) -> str:
    """Return an attribute's value: ids and what refers to them are made the figure's own."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    if key in ("fill", "stroke") and value in _INK:
        return "currentColor"
    return value.replace("url(#", f"url(#{name}-")


def _local(name: str) -> str:
    return name.rpartition("}")[2]
