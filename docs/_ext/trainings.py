"""Stored trainings: what `attentest learn` and `attentest index` printed, and their pictures.

Trainings take minutes or hours, and the pages are built in seconds. The records in docs/records are
those that the commands wrote with `--json`; the command in the page writes them again.
"""

import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from matrices import Drawing
from rich.console import Console

from attentest.results import files
from attentest.studies.index.result import Index
from attentest.studies.learning import Learning
from attentest.views.index import show as show_index
from attentest.views.learning import show
from attentest.views.plots.drawing import render
from attentest.views.plots.index import evidence_bars
from attentest.views.plots.learning import accuracy_curves, gradient_curves, loss_curves

WIDTH = 88
PICTURES = {"accuracy": accuracy_curves, "loss": loss_curves, "gradients": gradient_curves}


def training(path: Path, options: Mapping[str, str]) -> tuple[str, Drawing]:
    """Return the text and the picture of the training in `path`.

    `command` is how it was trained, `picture` one of :data:`PICTURES`, and `words` describe it.
    """
    found = files.read(path, "learning")
    code = _printed(
        options["command"],
        partial(show, found=Learning.from_dict(found), gradients=options["picture"] == "gradients"),
    )
    picture = PICTURES[options["picture"]](found)
    return code, Drawing(render(picture, "svg").decode(), options["words"])


def bugs(path: Path, options: Mapping[str, str]) -> tuple[str, Drawing]:
    """Return the text and the picture of the silent-bug index in `path`; see :func:`training`."""
    found = files.read(path, "index")
    code = _printed(options["command"], partial(show_index, found=Index.from_dict(found)))
    return code, Drawing(render(evidence_bars(found), "svg").decode(), options["words"])


def _printed(command: str, shown: Callable[[Console], None]) -> str:
    """Return a command and what it prints."""
    printed = io.StringIO()
    shown(Console(file=printed, width=WIDTH, color_system=None))
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    return "\n".join([f"$ {command}", *lines]) + "\n"
