"""The directive `shell`: runs a command when the pages are built and shows its output.

    ```{shell} attentest run unscaled.py
    :exit: 1
    :until: to reproduce
    ```

The command runs in docs/examples. The build fails if the exit code is not the given one (0).
`from` and `until` limit the output: from the first line that contains the one to the first line
after it that contains the other.

On a page with `begin`, all commands run in one folder, which is empty at the start, `paste` writes
the code that it shows into a file there, and `picture` shows an SVG file that a command wrote.
"""

import atexit
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from walk import Walk, cut, run

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_WALKS: dict[str, Walk] = {}
# Made before pages are read by processes side by side, which end without cleaning up.
_FOLDER = tempfile.TemporaryDirectory()
atexit.register(_FOLDER.cleanup)


class Shell(SphinxDirective):
    """Run a command and show it with its output."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"exit": int, "from": str, "until": str}  # noqa: RUF012  # as docutils expects

    def run(self) -> list[nodes.Node]:
        """Return the command with its output as one block."""
        command = self.arguments[0]
        walk = _WALKS.get(self.env.docname)
        ended = walk.run(command) if walk else run(command, EXAMPLES)
        if ended.returncode != self.options.get("exit", 0):
            raise self.error(f"{command} ended with {ended.returncode}:\n{ended.stdout}")
        try:
            shown = cut(ended.stdout, self.options.get("from", ""), self.options.get("until", ""))
        except ValueError as failure:
            raise self.error(f"{command}: {failure}:\n{ended.stdout}") from failure
        return [nodes.literal_block(text := f"$ {command}\n{shown}", text, language="text")]


class Begin(SphinxDirective):
    """Begin a walk: run the rest of this page in a new, empty folder."""

    def run(self) -> list[nodes.Node]:
        """Make the folder; it is kept as long as the pages are built."""
        _WALKS[self.env.docname] = Walk(Path(tempfile.mkdtemp(dir=_FOLDER.name)))
        return []


class Paste(SphinxDirective):
    """Show code, and write it into a file of the walk, which is its argument."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the code as a block with the name of its file."""
        file, code = self.arguments[0], "\n".join(self.content)
        _WALKS[self.env.docname].paste(file, code)
        caption = nodes.caption("", "", nodes.literal(file, file))
        language = "toml" if file.endswith(".toml") else "python"
        block = nodes.literal_block(code, code, language=language)
        return [nodes.container("", caption, block, literal_block=True)]


class Picture(SphinxDirective):
    """Show the SVG file of the walk that is its argument; the content describes it in words."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the file as a part of the page, with its description for screen readers."""
        file = _WALKS[self.env.docname].folder / self.arguments[0]
        label = escape(" ".join(self.content))
        _, tag, rest = file.read_text(encoding="utf-8").partition("<svg ")
        text = f'<figure class="picture">{tag}role="img" aria-label="{label}" {rest}</figure>'
        return [nodes.raw("", text, format="html")]


def _demand_that_all_is_written(app: Any, _: nodes.document) -> None:
    """Refuse a walk at whose end a part of a model is still to be written."""
    walk = _WALKS.get(app.env.docname)
    for file in walk.folder.rglob("model.py") if walk else ():
        if "NotImplementedError" in file.read_text(encoding="utf-8"):
            raise ExtensionError(f"{app.env.docname} leaves a part of {file.name} unwritten")


def setup(app: Any) -> dict[str, bool]:
    """Register the directives; the build carries out every walk and is the test of it."""
    app.connect("doctree-read", _demand_that_all_is_written)
    for directive in (Shell, Begin, Paste, Picture):
        app.add_directive(directive.__name__.lower(), directive)
    return {"parallel_read_safe": True}
