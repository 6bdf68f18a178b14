"""Mistakes in source code whose line is known: sound files, and a manifest of what to change.

A manifest is a TOML file beside the sound files. Each of its tables `[[mistake]]` has

- `slug`: its name, unique in the manifest;
- `target`: FILE.py:OBJECT, the function or class to judge;
- `right`: text that occurs exactly once in the sound file, and `wrong`: what replaces it there;
- `lines`: texts, each a part of one line of the wrong file: a reasonable person accepts each of
  these lines as the place of the mistake. Left out, they are the lines of `wrong` that are not
  in `right`; `also` adds to them;
- `step`: the first intermediate value of the reference that differs;
- `catalogued`: whether the mistake is a direct copy of a fault of the catalogue;
- `anyway`: true where the checker asks before it judges, and is answered with --anyway.

The table `[sources]` names the sound files that are in other folders, as FILE.py = path. The table
`[components]` holds what a user would say with --as, for targets whose names do not say
it: FILE.py:OBJECT = component.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from folders import SUPPORT

OPEN = SUPPORT / "lines"
HELD_OUT = SUPPORT / "lines_held_out"
EARLY = SUPPORT / "lines_early"
EFFECTS = SUPPORT / "lines_effects"
JAX = SUPPORT / "lines_jax"
PARTS = SUPPORT / "lines_parts"
FRESH = SUPPORT / "lines_fresh"


@dataclass(frozen=True)
class Mistake:
    """One mistake: where its sound file is, and what is replaced there."""

    folder: Path
    slug: str
    target: str
    right: str
    wrong: str
    step: str
    catalogued: bool
    component: str = ""
    anyway: bool = False
    lines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    source: Path | None = None

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.target.partition(":")[0]

    @property
    def sound_source(self) -> str:
        """The source without the mistake."""
        return (self.source or self.folder / self.file).read_text(encoding="utf-8")

    @property
    def wrong_source(self) -> str:
        """The source with the mistake; raises ValueError unless `right` is there exactly once."""
        sound = self.sound_source
        if sound.count(self.right) != 1:
            raise ValueError(f"{self.slug}: {sound.count(self.right)} places in {self.file}")
        return sound.replace(self.right, self.wrong)

    @property
    def accepted(self) -> frozenset[int]:
        """The numbers of the lines of the wrong file that are accepted, from 1."""
        return frozenset(
            number for text in (self.lines or ()) + self.also for number in [self._number(text)]
        ) | (frozenset() if self.lines else self._changed())

    def _number(self, text: str) -> int:
        places = [n for n, line in enumerate(self.wrong_source.splitlines(), 1) if text in line]
        if len(places) != 1:
            raise ValueError(f"{self.slug}: {text!r} is in {len(places)} lines")
        return places[0]

    def _changed(self) -> frozenset[int]:
        first = self.sound_source[: self.sound_source.index(self.right)].count("\n") + 1
        kept = {line.strip() for line in self.right.splitlines()}
        return frozenset(
            first + place
            for place, line in enumerate(self.wrong.splitlines())
            if line.strip() not in kept
        )

    def write(self, folder: Path, *, sound: bool = False) -> str:
        """Write the wrong file, or its sound twin, into `folder`, and return the target there."""
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.sound_source if sound else self.wrong_source, encoding="utf-8")
        return f"{folder / self.target}"


def mistakes(folder: Path = OPEN) -> Iterator[Mistake]:
    """Yield the mistakes of a folder in the order of its manifest."""
    manifest = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))
    components = manifest.get("components", {})
    for one in manifest["mistake"]:
        texts = {name: tuple(one.get(name, ())) for name in ("lines", "also")}
        component = components.get(one["target"], "")
        other = manifest.get("sources", {}).get(one["target"].partition(":")[0])
        source = None if other is None else SUPPORT / other
        yield Mistake(folder, **{**one, **texts, "component": component}, source=source)
