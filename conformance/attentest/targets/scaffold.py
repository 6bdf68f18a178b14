"""Writes the folder of a new implementation, in which everything is still to be filled in."""

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from attentest.targets import paper
from attentest_spec import registry

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")
_STAND_IN = "newcomer"
_BESIDE = ("README.md", "pyproject.toml")
"""Files next to the package; the rest of the template is the package."""


class Refused(Exception):
    """The folder cannot be written; the text says why, and nothing was written."""


def package_of(name: str) -> str:
    """Return the package of the implementation `name`."""
    return f"attentest_{name.replace('-', '_')}"


def write(name: str, into: Path) -> list[Path]:
    """Write the folder `name` in `into`, and return its files.

    Raises Refused for a name that cannot be or is taken, and for a folder that is there.
    """
    _named_well(name)
    _free(name)
    folder = into / name
    try:
        folder.mkdir()
        return [_written(folder / place, text) for place, text in _texts(name)]
    except FileExistsError as there:
        raise Refused(
            f"{folder} exists and was left as it is. Take another name, or another place by --into."
        ) from there
    except OSError as failure:
        raise Refused(f"{folder} cannot be written: {failure.strerror}.") from failure


def _named_well(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{name!r} cannot be the name of an implementation: it becomes part of the name of a "
            f"package. Use small letters and digits, words joined by _ or -, a letter first."
        )


def _free(name: str) -> None:
    """Refuse a name under which something else would be found."""
    if paper.is_paper(name):
        raise Refused(f"The name {name} is the word for design choices. Take another name.")
    if package_of(name) in {package_of(known) for known in registry.names()}:
        raise Refused(f"A backend named {name} is installed already. Take another name.")
    if find_spec(package_of(name)):
        raise Refused(
            f"A package named {package_of(name)} can be imported already. Take another name."
        )


def _texts(name: str) -> Iterator[tuple[Path, str]]:
    """Yield every file of the folder by its place in it, the stand-in's name replaced."""
    for source in _template():
        place = Path() if source.name in _BESIDE else Path(package_of(name))
        text = source.read_text(encoding="utf-8")
        text = text.replace(f"attentest-{_STAND_IN}", package_of(name).replace("_", "-"))
        text = text.replace(f"attentest_{_STAND_IN}", package_of(name))
        yield place / source.name, text.replace(_STAND_IN, name)


def _template() -> Iterator[Traversable]:
    for source in files("attentest.targets").joinpath("template").iterdir():
        if source.is_file() and not source.name.endswith(".pyc"):
            yield source


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
