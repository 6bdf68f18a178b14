"""Executes a page from top to bottom and fills its marked places."""

import ast
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from drawn import computed, mask, namespace
from marked import Place, filled
from matrices import Drawing
from similar import same
from trainings import bugs, training
from walk import Walk, cut

DOCS = Path(__file__).resolve().parents[1]
PICTURES = DOCS / "pictures"
RECORDS = DOCS / "records"
LANGUAGES = {".py": "python", ".toml": "toml", ".mjs": "javascript"}


class Wrong(Exception):
    """A page cannot be executed as it is written."""


class Page:
    """The page `path` with `text`, executed in `folder`, if it is a walk, else in docs/examples.

    `pictures` are the files that it shows, with their contents.
    """

    def __init__(self, path: Path, text: str, folder: Path) -> None:
        self._path = path
        self._text = text
        self._folder = folder
        self._walk = Walk(DOCS / "examples")
        self._names = namespace()
        self.pictures: dict[Path, str] = {}

    def executed(self) -> str:
        """Return the text of the page with all places filled; Wrong where that is not possible."""
        text = filled(self._text, self._filled)
        for file in self._folder.rglob("model.py"):
            if "NotImplementedError" in file.read_text(encoding="utf-8"):
                raise Wrong(f"a part of {file.name} is not written")
        return text

    def _filled(self, place: Place) -> Place:
        actions: dict[str, Callable[[Place], Place]] = {
            "walk": self._begin,
            "run": self._run,
            "file": self._file,
            "include": self._include,
            "picture": self._picture,
            "compute": self._compute,
            "mask": self._mask,
            "curves": self._curves,
            "index": self._index,
        }
        try:
            return actions[place.kind](place)
        except Wrong:
            raise
        except Exception as failure:
            raise Wrong(f"{place.kind} {place.argument}: {failure}") from failure

    def _begin(self, place: Place) -> Place:
        self._walk = Walk(self._folder)
        return place

    def _run(self, place: Place) -> Place:
        """Run a command; `exit` is its exit status, `from` and `until` limit what is shown.

        What the pattern `ignore` matches is not compared.
        """
        ended = self._walk.run(place.argument)
        if ended.status != int(place.options.get("exit", "0")):
            raise Wrong(f"{place.argument} ended with {ended.status}:\n{ended.printed}")
        shown = cut(ended.printed, place.options.get("from", ""), place.options.get("until", ""))
        code = "\n".join([f"$ {place.argument}", *([shown] if shown else [])]) + "\n"
        if place.code is not None and same(place.code, code, place.options.get("ignore", "")):
            return place
        return replace(place, language="text", code=code)

    def _file(self, place: Place) -> Place:
        """Write the code of the page into a file of the walk."""
        if self._walk.folder == DOCS / "examples" or place.code is None:
            raise Wrong(f"{place.argument} needs a walk and a block")
        self._walk.paste(place.argument, place.code)
        return place

    def _include(self, place: Place) -> Place:
        """Show a file of docs, or its definition `object`, or its lines `from` .. `before`.

        A block of another page ends before its fence.
        """
        path = DOCS / place.argument
        text = path.read_text(encoding="utf-8")
        if name := place.options.get("object"):
            text = _definition(text, name)
        lines = text.splitlines()
        begin = next(i for i, one in enumerate(lines) if place.options.get("from", "") in one)
        before = "```" if path.suffix == ".md" else place.options.get("before")
        end = next(
            (i for i, one in enumerate(lines) if i > begin and before and before in one), len(lines)
        )
        code = "\n".join(lines[begin:end]).rstrip() + "\n"
        language = place.options.get("language") or LANGUAGES.get(path.suffix, "text")
        return replace(place, language=language, code=code)

    def _picture(self, place: Place) -> Place:
        """Show an SVG file that a command of the walk has written; `words` describe it."""
        svg = (self._walk.folder / place.argument).read_text(encoding="utf-8")
        name = place.argument.removesuffix(".svg")
        return self._shown(place, name, [Drawing(svg, place.options["words"])])

    def _compute(self, place: Place) -> Place:
        """Run the code and draw the array that is named."""
        code = _without_comment(place, f"# {place.argument}: shape ")
        comment, drawings = computed(place.argument, code, place.options, self._names)
        filled = replace(place, language="python", code=f"{code}{comment}\n")
        return self._shown(filled, place.argument, drawings)

    def _mask(self, place: Place) -> Place:
        """Evaluate the expression and draw the mask."""
        code = _without_comment(place, "# shape ")
        comment, drawings = mask(place.argument, code.strip(), place.options)
        name = f"{place.argument.partition('.')[0].removeprefix('attentest_')}-{code.strip()}"
        short = "".join(one if one.isalnum() else "-" for one in name)
        filled = replace(place, language="python", code=f"{code}{comment}\n")
        return self._shown(filled, "-".join(filter(None, short.split("-"))), drawings)

    def _curves(self, place: Place) -> Place:
        """Show a stored training: its command, what was printed, and its curves."""
        code, drawing = training(RECORDS / f"{place.argument}.json", place.options)
        return self._shown(replace(place, language="text", code=code), place.argument, [drawing])

    def _index(self, place: Place) -> Place:
        """Show a stored silent-bug index: its command, what was printed, and its picture."""
        code, drawing = bugs(RECORDS / f"{place.argument}.json", place.options)
        return self._shown(replace(place, language="text", code=code), place.argument, [drawing])

    def _shown(self, place: Place, name: str, drawings: list[Drawing]) -> Place:
        """Return the place with its pictures, one link for each."""
        folder = PICTURES / self._path.stem
        several = len(drawings) > 1
        links = []
        for number, one in enumerate(drawings, 1):
            path = folder / f"{name}{f'-{number}' if several else ''}.svg"
            old = path.read_text(encoding="utf-8") if path.exists() else ""
            unchanged = same(old, one.svg, place.options.get("ignore", ""))
            self.pictures[path] = old if unchanged else one.svg
            target = Path(os.path.relpath(path, self._path.parent)).as_posix()
            links.append(f"![{one.words}]({target})\n")
        begin = "\n" if place.code is not None else ""
        return replace(place, pictures=begin + "".join(links))


def _without_comment(place: Place, begin: str) -> str:
    """Return the code without the comment with which it ends once it has been filled."""
    if place.code is None:
        raise Wrong(f"{place.argument} has no code")
    lines = place.code.splitlines(keepends=True)
    return "".join(lines[:-1] if lines[-1].startswith(begin) else lines)


def _definition(text: str, name: str) -> str:
    """Return the source of the function or class `name`."""
    found = next(one for one in ast.parse(text).body if getattr(one, "name", "") == name)
    return ast.get_source_segment(text, found) or ""
