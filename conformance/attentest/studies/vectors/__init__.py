"""Language-neutral test vectors: what goes in and what has to come out, for any language.

A folder holds `index.json`, the schema of that, and one file of tensors for each component.
The same seed gives the same bytes.
"""

import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from attentest.results.output import Occupied, vacant
from attentest.studies.vectors.cases import cases
from attentest.studies.vectors.index import Index
from attentest.studies.vectors.recipes import PARTS
from attentest.studies.vectors.tensors import FORMATS
from attentest_spec import Choices
from attentest_spec.choices import Value
from attentest_spec.names import require

SCHEMA = "index.schema.json"
"""The JSON Schema of the index, which goes along with the vectors."""


@dataclass(frozen=True)
class Written:
    """The files written: the folder, the number of cases by component, the bytes in all."""

    folder: Path
    cases: Mapping[str, int]
    size: int


def write(
    out: Path,
    *,
    components: Collection[str] = (),
    choices: Mapping[str, Value] | None = None,
    file_format: str = "safetensors",
    seed: int = 0,
    count: int = 1,
) -> Written:
    """Write the new folder `out` with vectors of `components` (all where none is named).

    `choices` are those that all cases have in common, the paper's where nothing is said; `count`
    is how often the numbers of each case are drawn. Raises UnknownName for a component, a choice or
    a format that is none, ValueError for an option that is none, and
    :class:`~attentest.results.output.Occupied` where something is at `out` or it cannot be written.
    """
    named = [require("component", name, PARTS) for name in components]
    wanted = [name for name in PARTS if not named or name in named]
    pack = FORMATS[require("format", file_format, FORMATS)]
    base = Choices.of(choices or {})
    vacant(out)
    index = Index(base, seed, file_format)
    found = dict.fromkeys(wanted, 0)
    try:
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
            complete = Path(folder) / "complete"
            complete.mkdir()
            for component in wanted:
                with index.file(f"{component}.{file_format}") as file:
                    for case in cases([component], base, seed, count):
                        file.add(case)
                        found[component] += 1
                (complete / file.name).write_bytes(pack(file.arrays))
            (complete / "index.json").write_text(index.text(), encoding="utf-8")
            (complete / SCHEMA).write_bytes(files(__name__).joinpath(SCHEMA).read_bytes())
            size = sum(path.stat().st_size for path in complete.iterdir())
            shutil.move(complete, vacant(out))
    except OSError as failure:
        raise Occupied(f"{out} cannot be written: {failure.strerror}.") from failure
    return Written(out, found, size)


__all__ = ["FORMATS", "Written", "write"]
