"""Fields and arguments that nothing says, with the values that the files around the model write."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
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


_FACTORS = ("2", "3", "4", "8")
"""Values of a field that is the factor of the inner width."""


def with_written_factor(
    thing: Any, expression: str, doubts: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield `expression` with the factor that a file writes in the place of the inner width.

    With it come the `doubts`, and what is said of it.
    """
    for own in re.findall(r"\b(\w+)=sizes\.d_ff\b", expression):
        codes, said = written(thing, [own])
        if codes.get(own) in _FACTORS:
            code = expression.replace(f"{own}=sizes.d_ff", f"{own}={codes[own]}")
            yield code, (*doubts, *said)
