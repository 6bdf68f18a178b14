"""Stored trainings: what `attentest learn` printed, and the picture of its curves.

A training takes minutes, and the pages are built in seconds. The records in docs/records are those
that `attentest learn .. --json` wrote; the command in the page writes them again.
"""

import io
from collections.abc import Mapping
from pathlib import Path

from matrices import Drawing
from rich.console import Console

from attentest.results import files
from attentest.studies.learning import Learning
from attentest.views.learning import show
from attentest.views.plots.drawing import render
from attentest.views.plots.learning import accuracy_curves, gradient_curves, loss_curves

WIDTH = 88
PICTURES = {"accuracy": accuracy_curves, "loss": loss_curves, "gradients": gradient_curves}


def training(path: Path, options: Mapping[str, str]) -> tuple[str, Drawing]:
    """Return the text and the picture of the training in `path`.

    `command` is how it was trained, `picture` one of :data:`PICTURES`, and `words` describe it.
    """
    found = files.read(path, "learning")
    printed = io.StringIO()
    console = Console(file=printed, width=WIDTH, color_system=None)
    show(console, Learning.from_dict(found), gradients=options["picture"] == "gradients")
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    code = "\n".join([f"$ {options['command']}", *lines]) + "\n"
    picture = PICTURES[options["picture"]](found)
    return code, Drawing(render(picture, "svg").decode(), options["words"])
