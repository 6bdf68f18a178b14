"""Models that take sequences of their greatest length alone, as a failed call of them shows."""

import re

from attentest.targets.models.trials import Building
from attentest_spec import Sizes


def is_of_one_length(failure: str, built: Building, sizes: Sizes) -> bool:
    """Say whether a call failed because its sequences are shorter than the greatest length."""
    numbers = [int(one) for one in re.findall(r"\(?\b(\d+)\b\)?", failure)]
    return "max_length" in built.known and "size" in failure and sizes.max_length in numbers


FIXED_LENGTH = (
    " Its code seems to take sequences of its greatest length alone, as a table of positions that "
    "is added whole does: cut it to the length of the input, as in pe[:, : x.size(1)]."
)
