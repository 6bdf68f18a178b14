"""Values that are tried for arguments of a constructor which nothing says."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import permutations
from typing import Any

from attentest.targets.adapt.objects.compared_words import attempts_of_words, names_file
from attentest.targets.adapt.reading import Attempt

_FEW = 2
"""The largest number of unknown arguments that are tried as sizes in both orders."""


def attempts_of_values(
    thing: Callable[..., Any], component: str, unknown: Sequence[str], left: Collection[str]
) -> Iterator[Attempt]:
    """Yield what the `unknown` arguments may be: words, off, a size of those `left`, or 1.

    Off comes before sizes: with one in the place of what is none, numbers may be right as well. A
    second word may be that of a learned table, which would excuse a mistake in the first one.
    """
    most = 1 if component == "positional_encoding" else 2
    yield from attempts_of_words(thing, unknown, left, most)
    if any(map(names_file, unknown)):
        return  # a number is a file that is open: 1 is the output of the process
    yield from (Attempt(given=dict.fromkeys(unknown, value)) for value in (False, None))
    if len(unknown) == len(left) <= _FEW:
        for order in permutations(sorted(left, key=lambda size: (size != "d_model", size))):
            yield Attempt(arguments=dict(zip(order, unknown, strict=True)))
    elif len(unknown) == 1:
        yield from (Attempt(arguments={size: unknown[0]}) for size in sorted(left))
    yield from (Attempt(given=dict.fromkeys(unknown, value)) for value in (1, True))
