"""Fields and arguments that nothing says, with the values that the files around the model write."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attentest.targets.constants.written import value_written

Read = Callable[[Mapping[str, str]], tuple[str, list[str]]]
"""Returns an expression with some fields by name, and the fields that nothing says."""


def written(thing: Any, names: Collection[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the expressions of those `names` that a file around `thing` writes, and what is said.

    A value that is also that of a size stays as it is, so that no size is one by mistake.
    """
    found = {name: value_written(thing, name) for name in names}
    codes = {name: repr(one[0]) for name, one in found.items() if one}
    said = tuple(
        f"assumed {name}={codes[name]}, as {one[1].name} writes: --give {name}=VALUE judges it "
        f"with another one"
        for name, one in found.items()
        if one
    )
    return codes, said


def with_written(
    thing: Any, read: Read, code: str, missing: list[str]
) -> tuple[str, list[str], list[str]]:
    """Return the expression of settings with written values for what is `missing`.

    `code` is the expression without them. The last value are the assumptions.
    """
    held: dict[str, str] = {}
    said: list[str] = []
    while more := [one for one in missing if one not in held]:
        codes, words = written(thing, more)
        if not codes:
            break
        held |= codes
        said += words
        code, missing = read(held)
    return code, missing, said
