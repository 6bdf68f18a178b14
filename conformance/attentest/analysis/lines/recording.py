"""The record of every operation of a call: its line, its inputs, and its values.

Operations are numbered in the order in which they run, so that another run of the same code can
put another value in the place of one of them. How code is recorded depends on its framework.
"""

import inspect
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

import attentest_spec
from attentest_spec.setting import Array


class Place(NamedTuple):
    """A line of code; `instruction` tells calls in one line apart, `function` is its first line."""

    file: str
    line: int
    instruction: int
    function: int


LARGEST = 200_000
"""The number of entries up to which values are kept: examples are small."""


@dataclass(eq=False)
class Value:
    """A value of a tensor at one moment; `made` is the operation that made it, None for a leaf.

    `dropped` is the dropout that returned it as it is, the last one; None where none did.
    """

    number: int
    array: Array
    made: "Operation | None" = None
    dropped: "Operation | None" = None


@dataclass(eq=False)
class Operation:
    """One call of a torch function with a tensor as its result.

    `places` are the lines of the user's code that led to it, the innermost first, and `calls` the
    numbers of the calls of functions that these are in. One that is not `complete` has an input
    that is too large to be kept.
    """

    number: int
    name: str
    places: tuple[Place, ...]
    inputs: tuple[Value, ...]
    outputs: list[Value] = field(default_factory=list)
    in_place: bool = False
    calls: tuple[int, ...] = ()
    complete: bool = True

    @property
    def place(self) -> Place | None:
        """The innermost line of the user's code, None where there is none."""
        return self.places[0] if self.places else None


@dataclass(frozen=True, eq=False)
class Swap:
    """Another value for an input: operations `first` to `last` take `given` where it is `taken`."""

    first: int
    last: int
    taken: Array
    given: Array


class Recording(Protocol):
    """Records the operations of a call, and replaces some of its values.

    `operations` are those recorded, `count` is the number of all, and `seen_at` are the values that
    are known in each function that leads to the operation that is looked at. `bound_at` are those
    of them that a name has there still: an argument may have been bound again.
    """

    operations: list[Operation]
    count: int
    seen_at: list[list[Array]]
    bound_at: list[list[Array]]

    def run(self, action: Callable[[], Any]) -> Any:
        """Return what `action` returns, recorded."""


class Recorder(Protocol):
    """Makes the recordings of one framework.

    `is_exact` says that a recorded call computes the very numbers of one that is not recorded.
    `puts` maps the number of an operation to the value of its result, and `swap` replaces an input
    of some operations. Where `keep` is False, operations are counted and replaced, and not
    recorded. `look_at` is the number of an operation at which the values are looked at that the
    user's functions know. `begin` is the number of the first operation; `own` are folders whose
    code counts as the user's although it is installed.
    """

    is_exact: bool

    def __call__(
        self,
        puts: Mapping[int, Array] | None = None,
        *,
        keep: bool = True,
        look_at: int = -1,
        begin: int = 0,
        own: Sequence[str] = (),
        swap: Swap | None = None,
    ) -> Recording:
        """Return a new recording."""


_SUITE = Path(__file__).parents[2]


@cache
def _tools() -> tuple[str, ...]:
    """Return the folders of the frameworks, the suite and the standard library."""
    known = [attentest_spec, np, *filter(None, map(sys.modules.get, ("torch", "jax")))]
    homes = (Path(inspect.getfile(one)).parent for one in known)
    return _folders(str(_SUITE), *map(str, homes), str(Path(inspect.getfile(os)).parent))


@cache
def installed() -> tuple[str, ...]:
    """Return the folders that packages are installed in, those of other environments too."""
    places = (sysconfig.get_path(one) for one in ("purelib", "platlib"))
    shared = (one for one in sys.path if os.path.basename(one) in PACKAGES)
    return _folders(*places, site.getusersitepackages(), *shared)


PACKAGES = ("site-packages", "dist-packages")
"""The names of folders that packages are installed in."""


def _folders(*places: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.join(one, "") for one in places))


def is_users(file: str, own: Sequence[str] = ()) -> bool:
    """Say whether `file` is code of the user: not of torch, the suite, or what is installed."""
    return _is_users(file, tuple(own))


@cache
def _is_users(file: str, own: tuple[str, ...]) -> bool:
    if file.startswith(installed()):
        return file.startswith(own) and not file.startswith(_tools()[:-1])
    return not file.startswith((*_tools(), "<frozen", "<string", "<__array"))


def package_of(recording: Recording) -> tuple[str, ...]:
    """Return the folder of the installed package that the recorded call begins in, () for none.

    The recording counts all installed code as the user's.
    """
    files = (one.places[-1].file for one in recording.operations if one.places)
    return next(filter(None, map(home_of, files)), ())


def home_of(file: str) -> tuple[str, ...]:
    """Return the folder of the installed package that `file` is in, () for none."""
    home = next((one for one in installed() if file.startswith(one)), None)
    return () if home is None else (home + file.removeprefix(home).split(os.sep)[0],)


def same(one: Array, other: Array) -> bool:
    """Say whether two arrays hold the same numbers, NaN included."""
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
